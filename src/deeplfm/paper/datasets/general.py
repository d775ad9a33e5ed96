"""Series without a heart in them: gaps and forecasts of what statsmodels brings and of simulations.

    co2-gap@90          18 months from row 90 are hidden, the rest is seen
    co2-forecast@180    36 months from row 180 are hidden, and only what lies before is seen

`SOURCES` says of every series what is hidden where, and which periods a user would know.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import final

import numpy as np

from deeplfm.data.series import Rows, Series
from deeplfm.errors import InputError
from deeplfm.paper.datasets import general_series, statsmodels_series
from deeplfm.paper.datasets.registry import Folder, data_set

TASK = "held_out"
SEEDS = 3  # of simulations
_MACRO_GAPS, _MACRO_GROUPS = (25, 70, 115, 160), 3  # rows where four outputs of twelve are hidden


@final
@dataclass(frozen=True)
class Source:
    """A series and its tests.

    make:    makes it of a seed.
    gap:     how many rows a gap has.
    gaps:    where gaps begin, one run each; of several outputs only one is hidden at a time.
    ahead:   how many rows a forecast has.
    origins: where forecasts begin, one run each.
    periods: what a user knows of its periods, in rows, the shortest first.
    seeds:   how many seeds it has.
    panel:   its outputs are subjects of one system.
    """

    make: Callable[[int], Series]
    gap: int = 0
    gaps: tuple[int, ...] = ()
    ahead: int = 0
    origins: tuple[int, ...] = ()
    periods: tuple[float, ...] = ()
    seeds: int = 1
    panel: bool = False


def _read(make: Callable[[], Series]) -> Callable[[int], Series]:
    """The same series for every seed."""
    return lambda seed: make()


_SIMULATED = partial(
    Source, gap=30, gaps=(90,), ahead=20, origins=tuple(range(130, 221, 10)), seeds=SEEDS
)
SOURCES = {
    "co2": Source(
        _read(statsmodels_series.co2), 18, (90, 180, 270), 36, tuple(range(180, 325, 16)), (12,)
    ),
    "sunspots": Source(
        _read(statsmodels_series.sunspots), 15, (80, 150, 220), 11, tuple(range(190, 299, 12)),
        (11,),
    ),
    "elnino": Source(
        _read(statsmodels_series.elnino), 24, (180, 360, 540), 24, tuple(range(438, 709, 30)), (12,)
    ),
    "nile": Source(
        _read(statsmodels_series.nile), 10, (25, 50, 75), 10, tuple(range(45, 91, 5))
    ),
    "macrodata": Source(
        _read(statsmodels_series.macrodata), 20, tuple(range(_MACRO_GROUPS))
    ),
    "rbf": _SIMULATED(partial(general_series.process, "rbf")),
    "matern32": _SIMULATED(partial(general_series.process, "matern32")),
    "walk": _SIMULATED(general_series.walk),
    "growth": _SIMULATED(general_series.growth),
    "sales": Source(
        general_series.sales, ahead=28, origins=tuple(range(432, 703, 30)),
        periods=(7, general_series.YEAR), seeds=SEEDS,
    ),
    "panel": Source(general_series.panel, ahead=10, origins=(30,), seeds=SEEDS, panel=True),
}  # fmt: skip
RECORDS = tuple(
    f"{name}-{kind}@{place}"
    for name, source in SOURCES.items()
    for kind, places in (("gap", source.gaps), ("forecast", source.origins))
    for place in places
)


def parts_of(record: str) -> tuple[str, str, int]:
    """The source of a record, "gap" or "forecast", and the row where its test begins."""
    cell, _, place = record.partition("@")
    name, _, kind = cell.partition("-")
    if record not in RECORDS:
        raise InputError(
            f"a record must be one of {', '.join(RECORDS[:3])}, …; got {record!r}. Correct it."
        )
    return name, kind, int(place)


@data_set("general", records=RECORDS, tasks=(TASK,), seeds=SEEDS)
def general_record(record: str, seed: int, path: Folder) -> Series:
    """A series up to the end of its test; what is read from statsmodels ignores the seed."""
    name, kind, place = parts_of(record)
    source = SOURCES[name]
    whole = source.make(seed)
    end = place + source.ahead if kind == "forecast" else len(whole.times)
    values = whole.values[:end]
    if kind == "forecast":
        hidden = np.zeros(values.shape, dtype=bool)
        hidden[place:] = True
    else:
        hidden = _gap(values.shape, name, place, source.gap)
    truth = None if whole.truth is None else whole.truth[:end]
    return Series(whole.times[:end], values, whole.names, {TASK: hidden}, truth)


def _gap(shape: tuple[int, ...], name: str, place: int, length: int) -> Rows:
    """What a gap hides: rows of the first output, or of four of twelve, each at its own place."""
    hidden = np.zeros(shape, dtype=bool)
    if name != "macrodata":
        hidden[place : place + length, 0] = True
        return hidden
    for output, start in zip(range(place, shape[1], _MACRO_GROUPS), _MACRO_GAPS, strict=True):
        hidden[start : start + length, output] = True
    return hidden
