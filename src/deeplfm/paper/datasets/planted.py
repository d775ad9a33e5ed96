"""Series on which a check must warn, and series on which it must not.

    for name in PLANTED: times, values, recipe = planted_series(name)

Failures are planted: the model is wrong there, or far from what it says it knows; the last is the
forecast of a patient's record by DLFM-RFF, whose 90 % intervals cover 30 %. Easy series are what
states were made for. Both lists were fixed before any threshold of the check was chosen.
"""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from deeplfm.errors import InputError
from deeplfm.models import FourierDLFM, MarkovDLFM, ModelSettings
from deeplfm.paper.datasets.physio import physio

Values = NDArray[np.float64]
Draw = Callable[[np.random.Generator], "Values | tuple[Values, Values]"]

_ROWS = 300
_ICU, _FORECAST = "3105502", 975  # the record, and the rows before its forecast


class PlantedSeries(NamedTuple):
    """Times [N], values [N, D] with NaN where nothing was observed, and the recipe to fit."""

    times: Values
    values: Values
    recipe: ModelSettings


def planted_series(name: str, path: Path | str | None = None) -> PlantedSeries:
    """The series of this name, of `PLANTED` or `EASY`; `path` is the folder of data files."""
    every = (*PLANTED, *EASY)
    if name not in every:
        raise InputError(f"name must be one of {every}; got {name!r}. Choose one of them.")
    if name == "icu forecast":
        record = physio(_ICU, path)
        return PlantedSeries(record.times[:_FORECAST], record.values[:_FORECAST], FourierDLFM())
    found = _DRAWN[name](np.random.default_rng((every.index(name), 19)))
    times, values = found if isinstance(found, tuple) else (_grid(len(found)), found)
    recipe = MarkovDLFM()
    if name == "wrong period hint":
        recipe = MarkovDLFM(modes=2, periods=(17.0, 29.0), trend="none")
    return PlantedSeries(times, values.reshape(len(times), -1), recipe)


def _grid(rows: int = _ROWS) -> Values:
    return np.arange(float(rows))


def _noise(random: np.random.Generator, size: float, *shape: int) -> Values:
    return size * random.standard_normal(shape or (_ROWS,))


def _wave(period: float, phase: float = 0.0, rows: int = _ROWS) -> Values:
    return np.sin(2 * np.pi * _grid(rows) / period + phase)


def _autoregression(random: np.random.Generator, *weights: float, rows: int = _ROWS) -> Values:
    """y_n = Σ_l weights_l y_{n-l} + ε_n, with 200 rows before the first."""
    values = np.zeros(rows + 200)
    for n in range(len(weights), len(values)):
        past = values[n - len(weights) : n][::-1]
        values[n] = past @ np.array(weights) + random.standard_normal()
    return np.asarray(values[200:])


def _swing(random: np.random.Generator, period: float, radius: float, rows: int = _ROWS) -> Values:
    """A damped oscillator that noise keeps going, of unit variance."""
    weights = 2 * radius * np.cos(2 * np.pi / period), -(radius**2)
    values = _autoregression(random, *weights, rows=rows)
    return np.asarray(values / values.std())


def _process(random: np.random.Generator, kernel: Callable[[Values], Values]) -> Values:
    """A draw of a Gaussian process."""
    apart = np.abs(_grid()[:, None] - _grid())
    values, vectors = np.linalg.eigh(kernel(apart))
    drawn = vectors * np.sqrt(np.maximum(values, 0)) @ random.standard_normal(_ROWS)
    return np.asarray(drawn)


def _walk_with_a_jump(random: np.random.Generator) -> Values:
    walk = _noise(random, 1.0).cumsum()
    walk[180:] += 60.0
    return walk


def _unrelated(random: np.random.Generator) -> Values:
    """Walks that have nothing to do with each other, and look as if they had."""
    return _noise(random, 1.0, 240, 5).cumsum(0)


