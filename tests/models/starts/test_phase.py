"""The phase is sharpened: beats of uneven length are found, gaps are filled from other channels."""

import numpy as np
import pytest

from deeplfm.models.starts.oscillation import dominant_oscillation
from deeplfm.models.starts.phase import SharpenedPhase


def uneven_beats(seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Times, the true phase, two channels with sharp peaks, and where the second has a gap."""
    random = np.random.default_rng(seed)
    x = np.sort(random.uniform(0, 1, 900))
    beats = np.cumsum(1 + 0.08 * random.standard_normal(60))
    phase = 2 * np.pi * np.interp(x * 50, np.concatenate([[0], beats]), np.arange(61))
    y = np.stack([np.exp(3 * np.cos(phase - shift)) for shift in (0.0, 2.0)], axis=1)
    y = (y - y.mean(0)) / y.std(0) + 0.1 * random.standard_normal(y.shape)
    gap = (x > 0.4) & (x < 0.55)
    y[gap, 1] = np.nan
    return x, phase, y, gap


def off(values: np.ndarray, phase: np.ndarray) -> np.ndarray:
    """Radians between a phase and the true one, up to a shift that all have in common."""
    turned = values * np.exp(-1j * phase)
    return np.asarray(np.angle(turned * np.conj(turned.mean())))


def test_the_phase_follows_single_beats(monkeypatch: pytest.MonkeyPatch) -> None:
    x, phase, y, gap = uneven_beats()
    sharp = dominant_oscillation(x, y)
    monkeypatch.setattr("deeplfm.models.starts.phase._ROUNDS", 0)
    smooth = dominant_oscillation(x, y)
    assert sharp is not None
    assert smooth is not None
    errors = [off(found.values, phase)[gap].std() for found in (sharp, smooth)]
    # A beat of 18 points has 4 on the flank of its peak, of slope about 3 per radian: noise of 0.1
    # leaves 0.1/(3 √4) = 0.02; pieces that bend once a beat cannot follow every kink in it.
    assert errors[0] < 0.12
    assert errors[0] < 0.5 * errors[1]


def test_each_round_solves_the_penalised_least_squares() -> None:
    """Four diagonals against the same normal equations in full."""
    random = np.random.default_rng(1)
    x = np.sort(random.uniform(0, 1, 200))
    made = SharpenedPhase(x, np.sin(60 * x)[:, None], 60 * x, 60.0)
    first, weights = made._splines(x)
    matrix = np.zeros((200, made._count))
    np.put_along_axis(matrix, first, weights, axis=1)
    assert np.allclose(matrix.sum(1), 1)  # B-splines add up to one
    pull, push = random.uniform(0, 5, 200), random.standard_normal(200)
    normal = matrix.T @ (pull[:, None] * matrix) + np.eye(made._count) / 0.3**2
    expected = np.linalg.solve(normal, matrix.T @ push)
    np.testing.assert_allclose(made._solved(first, weights, pull, push), expected, rtol=1e-9)


def test_a_phase_that_is_right_stays() -> None:
    x = np.linspace(0, 1, 600)
    y = np.stack([np.cos(100 * x), np.cos(200 * x + 1)], axis=1)
    sharp = SharpenedPhase(x, y, 100 * x, 100.0)
    assert np.abs(sharp.bend(x)).max() < 1e-3
