"""The oscillation that a time series has: its angular frequency, and its phase as it really runs.

    z(x) = e^{jφ(x)},   φ' ≈ ω0, drifting as the data drift

Many series are one oscillation seen through several channels: heart beats, tides, a shaft. A deep
model that starts with φ as its hidden function finds each channel as a function of the phase, also
where that channel was not observed but another was.
"""

import functools
import math
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from deeplfm.models.starts.phase import SharpenedPhase
from deeplfm.models.starts.spectrum import enough, periodogram

Values = NDArray[np.float64]
Indices = NDArray[np.intp]

_LEAST_CYCLES = 1.75  # fewer cannot be told from a trend
_HARMONICS = 6
_LEAST_SHARE = 0.5  # of the power above noise, in the oscillation and its harmonics
_WINDOW = 1.5  # periods, the standard deviation of the window that follows the phase
_SPANNED = 12  # harmonics of the phase that hidden functions must reach
_CENTERS = 8  # windows per period
_STEADY_CYCLES = 6  # so many are taken as steady
_AT_ONCE = 2**15  # rows in all windows that are solved together: a few MB


@final
@dataclass(frozen=True, eq=False)
class Oscillation:
    """ω0, e^{jφ} at the inputs it was asked for [N], and its spectrum about ω0.

    offsets, amplitude: of its spectrum, relative to ω0; a steady oscillation has one, at 0.
    """

    frequency: float
    values: NDArray[np.complex128]
    offsets: Values
    amplitude: Values

    @property
    def bandwidth(self) -> float:
        """The standard deviation of the spectrum: how fast the phase drifts."""
        power = self.amplitude**2
        return math.sqrt(float((power * self.offsets**2).sum() / power.sum()))

    def phase(self, x: Values) -> Values:
        """φ [N] at the inputs it was made from, without jumps however far apart they are."""
        order = np.argsort(x, kind="stable")
        slow = np.angle(self.values * np.exp(-1j * self.frequency * x))
        phase = np.empty(len(x))
        phase[order] = np.unwrap(slow[order])
        return phase + self.frequency * x

    def projections(self, count: int) -> Values:
        """cos(φ - θ_i) [N, count], whose functions add up to any function of φ."""
        return np.asarray((self.values[:, None] * np.exp(-1j * projection_angles(count))).real)


@functools.cache
def projection_angles(count: int) -> Values:
    """Angles θ_i for which a sum of functions of cos(φ - θ_i) reaches every harmonic of φ well.

    Functions of one projection hold harmonic k as cos k(φ - θ_i): a pair of numbers (cos kθ_i,
    sin kθ_i), and all of them must span the plane. The smaller eigenvalue of their Gram matrix is
    (count - |Σ_i e^{2jkθ_i}|)/2; the angles maximise its least over the first harmonics.
    """
    grid = np.arange(260) * math.pi / 260
    turns = np.exp(2j * np.outer(grid, np.arange(1, _SPANNED + 1)))
    if count <= 3:
        sums = np.abs(1 + turns[:, None] + turns[None] * (count == 3)).max(-1)
        pair = np.unravel_index(np.argmin(sums), sums.shape)
        return np.array([0.0, *grid[list(pair)]])[:count]
    chosen = projection_angles(count - 1)
    known = np.exp(2j * np.outer(chosen, np.arange(1, _SPANNED + 1))).sum(0)
    return np.append(chosen, grid[np.argmin(np.abs(known + turns).max(-1))])