def _wrong_hint(random: np.random.Generator) -> Values:
    return 2 * _wave(12.0) + _wave(6.0, 0.4) + _noise(random, 0.2)


def _louder(random: np.random.Generator) -> Values:
    growth = 10 ** (_grid() / _ROWS)
    return _wave(25.0) + 0.1 * growth * random.standard_normal(_ROWS)


def _uneven(random: np.random.Generator) -> tuple[Values, Values]:
    times = np.sort(random.uniform(0, _ROWS, _ROWS))
    return times, np.sin(2 * np.pi * times / 30) + _noise(random, 0.2)


def _with_gaps(random: np.random.Generator) -> Values:
    values = _wave(21.0) + 0.5 * _wave(10.5, 1.0) + _noise(random, 0.2)
    values[60:75] = values[200:220] = np.nan
    return values


def _mixed(random: np.random.Generator, channels: int, sources: int) -> Values:
    hidden = [_swing(random, 9.0 + 7 * k, 0.985) for k in range(sources)]
    mixing = random.standard_normal((sources, channels))
    return np.stack(hidden, 1) @ mixing + _noise(random, 0.1, _ROWS, channels)


def _delayed(random: np.random.Generator) -> Values:
    columns = [_wave(32.0, phase) for phase in (0.0, 0.8, 2.0)]
    return np.stack(columns, 1) + _noise(random, 0.2, _ROWS, 3)


_PLANTED: dict[str, Draw] = {
    "random walk with a jump": _walk_with_a_jump,
    "unrelated channels": _unrelated,
    "wrong period hint": _wrong_hint,
    "noise that grows tenfold": _louder,
}
_EASY: dict[str, Draw] = {
    "sine": lambda r: _wave(20.0) + _noise(r, 0.2),
    "two sines": lambda r: _wave(33.0) + 0.7 * _wave(7.3, 1.0) + _noise(r, 0.2),
    "harmonics": lambda r: _wave(24.0) + 0.6 * _wave(12.0, 1.0) + 0.4 * _wave(8.0) + _noise(r, 0.1),
    "AR(1)": lambda r: _autoregression(r, 0.9),
    "AR(2)": lambda r: _autoregression(r, 1.5, -0.75),
    "damped oscillator": lambda r: _swing(r, 15.0, 0.97) + _noise(r, 0.1),
    "two damped oscillators": lambda r: (
        _swing(r, 40.0, 0.98) + 0.7 * _swing(r, 8.0, 0.98) + _noise(r, 0.1)
    ),
    "wandering wave": lambda r: (
        np.sin(2 * np.pi * _grid() / 18 + 0.08 * r.standard_normal(_ROWS).cumsum())
        + _noise(r, 0.15)
    ),
    "trend and season": lambda r: 0.03 * _grid() + _wave(12.0) + _noise(r, 0.3),
    "trend": lambda r: 0.02 * _grid() + _noise(r, 0.3),
    "level and noise": lambda r: 5.0 + _noise(r, 1.0),
    "walk and noise": lambda r: _noise(r, 0.3).cumsum() + _noise(r, 0.6),
    "week and month": lambda r: _wave(7.0) + 0.8 * _wave(30.4, 2.0) + _noise(r, 0.4),
    "Matérn-3/2": lambda r: _process(r, lambda d: (1 + d / 15) * np.exp(-d / 15)) + _noise(r, 0.1),
    "smooth process": lambda r: (
        _process(r, lambda d: np.exp(-((d / 18) ** 2) / 2)) + _noise(r, 0.15)
    ),
    "uneven times": _uneven,
    "gaps": _with_gaps,
    "three mixed channels": lambda r: _mixed(r, 3, 2),
    "seven mixed channels": lambda r: _mixed(r, 7, 3),
    "delayed channels": _delayed,
}
_DRAWN = _PLANTED | _EASY
PLANTED = (*_PLANTED, "icu forecast")
EASY = tuple(_EASY)
