"""Where a bank of oscillators starts: at the spectrum of all channels.

    peaks of Σ_d |Σ_n taper · y_nd e^{-jωt_n}|²;   loadings by ridge regression on their waves

A long record is looked at in stretches, whose powers add up: loadings are then the strongest
pattern of amplitude and phase over the outputs at each peak.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from deeplfm.models.starts.spectrum import fourier_sums
from deeplfm.statespace.record import Record

Values = NDArray[np.float64]
Waves = NDArray[np.complex128]

STRETCH = 1500  # rows, at most, over which a spectrum is taken
_STRETCHES = 8  # that are looked at, spread over the record
_OVERSAMPLING = 8  # grid points per resolvable frequency
_APART = 1.75  # resolvable frequencies between two peaks: the width of a tapered line
_RIDGE = 3.0  # of the regression on waves, in rows
_ALIKE = 0.02  # difference of peaks that the grid of frequencies can make
_DENSEST = 8  # times as many frequencies as rows of a stretch: rows in bursts ask for no more


class Spectrum(NamedTuple):
    """Frequencies [K] of the strongest peaks and loadings [D, K] there; the span of a stretch."""

    frequency: Values
    loadings: Waves
    span: float


def spectral_start(record: Record, count: int, known: Sequence[float] = ()) -> Spectrum:
    """The `count` strongest oscillations, fewer where the spectrum has no room for as many.

    Frequencies that are `known` come first, and count.
    """
    stretches = _stretches(record)
    span = float(np.median([np.ptp(times) for times, _ in stretches])) or record.span[1]
    step = 2 * math.pi / (_OVERSAMPLING * span)
    most = _OVERSAMPLING * _DENSEST * max(len(times) for times, _ in stretches)
    last = min(math.pi / record.step / step, most)
    multiples = np.arange(_OVERSAMPLING - 2, max(_OVERSAMPLING, last), dtype=np.float64)
    power = np.zeros(len(multiples))
    for times, values in stretches:
        for column in values.T:
            seen = ~np.isnan(column)
            place = (times[seen] - times[0]) / max(np.ptp(times), 1e-300)
            taper = np.sin(math.pi * place) ** 2
            weighted = taper * column[seen]
            power += np.abs(fourier_sums(step * (times[seen] - times[0]), weighted, multiples)) ** 2
    for one in known:
        power[np.abs(step * multiples - one) < _APART * _OVERSAMPLING * step] = 0
    found = step * multiples[_peaks(power, count - len(known))]
    frequency = np.concatenate([np.array(known), found])
    return Spectrum(frequency, _loadings(stretches, frequency), span)


def _stretches(record: Record) -> list[tuple[Values, Values]]:
    """Times and centred targets of some stretches of rows; trends are taken off where there are."""
    order = np.lexsort((record.times, record.series))
    ends = np.flatnonzero(np.diff(record.series[order])) + 1
    pieces = []
    for rows in np.split(order, ends):
        parts = max(1, math.ceil(len(rows) / STRETCH))
        pieces += np.array_split(rows, parts)
    pieces = [rows for rows in pieces if len(rows) > 3] or [order]
    chosen = np.linspace(0, len(pieces) - 1, min(len(pieces), _STRETCHES)).round().astype(int)
    found = []
    for rows in (pieces[k] for k in chosen):
        times = record.times[rows]
        found.append((times, _centred(times, record.targets[rows], record.trend)))
    return found


def _centred(times: Values, targets: Values, trend: bool) -> Values:
    centred = targets.copy()
    for column in centred.T:
        seen = ~np.isnan(column)
        if not seen.any():
            continue
        x = np.stack([np.ones(len(times)), times - times.mean()], 1)[:, : 1 + trend]
        column -= x @ np.linalg.lstsq(x[seen], column[seen], rcond=None)[0]
    return centred


def _peaks(power: Values, count: int) -> NDArray[np.int64]:
    # Where rows come in pairs on a grid a wave has aliases: the slowest of equal peaks is taken.
    left = power * np.linspace(1, 1 - _ALIKE, len(power))
    width = math.ceil(_APART * _OVERSAMPLING)
    found: list[int] = []
    while len(found) < count and left.max(initial=0.0) > 0:
        peak = int(left.argmax())
        found.append(peak)
        left[max(0, peak - width) : peak + width + 1] = 0
    return np.array(found, dtype=np.int64)


def _loadings(stretches: list[tuple[Values, Values]], frequency: Values) -> Waves:
    """The strongest pattern over the outputs at each frequency, over all stretches."""
    outputs = stretches[0][1].shape[1]
    found = []
    for times, values in stretches:
        angle = np.outer(times - times[0], frequency)
        waves = np.concatenate([np.cos(angle), np.sin(angle)], 1)
        part = np.zeros((outputs, len(frequency)), dtype=complex)
        for d, column in enumerate(values.T):
            seen = ~np.isnan(column)
            x = waves[seen]
            gram = x.T @ x + _RIDGE * np.eye(x.shape[1])
            cosines, sines = np.split(np.linalg.solve(gram, x.T @ column[seen]), 2)
            part[d] = cosines + 1j * sines
        found.append(part)
    every = np.stack(found)  # [stretches, D, K]
    cross = np.einsum("wdk,wek->kde", every, every.conj()) / len(every)
    sizes, patterns = np.linalg.eigh(cross)
    return np.asarray((patterns[..., -1] * np.sqrt(np.maximum(sizes[:, -1:], 0))).T)
