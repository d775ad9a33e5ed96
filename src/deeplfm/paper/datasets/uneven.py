"""Uneven sampling: series in which every output was observed at times of its own."""

from dataclasses import replace

import numpy as np

from deeplfm.data.series import Series
from deeplfm.errors import InputError
from deeplfm.paper.datasets.physio import RECORDS, physio
from deeplfm.paper.datasets.registry import Folder, data_set


def uneven(series: Series, share: float = 0.5, seed: int = 0) -> Series:
    """`series` without a random `share` of the observations of each output, also inside the tests.

    Each output loses observations at times of its own, and always keeps one. Rows without any
    observation are dropped.
    """
    if not 0 <= share < 1:
        raise InputError(f"share must be at least 0 and below 1; got {share}. Pass 0.5, say.")
    random = np.random.default_rng(seed)
    values = series.values.copy()
    for column in values.T:
        seen = np.flatnonzero(~np.isnan(column))
        count = min(round(share * len(seen)), max(len(seen) - 1, 0))
        column[random.choice(seen, size=count, replace=False)] = np.nan
    keep = ~np.isnan(values).all(axis=1)
    return replace(
        series,
        times=series.times[keep],
        values=values[keep],
        tests={name: mask[keep] for name, mask in series.tests.items()},
        truth=None if series.truth is None else series.truth[keep],
    )


@data_set("uneven", records=RECORDS, kinds=("series",))
def uneven_record(record: str, seed: int, path: Folder) -> Series:
    """A physiological record without half of its observations, the same half for every model."""
    return uneven(physio(record, path), seed=RECORDS.index(record))