def dominant_oscillation(x: Values, y: Values) -> Oscillation | None:
    """The oscillation most of the power of `y` [N, D] belongs to, if there is one; NaN = gap."""
    frequency = _fundamental(x, y) if enough(y) else None
    if frequency is None:
        return None
    frequency = _refined(x, y, frequency)
    span = float(np.ptp(x))
    centers = np.linspace(x.min(), x.max(), max(3, math.ceil(_CENTERS * span * frequency / 6) + 1))
    slow = np.ones(len(centers), dtype=complex)
    values = np.ones(len(x), dtype=complex)
    if span * frequency > _STEADY_CYCLES * 2 * math.pi:
        amplitudes = _demodulated(x, y, frequency, centers)
        _, _, directions = np.linalg.svd(amplitudes, full_matrices=False)
        slow = _unit(amplitudes @ directions[0].conj())
        values = _unit(np.interp(x, centers, slow.real) + 1j * np.interp(x, centers, slow.imag))
        order = np.argsort(x)
        phase = np.angle(values) + frequency * x
        sharp = SharpenedPhase(x[order], y[order], phase[order], frequency)
        values, slow = (z * np.exp(1j * sharp.bend(at)) for z, at in ((values, x), (slow, centers)))
    power = np.abs(np.fft.fft(slow[:-1])) ** 2
    offsets = 2 * math.pi * np.fft.fftfreq(len(power), d=centers[1] - centers[0])
    kept = power > 1e-4 * power.max()
    return Oscillation(
        frequency,
        np.asarray(values * np.exp(1j * frequency * x)),
        offsets[kept],
        np.sqrt(power[kept]),
    )


def _unit(values: NDArray[np.complex128]) -> NDArray[np.complex128]:
    size = np.abs(values)
    return np.where(size > 0, values / np.where(size > 0, size, 1), 1)


def _fundamental(x: Values, y: Values) -> float | None:
    """The lowest frequency whose harmonics together hold nearly the most power."""
    omega, power = periodogram(x, y)
    span = float(x.max() - x.min())
    candidates = omega[(omega > _LEAST_CYCLES * 2 * math.pi / span) & (omega < omega[-1] / 2)]
    if not len(candidates):
        return None
    total = np.concatenate([[0.0], power.cumsum()])

    def band(centers: Values, width: float) -> Values:
        reach = np.maximum(width * centers, math.pi / span)
        first, last = (
            np.searchsorted(omega, centers - reach),
            np.searchsorted(omega, centers + reach),
        )
        return np.asarray(total[last] - total[first])

    def comb(width: float) -> Values:
        return np.asarray(
            sum(band(k * candidates, width) / math.sqrt(k) for k in range(1, _HARMONICS + 1))
        )

    wide, narrow = comb(0.06), comb(0.02)
    lowest = candidates[np.argmax(wide >= 0.9 * wide.max())]
    near = np.abs(candidates / lowest - 1) < 0.12
    found = candidates[near][np.argmax(narrow[near])]
    share = sum(band(np.array([k * found]), 0.06)[0] for k in range(1, _HARMONICS + 1))
    return float(found) if share >= _LEAST_SHARE else None


def _refined(x: Values, y: Values, frequency: float) -> float:
    """The frequency near `frequency` for which harmonics explain the data best.

    By the evidence of a harmonic regression, in pieces of a few periods so that drift does no harm.
    """
    length = _STEADY_CYCLES * 2 * math.pi / frequency
    edges = np.arange(x.min(), x.max(), length)
    piece = np.searchsorted(edges, x, side="right") - 1
    rows, inside = _padded(np.argsort(piece, kind="stable"), np.bincount(piece))
    observed = (~np.isnan(y[rows]) & inside[..., None]).transpose(0, 2, 1)  # pieces D rows
    values = np.nan_to_num(y[rows]).transpose(0, 2, 1) * observed
    orders = np.arange(1, _HARMONICS + 3)
    shares = np.concatenate([[1.0], 1 / orders, 1 / orders])
    found, best = frequency, -math.inf
    for candidate in frequency * np.linspace(0.88, 1.12, 97):
        waves = _harmonics(x, candidate, len(orders)) * shares
        evidence = _evidence(waves[rows], values, observed)
        if evidence > best:
            found, best = float(candidate), evidence
    return found


