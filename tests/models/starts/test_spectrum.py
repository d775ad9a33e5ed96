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


def test_the_grid_ends_where_the_densest_output_allows() -> None:
    """At π over its median spacing; a step is a quarter of what the span resolves."""
    x = np.linspace(0, 1, 201)
    y = np.stack([np.sin(40 * x), np.sin(90 * x)], axis=1)
    y[np.arange(201) % 5 > 0, 1] = np.nan
    omega, _ = periodogram(x, y)
    assert omega[-1] == pytest.approx(math.pi * 200, abs=math.pi)
    assert np.diff(omega) == pytest.approx(math.pi / 2)
    sparse, _ = periodogram(x[::5], y[::5])
    assert sparse[-1] == pytest.approx(math.pi * 40, abs=math.pi)


def test_what_noise_alone_would_show_is_no_power() -> None:
    """A tone in white noise: nearly all that is left stands next to the tone."""
    random = np.random.default_rng(5)
    x = np.linspace(0, 1, 600)
    noisy = np.sin(200 * x) + random.standard_normal(600)
    omega, power = periodogram(x, noisy[:, None])
    assert power[np.abs(omega - 200) < 4 * math.pi].sum() > 0.95
    assert (power == 0).mean() > 0.9


def test_drawn_frequencies_lie_between_the_lines_of_the_grid() -> None:
    """Lines of the grid alone would all repeat after the span."""
    x, y = tones()
    omega, _ = periodogram(x, y)
    drawn = spectral_frequencies(x, y, (400,), torch.Generator().manual_seed(0)).abs().numpy()
    step = omega[1] - omega[0]
    within = (drawn - omega[0]) / step % 1
    counts = np.histogram(within, bins=4, range=(0, 1))[0]
    assert np.abs(counts - 100).max() < 5 * math.sqrt(400 * 0.25 * 0.75)
