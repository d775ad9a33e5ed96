"""Gaps of one channel filled from the others: ridge regression on lags on both sides.

    y_d(t) ≈ b0 + Σ_{c ≠ d} Σ_{|l| ≤ L} b_{cl} y_c(t + l)

It is trained on rows whose lags were all observed. Where some lags of a new row were not, the
regression is solved again without those columns: nothing is imputed, and the error is that of the
columns that are left.
"""

from typing import final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from deeplfm.data import Dataset
from deeplfm.errors import InputError
from deeplfm.paper.baselines.base import Baseline, Mixture, State, Task
from deeplfm.paper.baselines.history import History
from deeplfm.paper.baselines.registry import baseline
from deeplfm.paper.baselines.ridge import (
    Regression,
    check_enough,
    check_grid,
    lagged,
    on_grid,
    places_asked,
)
from deeplfm.shapes import check_count

Values = NDArray[np.float64]


@final
@baseline("lag-ridge", "ridge on lags", on=("grid",), tasks=("imputation",), smoke={"lags": 2})
class LagRidge(Baseline):
    """Imputation of a series on a regular grid with two channels or more.

    lags: how many steps on each side enter the regression.

    It predicts at times of the fit's grid only, gaps and observed times alike; the standard
    deviation is that of held-out residuals. It computes in float64 on the CPU: `device`, `dtype`,
    `seed` and `progress` change nothing.
    """

    def __init__(
        self,
        lags: int = 40,
        seed: int = 0,
        device: str = "auto",
        dtype: str = "float64",
        progress: bool = True,
    ) -> None:
        self.lags = lags
        self.seed = seed
        self.device = device
        self.dtype = dtype
        self.progress = progress

    def check(self, data: Dataset) -> None:
        check_count("lags", self.lags)
        check_grid("LagRidge", data)
        if data.y.shape[1] == 1:
            raise InputError(
                "LagRidge needs other channels to regress on: y must have 2 or more; got 1. "
                "Use PeriodicGP."
            )

    def fit_state(self, task: Task, history: History) -> State:
        times, values = on_grid(task.x, task.y, task.observed)
        penalties, squares = [], 0.0
        for output in range(values.shape[1]):
            regression = _regression(values.numpy(), output, self.lags)
            penalty, error = regression.best_penalty()
            penalties.append(penalty)
            squares += error**2
        history.add(squares / len(penalties))
        numbers = torch.tensor(penalties, dtype=torch.float64)
        return {"x": times, "y": values, "penalties": numbers}

    def mixture(self, state: State, x: Tensor, num_samples: int, seed: int) -> Mixture:
        y, penalties = state["y"].cpu().numpy(), state["penalties"].tolist()
        place = places_asked(x, len(y))
        if place.min() < 0 or place.max() >= len(y):
            raise InputError(
                "LagRidge predicts inside the fitted series only; got times before or after it. "
                "Use AutoregressiveRidge."
            )
        predicted = [
            _predicted(y, output, self.lags, place, penalty)
            for output, penalty in enumerate(penalties)
        ]
        mean, std = (np.stack(columns, axis=-1)[None] for columns in zip(*predicted, strict=True))
        return torch.tensor(mean), torch.tensor(std)


def _columns(y: Values, output: int, lags: int) -> Values:
    """The regressors [T, (D - 1)(2 lags + 1)] of an output, NaN where not observed."""
    others = np.delete(y, output, axis=1)
    return lagged(others, np.arange(-lags, lags + 1)).reshape(len(y), -1)


def _regression(y: Values, output: int, lags: int) -> Regression:
    """The regression of an output on the rows where it and all its lags were observed."""
    columns = _columns(y, output, lags)
    complete = ~np.isnan(columns).any(1) & ~np.isnan(y[:, output])
    check_enough(int(complete.sum()), f"y{output}")
    return Regression.of(columns[complete], y[complete, output])


def _predicted(
    y: Values, output: int, lags: int, place: NDArray[np.intp], penalty: float
) -> tuple[Values, Values]:
    """Mean and standard deviation [n]: one regression for each set of lags that some row has."""
    regression = _regression(y, output, lags)
    asked = _columns(y, output, lags)[place]
    patterns, which = np.unique(~np.isnan(asked), axis=0, return_inverse=True)
    filled = np.concatenate([np.ones((len(asked), 1)), np.nan_to_num(asked)], axis=1)
    mean, std = np.empty((2, len(place)))
    for k, pattern in enumerate(patterns):
        chosen, rows = np.flatnonzero(pattern), which.reshape(-1) == k
        mean[rows] = filled[rows] @ regression.solve(penalty, chosen)
        std[rows] = regression.held_out_error(penalty, chosen)
    return mean, std
