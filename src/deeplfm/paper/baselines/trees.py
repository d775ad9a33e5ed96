"""Gradient-boosted trees, for scale: what a table without dynamics is best given to.

A Gaussian about their mean, as wide as their errors on a tenth of the rows that they did not see.
"""

from typing import TYPE_CHECKING, final

import numpy as np
import torch
from torch import Tensor

from deeplfm.data import Dataset
from deeplfm.paper.baselines.door import Baseline, Mixture, State, Task
from deeplfm.paper.baselines.history import History
from deeplfm.shapes import check_count

if TYPE_CHECKING:
    from sklearn.ensemble import HistGradientBoostingRegressor

_HELD_OUT = 10  # every so many-th row, in a random order


@final
class BoostedTrees(Baseline):
    """scikit-learn's histogram boosting with its own settings, one model per output.

    steps: rounds of boosting, one tree each. Trees are no tensors: what is kept is the data, and
    they are grown again, to the same trees, where they are needed.
    """

    def __init__(
        self,
        steps: int = 100,
        seed: int = 0,
        device: str = "auto",
        dtype: str = "float64",
        progress: bool = True,
    ) -> None:
        self.steps = steps
        self.seed = seed
        self.device = device
        self.dtype = dtype
        self.progress = progress

    def _check(self, data: Dataset) -> None:
        check_count("steps", self.steps)

    def _fit(self, task: Task, history: History) -> State:
        """The data, and how far the trees of nine tenths of them are off on the rest."""
        x, y = task.gaps()
        held = np.random.default_rng(task.seed).permutation(len(x)) % _HELD_OUT == 0
        spread = []
        for values in y.T:
            seen = ~np.isnan(values)
            known, left = seen & ~held, seen & held
            if not left.any() or not known.any():  # too few rows to put any aside
                known = left = seen
            error = self._grown(x[known], values[known]).predict(x[left]) - values[left]
            spread.append(max(float(np.sqrt((error**2).mean())), 1e-6))
        history.add(float(np.mean(np.square(spread))))
        observed = task.observed.to(task.x.dtype)
        std = torch.tensor(spread, dtype=task.x.dtype, device=task.x.device)
        return {"x": task.x, "y": task.y, "observed": observed, "std": std}

    def _mixture(self, state: State, x: Tensor, num_samples: int, seed: int) -> Mixture:
        known, y, seen, new = (v.double().cpu().numpy() for v in (*_data(state), x))
        columns = [
            self._grown(known[rows > 0], values[rows > 0]).predict(new)
            for values, rows in zip(y.T, seen.T, strict=True)
        ]
        mean = torch.tensor(np.stack(columns, axis=1)).to(x)[None]
        return mean, state["std"].expand_as(mean)

    def _grown(self, x: np.ndarray, y: np.ndarray) -> "HistGradientBoostingRegressor":
        from sklearn.ensemble import HistGradientBoostingRegressor

        model = HistGradientBoostingRegressor(max_iter=self.steps, random_state=self.seed)
        return model.fit(x, y)


def _data(state: State) -> tuple[Tensor, Tensor, Tensor]:
    return state["x"], state["y"], state["observed"]
