"""The simplest models of a table: a constant, and a ridge regression on the inputs.

    y ≈ b0,    y ≈ b0 + Σ_p b_p x_p

The penalty of the ridge is that of the least error when each row is left out in turn, and so is
the spread of the prediction.
"""

from abc import abstractmethod
from typing import final

import numpy as np
import torch
from torch import Tensor

from deeplfm.paper.baselines.base import Baseline, Mixture, State, Task, Values
from deeplfm.paper.baselines.history import History
from deeplfm.paper.baselines.registry import baseline

_PENALTIES = np.logspace(-4, 4, 17)  # times the number of rows
_LEAST = 1e-6  # spread


class LinearModel(Baseline):
    """The common base: the mean is linear in the inputs, with one spread per output.

    It computes in float64 on the CPU: `device`, `dtype`, `seed` and `progress` change nothing.
    """

    def __init__(
        self, seed: int = 0, device: str = "auto", dtype: str = "float64", progress: bool = True
    ) -> None:
        self.seed = seed
        self.device = device
        self.dtype = dtype
        self.progress = progress

    @abstractmethod
    def _solve(self, x: Values, y: Values) -> tuple[Values, float]:
        """The coefficients [P + 1] for targets without gaps, the constant first; the spread."""

    def fit_state(self, task: Task, history: History) -> State:
        x, y = task.gaps()
        solved = [self._solve(x[~np.isnan(v)], v[~np.isnan(v)]) for v in y.T]
        history.add(float(np.mean([spread**2 for _, spread in solved])))
        return {
            "x": task.x[:0].double(),
            "coefficients": torch.tensor(np.stack([found for found, _ in solved])),
            "std": torch.tensor([max(spread, _LEAST) for _, spread in solved]).double(),
        }

    def mixture(self, state: State, x: Tensor, num_samples: int, seed: int) -> Mixture:
        coefficients = state["coefficients"].to(x)
        mean = (coefficients[:, 0] + x @ coefficients[:, 1:].T)[None]
        return mean, state["std"].to(x).expand_as(mean)


@final
@baseline("constant", "constant", on=("tables",))
class Constant(LinearModel):
    """The mean of the observed targets, and their spread."""

    def _solve(self, x: Values, y: Values) -> tuple[Values, float]:
        return np.concatenate([[y.mean()], np.zeros(x.shape[1])]), float(y.std())


@final
@baseline("ridge", "ridge on the inputs", on=("tables",))
class LinearRidge(LinearModel):
    """Ridge regression on the inputs, its penalty by leaving each row out in turn."""

    def _solve(self, x: Values, y: Values) -> tuple[Values, float]:
        center, offset = x.mean(0), y.mean()
        left, sizes, right = np.linalg.svd(x - center, full_matrices=False)
        along, found = left.T @ (y - offset), []
        for penalty in _PENALTIES * len(x):
            kept = sizes**2 / (sizes**2 + penalty)
            lever = (left**2) @ kept + 1 / len(x)
            error = (y - offset - left @ (kept * along)) / np.maximum(1 - lever, 1e-9)
            found.append((float(np.sqrt((error**2).mean())), penalty))
        spread, penalty = min(found)
        slopes = right.T @ (sizes / (sizes**2 + penalty) * along)
        return np.concatenate([[offset - center @ slopes], slopes]), spread
