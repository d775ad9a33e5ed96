"""Synthetic cardiac signals: arterial pressure, ECG and intracranial pressure, with gaps.

Quasi-periodic: each beat has its own length, respiration modulates rate and baseline, pulses reach
the three channels with their own delays and shapes. The embedded data set of the project; nothing
in it comes from a patient.
"""

import numpy as np
from numpy.typing import NDArray

from deeplfm.data.series import Series
from deeplfm.shapes import check_count

Values = NDArray[np.float64]

_BEAT, _BREATH, _SLOW = 0.85, 3.7, 300.0  # seconds
_NOISE = np.array([0.05, 0.08, 0.06])
_GAPS = ((0.20, 0.35), (0.40, 0.55), (0.60, 0.75))  # one per channel, in shares of the record


def cardiac(
    num_points: int = 1000, *, rate: float = 25.0, drift: float = 0.0, seed: int = 0
) -> Series:
    """`num_points` samples at `rate` per second; times in seconds, channels standardised.

    With a `drift` beats are slowly longer and shorter by that share, over five minutes.
    Tests: "imputation", one gap per channel, and "extrapolation", the last 2.5 % of all channels.
    """
    check_count("num_points", num_points)
    random = np.random.default_rng(seed)
    times = np.arange(num_points) / rate
    breath = 2 * np.pi * times / _BREATH + random.uniform(0, 2 * np.pi)
    phase = _beat_phase(times, random, drift)
    pressure = _bump(phase, 0.28, 0.09) + 0.35 * _bump(phase, 0.55, 0.07) + 0.15 * np.sin(breath)
    electric = (
        _bump(phase, 0.05, 0.012)
        - 0.25 * _bump(phase, 0.085, 0.015)
        + 0.12 * _bump(phase, 0.93, 0.03)
        + 0.25 * _bump(phase, 0.35, 0.05)
    ) * (1 + 0.1 * np.sin(breath))
    cranial = (
        _bump(phase, 0.33, 0.07)
        + 0.8 * _bump(phase, 0.48, 0.06)
        + 0.55 * _bump(phase, 0.63, 0.07)
        + 0.4 * np.sin(breath + 0.6)
    )
    truth = np.stack([pressure, electric, cranial], axis=1)
    truth = (truth - truth.mean(0)) / truth.std(0)
    values = truth + _NOISE * random.standard_normal(truth.shape)
    imputation, extrapolation = np.zeros((2, *truth.shape), dtype=bool)
    for channel, (start, stop) in enumerate(_GAPS):
        imputation[int(start * num_points) : int(stop * num_points), channel] = True
    extrapolation[int(0.975 * num_points) :] = True
    tests = {"imputation": imputation, "extrapolation": extrapolation}
    return Series(times, values, ("ABP", "ECG", "ICP"), tests, truth)


def _beat_phase(times: Values, random: np.random.Generator, slow: float) -> Values:
    """The phase in [0, 1) of the beat each time falls in; lengths vary by a few per cent."""
    count = int(times[-1] / _BEAT * 2) + 4
    elapsed = np.arange(count) * _BEAT
    drift = 0.03 * np.sin(2 * np.pi * elapsed / _BREATH)
    drift += slow * np.sin(2 * np.pi * elapsed / _SLOW)
    lengths = _BEAT * (1 + drift + 0.02 * random.standard_normal(count))
    starts = np.concatenate([[-random.uniform(0, _BEAT)], lengths]).cumsum()
    beat = np.searchsorted(starts, times, side="right") - 1
    return np.asarray((times - starts[beat]) / lengths[beat])


def _bump(phase: Values, center: float, width: float) -> Values:
    """A pulse once per beat, wrapped around its end."""
    distance = (phase - center + 0.5) % 1 - 0.5
    return np.asarray(np.exp(-((distance / width) ** 2) / 2))
