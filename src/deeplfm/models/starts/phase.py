"""The phase of an oscillation, sharpened until every beat lies where the channels say it does.

    y_d(x) ≈ T_d(φ(x)),   φ = φ_0 + Σ_k c_k B(x/h - k),   T_d a series of harmonics

Gauss-Newton: templates T_d by regression on the phase, then the phase by regression on the slopes
of the templates, for all channels together; what one channel lost in a gap the others tell.
"""

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]

_HARMONICS = 12  # of a template: what is narrower than a twelfth of a beat cannot be told
_SPACING = 1.0  # periods between the pieces of the phase: it may bend once per beat
_STRAY = 0.3  # radians, prior standard deviation of the pieces
_ROUNDS, _STEP = 8, 0.7
_RIDGE = 5e-4  # of the k-th harmonic, times k²; the same for the constant
_LEAST_NOISE = 1e-3  # of the variance of a channel: what is left of it is never taken for less


class SharpenedPhase:
    """φ at the inputs it was made from, and anywhere: `bend(x)` is what was added to φ_0."""

    def __init__(self, x: Values, y: Values, phase: Values, frequency: float) -> None:
        """x [N] in order, y [N, D] (NaN = gap), φ_0 [N] and its mean slope."""
        self._origin, self._width = x[0], _SPACING * 2 * np.pi / frequency
        self._count = int(np.ceil((x[-1] - x[0]) / self._width)) + 3
        self._pieces = np.zeros(self._count)
        first, weights = self._splines(x)
        observed = ~np.isnan(y)
        values = np.where(observed, y, 0.0)
        for _ in range(_ROUNDS):
            bend = (weights * self._pieces[first]).sum(1)
            pull, push = _slopes(phase + bend, values, observed)
            solved = self._solved(first, weights, pull, push + pull * bend)
            self._pieces += _STEP * (solved - self._pieces)

    def bend(self, x: Values) -> Values:
        """The bend of the phase [N], for x within the inputs it was made from."""
        first, weights = self._splines(x)
        return np.asarray((weights * self._pieces[first]).sum(1))

    def _splines(self, x: Values) -> tuple[NDArray[np.intp], Values]:
        """Which four cubic B-splines reach x, and their values there: [N, 4] each."""
        place = np.clip((x - self._origin) / self._width, 0, self._count - 3 - 1e-9)
        whole = np.floor(place).astype(int)
        u = place - whole
        weights = np.stack(
            [
                (1 - u) ** 3 / 6,
                (3 * u**3 - 6 * u**2 + 4) / 6,
                (-3 * u**3 + 3 * u**2 + 3 * u + 1) / 6,
                u**3 / 6,
            ],
            axis=1,
        )
        return whole[:, None] + np.arange(4), weights

    def _solved(
        self, first: NDArray[np.intp], weights: Values, pull: Values, push: Values
    ) -> Values:
        """(I/s² + Bᵀ diag(pull) B) c = Bᵀ push: four diagonals, so long series cost little."""
        bands = np.zeros((self._count, 4))
        bands[:, 0] = _STRAY**-2
        for lag in range(4):
            for left in range(4 - lag):
                product = pull * weights[:, left] * weights[:, left + lag]
                np.add.at(bands[:, lag], first[:, left], product)
        right = np.zeros(self._count)
        np.add.at(right, first, weights * push[:, None])
        return _solve_banded(bands.tolist(), right.tolist())


def _solve_banded(bands: list[list[float]], right: list[float]) -> Values:
    """A c = right, A symmetric and positive, bands[i][k] = A[i, i + k]; by elimination, in place.

    In plain Python: a few numbers per row, and scipy's solver would take longer to import.
    """
    for i, row in enumerate(bands):
        below = min(len(row), len(bands) - i)
        for k in range(1, below):
            factor = row[k] / row[0]
            for j in range(k, below):
                bands[i + k][j - k] -= factor * row[j]
            right[i + k] -= factor * right[i]
    for i in reversed(range(len(bands))):
        row = bands[i]
        known = sum(row[k] * right[i + k] for k in range(1, min(len(row), len(bands) - i)))
        right[i] = (right[i] - known) / row[0]
    return np.array(right)


def _slopes(phase: Values, y: Values, observed: NDArray[np.bool_]) -> tuple[Values, Values]:
    """Σ_d T_d'² / σ_d² and Σ_d T_d' (y_d - T_d) / σ_d² [N], of the templates that fit best."""
    orders = np.arange(1, _HARMONICS + 1)
    turns = np.exp(1j * np.outer(phase, orders))
    waves = np.concatenate([np.ones((len(phase), 1)), turns.real, turns.imag], axis=1)
    rises = np.concatenate(
        [np.zeros((len(phase), 1)), -turns.imag * orders, turns.real * orders], 1
    )
    ridge = _RIDGE * np.concatenate([[1.0], orders**2, orders**2])
    pull, push = np.zeros((2, len(phase)))
    for values, seen in zip(y.T, observed.T, strict=True):
        kept = waves * seen[:, None]
        weights = np.linalg.solve(kept.T @ kept + np.diag(ridge), kept.T @ values)
        error = (values - waves @ weights) * seen
        noise = max(float((error**2).sum() / seen.sum()), _LEAST_NOISE)
        rise = (rises @ weights) * seen
        pull += rise**2 / noise
        push += rise * error / noise
    return pull, push
