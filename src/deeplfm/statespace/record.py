"""RECORD: one or more series as a Markov model sees them, whole, in windows, or at other times.

    record.whole();   record.windows(2, 1000, generator);   record.beside(times)

Functions of unknown weight are with `level` a constant per output, with `trend` a line; answers to
known inputs follow where the physics is known (`known.py`).
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, final

import numpy as np
import torch
from jaxtyping import Bool, Float
from numpy.typing import NDArray
from torch import Tensor

from deeplfm.statespace.timeline import Places, Timeline, Values, order_in_time, steps_between


class Known(NamedTuple):
    """Known inputs: rows of values [n, C] at times [n] of series [n]; sorted, times distinct."""

    times: Values
    series: Places
    values: Values


class Cut(NamedTuple):
    """Rows of a record: their timeline, times, targets and mask, all as tables of B series."""

    timeline: Timeline
    times: Float[Tensor, "B N"]
    targets: Float[Tensor, "B N D"]
    observed: Bool[Tensor, "B N D"]
    rows: NDArray[np.int64] | None  # which rows of the record, [B, N]; None: all, as tables have


@final
@dataclass(frozen=True, eq=False)
class Record:
    """Targets [n, D] at times [n], NaN where they were not observed; `series` numbers from 0.

    Numbers are on the CPU; `device` is where sums over all rows are computed.
    """

    times: Values
    series: Places
    targets: Values
    trend: bool = False
    known: Known | None = None
    level: bool = True
    device: str = "cpu"

    @cached_property
    def timeline(self) -> Timeline:
        """All rows in the order of time."""
        return order_in_time(self.times, self.series, self.begins)

    @cached_property
    def begins(self) -> Values:
        """The time of the first target of every series; that of all where a series has none."""
        seen = ~np.isnan(self.targets).all(1)
        found = np.full(int(self.series.max()) + 1, np.inf)
        np.minimum.at(found, self.series[seen], self.times[seen])
        return np.where(np.isfinite(found), found, self.span[0])

    @property
    def num_outputs(self) -> int:
        """D."""
        return int(self.targets.shape[1])

    @property
    def num_series(self) -> int:
        """How many series there are."""
        return self.timeline.shape[0]

    @cached_property
    def span(self) -> tuple[float, float]:
        """The first time of a target and the length from there; rows beside do not change it."""
        seen = ~np.isnan(self.targets).all(1)
        times = self.times[seen] if seen.any() else self.times
        first = float(times.min())
        return first, float(times.max()) - first or 1.0

    @cached_property
    def step(self) -> float:
        """The usual step from a row to the next of its series."""
        steps = self.timeline.steps.numpy()  # may repeat: some are early
        counts = np.bincount(self.timeline.step.numpy().ravel(), minlength=len(steps))
        positive = steps > 0
        if not positive.any():
            return self.span[1]
        order = np.argsort(steps[positive])
        total = counts[positive][order].cumsum()
        return float(steps[positive][order][np.searchsorted(total, total[-1] / 2)])

    def whole(self) -> Cut:
        """All rows."""
        line = self.timeline
        return _cut(line, line.table(self.times), line.table(self.targets, np.nan), None)

    def windows(self, count: int, length: int, generator: torch.Generator) -> Cut:
        """Stretches of up to `length` rows, each of one series: as many rows as `count` long ones.

        They lie about rows that are drawn at random; near the ends of a series fewer hold a row.
        """
        order, begin, rows_of = self._layout
        usual = np.minimum(rows_of, length)
        number = max(1, round(count * length / float(usual.mean())))
        chosen = torch.randint(len(order), (number,), generator=generator).numpy()
        before = torch.rand(number, generator=generator, dtype=torch.float64).numpy()
        first, size = begin[chosen], usual[chosen]
        latest = first + rows_of[chosen] - size
        starts = np.clip(chosen - (before * size).astype(np.int64), first, latest)
        return self.stretches(order, starts, int(size.max()))

    def stretches(self, order: Places, starts: Places, length: int) -> Cut:
        """Rows of `order` from each of `starts`; where a series ends, the window goes on unseen."""
        places = starts[:, None] + np.arange(length)
        rows = order[np.minimum(places, len(order) - 1)]
        own = (self.series[rows] == self.series[rows[:, :1]]) & (places < len(order))
        times = np.where(own, self.times[rows], self.times[rows[:, :1]])
        times = np.maximum.accumulate(times, axis=1)
        flat = np.arange(rows.size)
        steps, which = steps_between(times.ravel(), flat[::length])
        line = Timeline(
            torch.tensor(steps),
            torch.tensor(which.reshape(rows.shape)),
            flat // length,
            flat % length,
        )
        targets = np.where(own[..., None], self.targets[rows], np.nan)
        return _cut(line, times, targets, rows)

    def beside(self, times: Values, series: Places) -> tuple["Record", Places]:
        """The record with unobserved rows at these times, and where each is among its rows.

        A time that has a row already needs no other.
        """
        order = self._layout.order
        places = np.full(len(times), -1, dtype=np.int64)
        for number in np.unique(series).tolist():
            rows = order[self.series[order] == number]
            asked = np.flatnonzero(series == number)
            near = np.searchsorted(self.times[rows], times[asked])
            there = near < len(rows)
            there[there] = self.times[rows[near[there]]] == times[asked[there]]
            places[asked[there]] = rows[near[there]]
        new = np.flatnonzero(places < 0)
        if not len(new):
            return self, places
        places[new] = len(self.times) + np.arange(len(new))
        empty = np.full((len(new), self.num_outputs), np.nan)
        joined = replace(
            self,
            times=np.concatenate([self.times, times[new]]),
            series=np.concatenate([self.series, series[new]]),
            targets=np.concatenate([self.targets, empty]),
        )
        return joined, places

    @cached_property
    def _layout(self) -> "_Layout":
        order = np.lexsort((self.times, self.series))
        sorted_series = self.series[order]
        begin = np.searchsorted(sorted_series, sorted_series)
        return _Layout(order, begin, np.bincount(self.series)[sorted_series])


class _Layout(NamedTuple):
    """Rows in the order of series and time; of each the begin and the size of its series."""

    order: Places
    begin: Places
    rows_of: Places


def _cut(line: Timeline, times: Values, targets: Values, rows: Places | None) -> Cut:
    observed = ~np.isnan(targets)
    return Cut(
        line,
        torch.tensor(times),
        torch.tensor(np.where(observed, targets, 0.0)),
        torch.tensor(observed),
        rows,
    )
