"""TIMELINE: rows of series in the order of time, and the few distinct steps between them.

    timeline = order_in_time(times, series);   timeline.table(y): [N, D] → [B, N', D]

Series are rows of one padded table; what is asked at other times is a row without an observation.
A transition is computed once for every distinct step.
"""

from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

Values = NDArray[np.float64]
Places = NDArray[np.int64]

_ROUNDING = 8 * np.finfo(np.float64).eps  # of a time: two steps that differ by less are one


@final
@dataclass(frozen=True, eq=False)
class Timeline:
    """B series of up to N rows.

    steps: the distinct steps [T]; step: which of them leads to a row [B, N], of the first row any.
    series, row: the place in the table of every row as it was given, [n] each.
    """

    steps: Float[Tensor, " T"]
    step: Int[Tensor, "B N"]
    series: Places
    row: Places

    @property
    def shape(self) -> tuple[int, int]:
        """B and N."""
        return self.step.shape[0], self.step.shape[1]

    def table(self, values: Values, empty: float = 0.0) -> Values:
        """Rows [n, ...] as they were given, in the table [B, N, ...]; `empty` where none is."""
        found = np.full((*self.shape, *values.shape[1:]), empty, dtype=values.dtype)
        found[self.series, self.row] = values
        return found

    def rows(self, table: Values) -> Values:
        """The rows [n, ...] of a table [B, N, ...], in the order in which they were given."""
        return np.asarray(table[self.series, self.row])


def order_in_time(times: Values, series: Places | None = None) -> Timeline:
    """The timeline of rows with times [n]; `series` [n] are numbers from 0, one by default."""
    own = np.zeros(len(times), dtype=np.int64) if series is None else series
    order = np.lexsort((times, own))
    sorted_series = own[order]
    first = np.searchsorted(sorted_series, np.arange(int(sorted_series[-1]) + 1))
    row = np.empty(len(times), dtype=np.int64)
    row[order] = np.arange(len(times)) - first[sorted_series]
    gaps = np.diff(times[order], prepend=times[order[0]])
    gaps[first] = 0.0
    steps, which = distinct(gaps, float(np.abs(times).max(initial=0.0)))
    step = np.zeros((len(first), int(row.max()) + 1), dtype=np.int32)
    step[sorted_series, row[order]] = which
    return Timeline(torch.tensor(steps), torch.tensor(step), own, row)


def distinct(steps: Values, largest: float) -> tuple[Values, NDArray[np.int32]]:
    """Distinct steps and the number of each one's; times up to `largest` are known to rounding."""
    order = np.argsort(steps, kind="stable")
    jumps = np.diff(steps[order], prepend=-np.inf) > _ROUNDING * largest
    # A long stair of tiny jumps would run together into one step that is none of them.
    number = np.cumsum(jumps) - 1
    start = np.flatnonzero(jumps)
    width = np.maximum.reduceat(steps[order], start) - steps[order][start]
    if (width > 4 * _ROUNDING * largest).any():
        values, number = np.unique(steps, return_inverse=True)
        return values, np.asarray(number, dtype=np.int32)
    which = np.empty(len(steps), dtype=np.int32)
    which[order] = number
    middle = np.add.reduceat(steps[order], start) / np.diff(start, append=len(steps))
    return np.where(steps[order][start] == 0, 0.0, middle), which
