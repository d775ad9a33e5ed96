"""TIMELINE: rows of series in the order of time, and the few distinct steps between them.

    timeline = order_in_time(times, series);   timeline.table(y): [N, D] → [B, N', D]

Series are rows of one padded table; what is asked at other times is a row without an observation.
A transition is computed once for every distinct step.
"""

from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
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
    early: which steps end at or before the begin of their series, [T]; None: none does.
    """

    steps: Float[Tensor, " T"]
    step: Int[Tensor, "B N"]
    series: Places
    row: Places
    early: Bool[Tensor, " T"] | None = None

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


def order_in_time(
    times: Values, series: Places | None = None, begins: Values | None = None
) -> Timeline:
    """The timeline of rows with times [n]; `series` [n] are numbers from 0, one by default.

    `begins` are the times [B] where series begin, where some rows come before.
    """
    own = np.zeros(len(times), dtype=np.int64) if series is None else series
    order = np.lexsort((times, own))
    sorted_series = own[order]
    first = np.searchsorted(sorted_series, np.arange(int(sorted_series[-1]) + 1))
    row = np.empty(len(times), dtype=np.int64)
    row[order] = np.arange(len(times)) - first[sorted_series]
    steps, which = steps_between(times[order], first)
    early = None
    if begins is not None and (times < begins[own]).any():
        before = times[order] <= begins[sorted_series]
        both, number = np.unique(2 * which + before, return_inverse=True)
        steps, early = steps[both // 2], torch.tensor(both % 2 == 1)
        which = number.astype(np.int32)
    step = np.zeros((len(first), int(row.max()) + 1), dtype=np.int32)
    step[sorted_series, row[order]] = which
    return Timeline(torch.tensor(steps), torch.tensor(step), own, row, early)


def steps_between(times: Values, first: Places) -> tuple[Values, NDArray[np.int32]]:
    """The distinct steps to sorted times, 0 to each `first` one, and which of them it is."""
    steps, size = np.diff(times, prepend=times[:1]), np.abs(times)
    # A grid that passes 0 is rounded there as elsewhere; a single far row rounds no other.
    size = np.maximum(size, np.quantile(size, 0.25))
    rounding = _ROUNDING * np.maximum(size, np.concatenate([size[:1], size[:-1]]))
    steps[first] = rounding[first] = 0.0
    return distinct(steps, rounding)


def distinct(steps: Values, rounding: Values) -> tuple[Values, NDArray[np.int32]]:
    """Distinct steps, and which of them each one is; every step is known to its `rounding`."""
    order = np.argsort(steps, kind="stable")
    ordered, near = steps[order], rounding[order]
    jumps = np.diff(ordered, prepend=-np.inf) > np.minimum(near, np.append(0.0, near[:-1]))
    # A long stair of tiny jumps would run together into one step that is none of them.
    start = np.flatnonzero(jumps)
    width = np.maximum.reduceat(ordered, start) - ordered[start]
    if (width > 4 * np.maximum.reduceat(near, start)).any():
        values, number = np.unique(steps, return_inverse=True)
        return values, np.asarray(number, dtype=np.int32)
    which = np.empty(len(steps), dtype=np.int32)
    which[order] = np.cumsum(jumps) - 1
    middle = np.add.reduceat(ordered, start) / np.diff(start, append=len(steps))
    return np.where(ordered[start] == 0, 0.0, middle), which
