"""Physiological records on which settings may be chosen, and tasks beside those of the paper.

"block": all channels are missing together, four times; "forecast_100": the last 100 samples.
`origins` are forecasts of 25 samples from ten places; each fit sees only what lies before.
"""

import numpy as np

from deeplfm.data.series import Series
from deeplfm.paper.datasets.physio import physio
from deeplfm.paper.datasets.registry import Folder, data_set
from deeplfm.paper.datasets.uneven import uneven

CHOOSING = (
    "3083337", "3555523", "3029993", "3033031", "3094054", "3096171", "3105502", "3169632",
)  # fmt: skip
ORIGINS = tuple(range(525, 976, 50))
_BLOCKS, _BLOCK, _LONG, _AHEAD = (180, 430, 640, 850), 30, 100, 25
_TASKS = ("imputation", "extrapolation", "block", "forecast_100")


def with_blocks(series: Series) -> Series:
    """The series with the two further tasks."""
    block, last = np.zeros((2, *series.values.shape), dtype=bool)
    for first in _BLOCKS:
        block[first : first + _BLOCK] = True
    last[-_LONG:] = True
    tests = {**series.tests, "block": block, "forecast_100": last}
    return Series(series.times, series.values, series.names, tests)


@data_set("choosing", records=CHOOSING, kinds=("grid",), tasks=_TASKS, seeds=2)
def choosing_record(record: str, seed: int, path: Folder) -> Series:
    """A record with four tasks, the same for every seed."""
    return with_blocks(physio(record, path))


@data_set("choosing-uneven", records=CHOOSING, tasks=("imputation",))
def uneven_choosing_record(record: str, seed: int, path: Folder) -> Series:
    """A record without half of its observations."""
    return uneven(physio(record, path), seed=CHOOSING.index(record))


@data_set(
    "origins",
    records=tuple(f"{record}@{origin}" for record in CHOOSING for origin in ORIGINS),
    kinds=("grid",),
    tasks=("extrapolation",),
)
def origin_record(record: str, seed: int, path: Folder) -> Series:
    """What lies before a place in a record, and the 25 samples after it, as the test."""
    name, _, origin = record.partition("@")
    series = physio(name, path)
    end = int(origin) + _AHEAD
    ahead = np.zeros((end, series.values.shape[1]), dtype=bool)
    ahead[-_AHEAD:] = True
    return Series(series.times[:end], series.values[:end], series.names, {"extrapolation": ahead})


@data_set("scored", records=("3262086", "3269261", "3379471", "3460047", "3600995", "3646209"),
          kinds=(), tasks=_TASKS)  # fmt: skip
def scored_record(record: str, seed: int, path: Folder) -> Series:
    """A record on which nothing is chosen, with the same four tasks."""
    return with_blocks(physio(record, path))
