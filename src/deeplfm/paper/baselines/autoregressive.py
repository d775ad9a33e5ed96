"""The end of a series from its past: ridge regression on lags of all channels, iterated forward.

    y_d(t) ≈ b0 + Σ_c Σ_{1 ≤ l ≤ L} b_{cl} y_c(t - l),   predictions enter as the next lags

It is trained on rows whose lags were all observed; on the way forward, predictions fill the gaps.
The standard deviation at a horizon is that of rollouts over blocks held out from the regression.
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
    BLOCKS,
    Regression,
    check_enough,
    check_grid,
    lagged,
    on_grid,
    places_asked,
)
from deeplfm.shapes import check_count

Values = NDArray[np.float64]

_FARTHEST = 200  # steps ahead that rollouts look; after them the error is taken as steady


@final
@baseline(
    "ar-ridge",
    "autoregressive ridge",
    on=("grid",),
    tasks=("extrapolation",),
    smoke={"lags": 2},
)
class AutoregressiveRidge(Baseline):
    """Extrapolation of a series on a regular grid.

    lags: how many steps of the past enter the regression.

    It predicts at the times of the fit's grid, each from what was observed before, and at the
    times that follow. It computes in float64 on the CPU: `device`, `dtype`, `seed` and `progress`
    change nothing.
    """

    def __init__(
        self,
        lags: int = 60,
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
        check_grid("AutoregressiveRidge", data)

    def fit_state(self, task: Task, history: History) -> State:
        times, values = on_grid(task.x, task.y, task.observed)
        y = values.numpy()
        columns = _columns(y, self.lags)
        complete = ~np.isnan(columns).any(1)
        all_columns = np.arange(columns.shape[1])
        coefficients, held_out, squares = [], [], 0.0
        blocks = np.full((len(y), y.shape[1]), -1)
        for output in range(y.shape[1]):
            rows = complete & ~np.isnan(y[:, output])
            check_enough(int(rows.sum()), f"y{output}")
            regression = Regression.of(columns[rows], y[rows, output])
            penalty, error = regression.best_penalty()
            squares += error**2
            coefficients.append(regression.solve(penalty, all_columns))
            held_out.append([regression.solve(penalty, all_columns, k) for k in range(BLOCKS)])
            blocks[rows, output] = regression.blocks
        history.add(squares / y.shape[1])
        without = np.array(held_out).transpose(2, 0, 1)  # p+1 D K
        std = _rollout_error(y, without, blocks, self.lags)
        tensors = {"coefficients": np.stack(coefficients, axis=-1), "std": std}
        return {"x": times, "y": values} | {n: torch.tensor(v) for n, v in tensors.items()}

    def mixture(self, state: State, x: Tensor, num_samples: int, seed: int) -> Mixture:
        y, coefficients, std = (state[n].cpu().numpy() for n in ("y", "coefficients", "std"))
        place = places_asked(x, len(y))
        if place.min() < 0:
            raise InputError(
                "AutoregressiveRidge predicts the fitted times and what follows; got times before. "
                "Turn the series round."
            )
        predicted, horizon = _walk(y, coefficients, self.lags, int(place.max()) + 1)
        spread = std[np.clip(horizon[place], 1, len(std)) - 1, np.arange(y.shape[1])]
        spread = np.where(horizon[place] > 0, spread, 1.0)  # the first rows have no past
        return torch.tensor(predicted[place][None]), torch.tensor(spread[None])


def _columns(y: Values, lags: int) -> Values:
    """The regressors [T, D lags]: y at t - 1, t - 2, … of each channel, NaN if not observed."""
    return lagged(y, -np.arange(1, lags + 1)).reshape(len(y), -1)


def _walk(
    y: Values, coefficients: Values, lags: int, length: int
) -> tuple[Values, NDArray[np.intp]]:
    """Predictions [length, D] from the rows before, and how many steps ahead each one is.

    A value one row after an observed one is 1 step ahead. The first rows, which have no past, are
    predicted as the mean, with 0 steps.
    """
    filled = np.full((max(length, len(y)), y.shape[1]), np.nan)
    filled[: len(y)] = y
    predicted = np.zeros_like(filled)
    horizon = np.zeros(filled.shape, dtype=np.intp)
    filled[:lags] = _bridged(filled[:lags])
    steps_ahead = np.ones(y.shape[1], dtype=np.intp)
    for t in range(lags, len(filled)):
        past = filled[t - lags : t][::-1].T.reshape(-1)
        predicted[t] = coefficients[0] + past @ coefficients[1:]
        horizon[t] = steps_ahead
        missing = np.isnan(filled[t])
        filled[t, missing] = predicted[t, missing]
        steps_ahead = np.where(missing, steps_ahead + 1, 1)
    return predicted, horizon


def _bridged(y: Values) -> Values:
    """y with straight lines over gaps, the nearest value at the ends, 0 where nothing is seen."""
    filled, place = y.copy(), np.arange(len(y))
    for column in filled.T:
        seen = ~np.isnan(column)
        column[~seen] = np.interp(place[~seen], place[seen], column[seen]) if seen.any() else 0.0
    return filled


def _rollout_error(y: Values, without: Values, blocks: NDArray[np.intp], lags: int) -> Values:
    """Root mean square error [horizon, D] of rollouts from each row to the end of its block.

    without: coefficients [p + 1, D, K] of regressions that did not see block k.
    """
    complete = np.asarray(~np.isnan(_columns(y, lags)).any(1))
    squares, counts = np.zeros((2, _FARTHEST, y.shape[1]))
    for k in range(without.shape[-1]):
        inside = np.flatnonzero((blocks == k).any(1))
        last = inside.max()
        starts = np.array([t for t in range(inside.min(), last + 1) if complete[t]])
        windows = np.stack([y[t - lags : t] for t in starts])  # starts lags D
        for ahead in range(_FARTHEST):
            alive = starts + ahead <= last
            starts, windows = starts[alive], windows[alive]
            if not len(starts):
                break
            past = windows[:, ::-1].transpose(0, 2, 1).reshape(len(starts), -1)
            guess = without[0, :, k] + past @ without[1:, :, k]
            square = (guess - y[starts + ahead]) ** 2
            squares[ahead] += np.nansum(square, axis=0)
            counts[ahead] += (~np.isnan(square)).sum(0)
            windows = np.concatenate([windows[:, 1:], guess[:, None]], axis=1)
    reached = counts.min(1) > 0
    return np.maximum.accumulate(np.sqrt(squares[reached] / counts[reached]), axis=0)
