"""RECORD: one or more series as a Markov model sees them, whole, in windows, or at other times.

    record.whole();   record.windows(2, 1000, generator);   record.beside(times)

Functions of unknown weight are a constant per output, and with `trend` a line; answers to known
inputs follow where the physics is known (`known.py`).
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, final

import numpy as np
import torch
from jaxtyping import Bool, Float
from numpy.typing import NDArray
from torch import Tensor

from deeplfm.statespace.timeline import Places, Timeline, Values, distinct, order_in_time


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
    """Targets [n, D] at times [n], NaN where they were not observed; `series` numbers from 0."""

    times: Values
    series: Places
    targets: Values
    trend: bool = False
    known: Known | None = None

    @cached_property
    def timeline(self) -> Timeline:
        """All rows in the order of time."""
        return order_in_time(self.times, self.series)

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
        """The first time, and the length of the record."""
        first = float(self.times.min())
        return first, float(self.times.max()) - first or 1.0

    @cached_property
    def step(self) -> float:
        """The usual step from a row to the next of its series."""
        steps = self.timeline.steps.numpy()
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
        """`count` stretches of `length` rows; every row is as likely to be in one as any other."""
        order = np.lexsort((self.times, self.series))
        last = len(order) - length
        starts = torch.randint(last + 1, (count,), generator=generator).numpy()
        return self.stretches(order, starts, length)

    def stretches(self, order: Places, starts: Places, length: int) -> Cut:
        """Rows of `order` from each of `starts`; where a series ends, the window goes on unseen."""
        rows = order[starts[:, None] + np.arange(length)]
        own = self.series[rows] == self.series[rows[:, :1]]
        times = np.where(own, self.times[rows], self.times[rows[:, :1]])
        times = np.maximum.accumulate(times, axis=1)
        steps, which = distinct(np.diff(times, axis=1, prepend=times[:, :1]).ravel(), self._largest)
        flat = np.arange(rows.size)
        line = Timeline(
            torch.tensor(steps),
            torch.tensor(which.reshape(rows.shape)),
            flat // length,
            flat % length,
        )
        targets = np.where(own[..., None], self.targets[rows], np.nan)
        return _cut(line, times, targets, rows)

    def beside(self, times: Values, series: Places) -> tuple["Record", Places]:
        """The record with unobserved rows at these times, and where those are among its rows."""
        empty = np.full((len(times), self.num_outputs), np.nan)
        joined = replace(
            self,
            times=np.concatenate([self.times, times]),
            series=np.concatenate([self.series, series]),
            targets=np.concatenate([self.targets, empty]),
        )
        return joined, np.arange(len(self.times), len(joined.times))

    @property
    def _largest(self) -> float:
        return float(np.abs(self.times).max(initial=0.0))


def _cut(line: Timeline, times: Values, targets: Values, rows: Places | None) -> Cut:
    observed = ~np.isnan(targets)
    return Cut(
        line,
        torch.tensor(times),
        torch.tensor(np.where(observed, targets, 0.0)),
        torch.tensor(observed),
        rows,
    )
