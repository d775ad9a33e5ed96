"""Frequencies from the data's spectrum: planted tones are found, gaps and uneven times included."""

import math

import numpy as np
import pytest
import torch
from scipy.signal import lombscargle

import deeplfm as dlfm
from deeplfm.models.starts.spectrum import (
    _lomb_scargle,
    draw_from,
    periodogram,
    spectral_frequencies,
)


def tones(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Two outputs, tones at 40 and 90 rad, uneven times, each output with its own gap."""
    random = np.random.default_rng(seed)
    x = np.sort(random.uniform(0, 1, 300))
    y = np.stack([np.sin(40 * x), 2 + np.cos(90 * x + 1)], axis=1)
    y = y + 0.1 * random.standard_normal(y.shape)
    y[100:160, 0] = np.nan
    y[200:260, 1] = np.nan
    return x, y


def test_planted_tones_carry_the_power() -> None:
    omega, power = periodogram(*tones())
    assert power.sum() == pytest.approx(1)
    for tone in (40.0, 90.0):
        assert power[np.abs(omega - tone) < 4 * math.pi].sum() > 0.4  # of the half each output has
    assert omega[0] == pytest.approx(2 * math.pi / np.ptp(tones()[0]))


def test_an_output_weighs_the_same_whatever_its_units() -> None:
    x, y = tones()
    _, power = periodogram(x, y)
    _, scaled = periodogram(x, y * [1000.0, 1.0] + [5.0, 0.0])
    np.testing.assert_allclose(power, scaled, atol=1e-12)


def test_drawn_frequencies_follow_the_spectrum() -> None:
    x, y = tones()
    drawn = spectral_frequencies(x, y, (1, 2, 50), torch.Generator().manual_seed(0))
    assert drawn.shape == (1, 2, 50)
    near = sum(((drawn.abs() - tone).abs() < 2 * math.pi).double().mean() for tone in (40.0, 90.0))
    assert near > 0.8
    assert 0.2 < (drawn > 0).double().mean() < 0.8
    again = spectral_frequencies(x, y, (1, 2, 50), torch.Generator().manual_seed(0))
    assert torch.equal(drawn, again)


def test_systematic_draws_keep_the_shares() -> None:
    drawn = draw_from(np.array([1.0, 2.0, 3.0]), np.array([0.5, 0.31, 0.19]), 100)
    counts = [int((drawn == value).sum()) for value in (1.0, 2.0, 3.0)]
    assert max(abs(n - share) for n, share in zip(counts, (50, 31, 19), strict=True)) <= 1


def test_bad_input() -> None:
    with pytest.raises(dlfm.InputError, match="x must span some time"):
        periodogram(np.ones(5), np.ones((5, 1)))
    with pytest.raises(dlfm.InputError, match="3 observations or more"):
        periodogram(np.arange(4.0), np.array([[1.0], [np.nan], [np.nan], [2.0]]))


def test_a_constant_target_has_a_flat_spectrum() -> None:
    _, power = periodogram(np.linspace(0, 1, 20), np.ones((20, 1)))
    assert power.min() == pytest.approx(power.max())


def test_the_power_is_that_of_lomb_and_scargle() -> None:
    """The library of scipy, one frequency after the other; both round e^{jωx} of ωx up to 1000."""
    x, y = tones()
    seen = ~np.isnan(y[:, 1])
    times, values = x[seen], y[seen, 1] - y[seen, 1].mean()
    multiples = np.arange(4.0, 700.0)
    expected = lombscargle(times, values, 1.5 * multiples)
    power = _lomb_scargle(1.5 * (times - 0.3), values, multiples)
    np.testing.assert_allclose(power, expected, rtol=1e-9, atol=1e-11 * expected.max())