def _harmonics(x: Values, frequency: float, count: int) -> Values:
    """1, cos kωx of k = 1 … count, and sin kωx: [N, 2 count + 1]."""
    turn = np.exp(1j * frequency * x)
    powers = np.cumprod(np.broadcast_to(turn[:, None], (len(x), count)), axis=1)
    return np.concatenate([np.ones((len(x), 1)), powers.real, powers.imag], axis=1)


def _padded(order: Indices, counts: Indices) -> tuple[Indices, NDArray[np.bool_]]:
    """`order` cut into runs of `counts`, as rows [runs, longest], and which of them are real."""
    first = np.cumsum(counts) - counts
    return _windows(order, first, first + counts)


def _windows(order: Indices, first: Indices, last: Indices) -> tuple[Indices, NDArray[np.bool_]]:
    """order[first:last] of each pair, side by side [pairs, longest], and which are real."""
    place = first[:, None] + np.arange(max(1, int((last - first).max())))
    inside = place < last[:, None]
    return order[np.where(inside, place, 0)], inside


def _evidence(waves: Values, y: Values, observed: NDArray[np.bool_]) -> float:
    """Σ log N(y; 0, ΦΦᵀ + σ²I) with σ² = 0.02, without constants, over pieces K and outputs D.

    Φ [K, n, F] with few columns; y [K, D, n] is 0 where `observed` is not.
    """
    noise = 0.02
    seen = waves[:, None] * observed[..., None]  # K D n F
    precision = np.eye(waves.shape[-1]) + seen.swapaxes(-1, -2) @ waves[:, None] / noise
    moment = y @ waves / noise
    explained = (moment * np.linalg.solve(precision, moment[..., None])[..., 0]).sum()
    return float(explained - np.linalg.slogdet(precision)[1].sum()) / 2


def _demodulated(x: Values, y: Values, frequency: float, centers: Values) -> NDArray[np.complex128]:
    """Slow complex amplitudes [T, D] of the fundamental, in windows that move over the series.

    Local least squares with harmonics, so that they do not leak, and with a slope, so that a drift
    does no harm at the ends; an output that was hardly observed in a window counts little there.
    """
    width = _WINDOW * 2 * math.pi / frequency
    harmonics = 3
    waves = _harmonics(x, frequency, harmonics)
    observed = ~np.isnan(y)
    filled = np.where(observed, y, 0.0)
    amplitudes = np.zeros((len(centers), y.shape[1]), dtype=complex)
    support = np.zeros((len(centers), y.shape[1]))
    order = np.argsort(x)
    first, last = np.searchsorted(x[order], centers + np.array([[-4], [4]]) * width)
    fundamental = [1, 1 + harmonics]
    ridge = np.diag([1e-3] * waves.shape[1] + [1e-1] * len(fundamental))
    most = max(1, _AT_ONCE // max(1, int((last - first).max())))
    for start in range(0, len(centers), most):
        some = slice(start, start + most)
        near, inside = _windows(order, first[some], last[some])  # T n
        lag = (x[near] - centers[some, None]) / width
        weight = np.exp(-(lag**2) / 2) * inside
        local = np.concatenate([waves[near], lag[..., None] * waves[near][..., fundamental]], -1)
        for output in range(y.shape[1]):
            seen = weight * observed[near, output]
            weighted = (local * seen[..., None]).swapaxes(-1, -2)
            moment = weighted @ filled[near, output][..., None]
            solution = np.linalg.solve(weighted @ local + ridge, moment)[..., 0]
            amplitudes[some, output] = solution[:, 1] - 1j * solution[:, 1 + harmonics]
            support[some, output] = seen.sum(1) / np.maximum(weight.sum(1), 1e-300)
    size = np.sqrt((np.abs(amplitudes) ** 2).mean(0))
    return np.asarray(amplitudes / np.where(size > 0, size, 1) * support**2)
