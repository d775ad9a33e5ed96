"""The dominant oscillation: planted phases are found, with drift, gaps and uneven times."""

import math

import numpy as np
import pytest

from deeplfm.models.starts.oscillation import (
    Oscillation,
    dominant_oscillation,
    projection_angles,
)


def beats(drift: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Times, two outputs with their own waveforms and gaps, and the true phase: 30 beats."""
    random = np.random.default_rng(seed)
    x = np.sort(random.uniform(0, 1, 900))
    phase = 2 * math.pi * (30 * x + drift * np.sin(2 * math.pi * 3 * x))
    sharp = np.exp(8 * (np.cos(phase - 1) - 1))
    round_ = np.cos(phase) + 0.4 * np.sin(2 * phase)
    y = np.stack([sharp / sharp.std(), round_ / round_.std()], axis=1)
    y += 0.1 * random.standard_normal(y.shape)
    y[200:400, 0] = np.nan
    y[500:700, 1] = np.nan
    return x, y, phase


@pytest.mark.parametrize("drift", [0.0, 0.08])
def test_the_phase_is_followed(drift: float) -> None:
    """Up to a constant: where a phase starts is a convention."""
    x, y, phase = beats(drift)
    found = dominant_oscillation(x, y)
    assert found is not None
    assert found.frequency == pytest.approx(60 * math.pi, rel=0.02)
    error = np.angle(found.values * np.exp(-1j * phase))
    error = np.angle(np.exp(1j * (error - np.angle(np.exp(1j * error).mean()))))
    # The window of 1.5 periods passes a drift at 3 cycles with e^{-(2π·3·0.05)²/2} = 64 % of it,
    # so at most 36 % of it is missed; what is left of noise is a tenth of a radian.
    # At the ends windows see one side only.
    assert np.abs(error[(x > 0.1) & (x < 0.9)]).max() < 0.36 * 2 * math.pi * drift + 0.1


def test_a_few_cycles_are_steady() -> None:
    x = np.linspace(0, 1, 300)
    y = np.exp(10 * (np.cos(2 * math.pi * x / 0.45 - 1) - 1))[:, None]
    found = dominant_oscillation(x, (y - y.mean()) / y.std())
    assert found is not None
    assert found.frequency == pytest.approx(2 * math.pi / 0.45, rel=0.01)
    assert found.offsets.tolist() == [0.0]
    np.testing.assert_allclose(found.values, np.exp(1j * found.frequency * x))


def test_a_phase_has_no_jumps_across_gaps_in_any_order() -> None:
    """A drift of less than half a turn from row to row is followed, however many turns a gap is."""
    random = np.random.default_rng(1)
    x = np.concatenate([random.uniform(0, 0.3, 80), random.uniform(0.6, 1, 90)])
    phase = 90 * x + 4 * np.sin(3 * x)
    found = Oscillation(90.0, np.exp(1j * phase), np.zeros(1), np.ones(1)).phase(x)
    np.testing.assert_allclose(found - found[0], phase - phase[0], atol=1e-9)


def test_projections_are_cosines_at_different_angles() -> None:
    x, y, _ = beats(0.0)
    found = dominant_oscillation(x, y)
    assert found is not None
    values = found.projections(3)
    assert values.shape == (900, 3)
    phase = np.angle(found.values)
    for k, angle in enumerate(projection_angles(3)):
        np.testing.assert_allclose(values[:, k], np.cos(phase - angle), atol=1e-12)
    assert len(set(projection_angles(3))) == 3


def test_the_bandwidth_is_the_deviation_of_the_power() -> None:
    """Lines at -2, 0 and 4 of amplitude 1, 3 and 2: powers of 1, 9 and 4."""
    lines = Oscillation(50.0, np.ones(1, complex), np.array([-2.0, 0, 4]), np.array([1.0, 3, 2]))
    assert lines.bandwidth == pytest.approx(math.sqrt((1 * 4 + 4 * 16) / 14))


@pytest.mark.parametrize("count", [2, 3, 5, 8])
def test_functions_of_the_projections_reach_every_harmonic(count: int) -> None:
    """cos k(φ - θ_i) over i span cos kφ and sin kφ: the 2 x count matrix is well conditioned."""
    angles = projection_angles(count)
    assert len(angles) == count
    for k in range(1, 13):
        values = np.linalg.svd(np.stack([np.cos(k * angles), np.sin(k * angles)]))[1]
        assert values.min() > (0.15 if count == 2 else 0.6)


def test_noise_and_trends_have_none() -> None:
    random = np.random.default_rng(3)
    x = np.linspace(0, 1, 400)
    assert dominant_oscillation(x, random.standard_normal((400, 1))) is None
    assert dominant_oscillation(x, x[:, None] ** 2) is None
