"""What costs nothing: straight lines over gaps and the last value after them, with or without a
season.

    ŷ(t) = (n y(t - m) + m y(t + n)) / (m + n),   ŷ(t) = y(t - m) where nothing follows

m and n are rows, or whole periods, to what was observed nearest. The spread is that of the same
guess over the observed rows, horizon by horizon.
"""

import math
from abc import abstractmethod
from typing import NamedTuple, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from deeplfm.data import Dataset
from deeplfm.paper.baselines.base import Baseline, Mixture, State, Task
from deeplfm.paper.baselines.history import History
from deeplfm.paper.baselines.registry import baseline
from deeplfm.paper.baselines.ridge import check_grid, on_grid, places_asked
from deeplfm.shapes import check_count

Values = NDArray[np.float64]

_ENOUGH = 8  # errors from which a spread is taken
_LEAST = 1e-6  # spread of what never changed, targets having 1


class Neighbours(NamedTuple):
    """Values beside a place, and how many periods away they are; None where there is none."""

    before: tuple[float, int] | None
    after: tuple[float, int] | None

    def guess(self) -> float:
        """The line between both values, or the one that there is; 0, the mean, without any."""
        if self.before is None or self.after is None:
            known = self.before or self.after
            return 0.0 if known is None else known[0]
        (left, m), (right, n) = self.before, self.after
        return (n * left + m * right) / (m + n)


class Naive(Baseline):
    """The common base: guesses from rows that are whole periods away.

    It predicts at times of the fit's grid and of its continuation on both sides. It computes in
    float64 on the CPU: `device`, `dtype`, `seed` and `progress` change nothing.
    """

    @abstractmethod
    def _period(self) -> int:
        """Rows from one guess to the next."""

    def check(self, data: Dataset) -> None:
        check_count("period", self._period())
        check_grid(type(self).__name__, data)

    def fit_state(self, task: Task, history: History) -> State:
        times, values = on_grid(task.x, task.y, task.observed)
        errors = [spread(column, 1, 0, self._period()) ** 2 for column in values.numpy().T]
        history.add(float(np.mean(errors)))
        return {"x": times, "y": values}

    def mixture(self, state: State, x: Tensor, num_samples: int, seed: int) -> Mixture:
        y = state["y"].cpu().numpy()
        places = places_asked(x, len(y))
        mean, std = np.empty((2, len(places), y.shape[1]))
        for d, column in enumerate(y.T):
            spreads: dict[tuple[int, int], float] = {}
            for row, place in enumerate(places):
                beside = neighbours(column, int(place), self._period())
                m, n = (0 if side is None else side[1] for side in beside)
                if (m, n) not in spreads:
                    spreads[m, n] = spread(column, m, n, self._period())
                mean[row, d], std[row, d] = beside.guess(), spreads[m, n]
        return torch.tensor(mean[None]), torch.tensor(std[None])


@final
@baseline("interpolation", "interpolation or last value", on=("general",))
class Interpolation(Naive):
    """Straight lines over gaps; the last value after the end, and the first before the start."""

    def __init__(
        self, seed: int = 0, device: str = "auto", dtype: str = "float64", progress: bool = True
    ) -> None:
        self.seed = seed
        self.device = device
        self.dtype = dtype
        self.progress = progress

    def _period(self) -> int:
        return 1


@final
@baseline("seasonal-naive", "seasonal naive", on=("general",), smoke={"period": 4})
class SeasonalNaive(Naive):
    """The same phase of the last period, or of the periods before and after a gap.

    period: in rows.
    """

    def __init__(
        self,
        period: int = 12,
        seed: int = 0,
        device: str = "auto",
        dtype: str = "float64",
        progress: bool = True,
    ) -> None:
        self.period = period
        self.seed = seed
        self.device = device
        self.dtype = dtype
        self.progress = progress

    def _period(self) -> int:
        return self.period


def neighbours(column: Values, place: int, period: int) -> Neighbours:
    """What was observed nearest before and after a place, at whole periods from it."""
    steps = (np.flatnonzero(~np.isnan(column)) - place) / period
    steps = steps[steps == np.round(steps)].astype(int)
    before, after = steps[steps < 0], steps[steps > 0]
    left = right = None
    if len(before):
        left = float(column[place + period * before[-1]]), -int(before[-1])
    if len(after):
        right = float(column[place + period * after[0]]), int(after[0])
    return Neighbours(left, right)


def spread(column: Values, before: int, after: int, period: int) -> float:
    """Root mean square error of guesses from so many periods before and after; 0: no such side.

    Where too few rows have such neighbours, the error of half the distance, times √2: errors of a
    wandering series grow so.
    """
    m, n = period * before, period * after
    if not m + n:
        return float(np.nanstd(column)) or _LEAST
    middle = column[m : len(column) - n]
    left, right = column[: len(middle)], column[m + n :]
    if not m or not n:
        guess = left if m else right[: len(middle)]
    else:
        guess = (n * left + m * right) / (m + n)
    errors = (middle - guess)[~np.isnan(middle - guess)] if len(middle) else np.empty(0)
    if len(errors) >= _ENOUGH or max(before, after) <= 1:
        found = float(np.sqrt(np.mean(errors**2))) if len(errors) else float(np.nanstd(column))
        return max(found, _LEAST)
    half = (math.ceil(before / 2), math.ceil(after / 2))
    return math.sqrt(2) * spread(column, *half, period)
