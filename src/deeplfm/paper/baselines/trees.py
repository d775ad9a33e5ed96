"""Gradient-boosted trees: the model that suits a table without dynamics best.

The prediction is a Gaussian about their mean, as wide as their errors on a tenth of the rows, which
were held out.
"""

from typing import TYPE_CHECKING, final

import numpy as np
import torch
from torch import Tensor

from deeplfm.data import Dataset
from deeplfm.paper.baselines.base import Baseline, Mixture, State, Task
from deeplfm.paper.baselines.history import History
from deeplfm.paper.baselines.registry import baseline
from deeplfm.shapes import check_count

if TYPE_CHECKING:
    from sklearn.ensemble import HistGradientBoostingRegressor

_HELD_OUT = 10  # one row of so many is held out


@final
@baseline("trees", "boosted trees", on=("table",), smoke={"steps": 3})
class BoostedTrees(Baseline):
    """scikit-learn's histogram boosting with its default settings, one model per output.

    steps: rounds of boosting, one tree each.

    Trees are no tensors. The state holds the data instead, and the same trees are grown again
    where they are needed.
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

    def check(self, data: Dataset) -> None:
        check_count("steps", self.steps)

    def fit_state(self, task: Task, history: History) -> State:
        """The data, and the spread of errors on a tenth of them by trees of the other rows."""
        x, y = task.gaps()
        held_out = np.random.default_rng(task.seed).permutation(len(x)) % _HELD_OUT == 0
        spread = []
        for values in y.T:
            seen = ~np.isnan(values)
            grown_on, tested = seen & ~held_out, seen & held_out
            if not tested.any() or not grown_on.any():  # too few rows to hold any out
                grown_on = tested = seen
            trees = self._grown(x[grown_on], values[grown_on])
            error = trees.predict(x[tested]) - values[tested]
            spread.append(max(float(np.sqrt((error**2).mean())), 1e-6))
        history.add(float(np.mean(np.square(spread))))
        observed = task.observed.to(task.x.dtype)
        std = torch.tensor(spread, dtype=task.x.dtype, device=task.x.device)
        return {"x": task.x, "y": task.y, "observed": observed, "std": std}

    def mixture(self, state: State, x: Tensor, num_samples: int, seed: int) -> Mixture:
        tensors = (state["x"], state["y"], state["observed"], x)
        x_fitted, y, observed, x_new = (v.double().cpu().numpy() for v in tensors)
        columns = [
            self._grown(x_fitted[seen > 0], values[seen > 0]).predict(x_new)
            for values, seen in zip(y.T, observed.T, strict=True)
        ]
        mean = torch.tensor(np.stack(columns, axis=1)).to(x)[None]
        return mean, state["std"].expand_as(mean)

    def _grown(self, x: np.ndarray, y: np.ndarray) -> "HistGradientBoostingRegressor":
        """Trees for one output, grown on rows x [n, P] with targets y [n]."""
        from sklearn.ensemble import HistGradientBoostingRegressor

        model = HistGradientBoostingRegressor(max_iter=self.steps, random_state=self.seed)
        return model.fit(x, y)
