"""Gradient-boosted trees whose settings are chosen by cross-validation: the rival on tables.

    rate 0.03 or 0.1,  7 or 31 leaves,  a third of the rounds or all

The prediction is a Gaussian about their mean, as wide as the errors of the chosen settings on folds
that were left out.
"""

from typing import TYPE_CHECKING, final

import numpy as np
import torch
from torch import Tensor

from deeplfm.data import Dataset
from deeplfm.paper.baselines.base import Baseline, Mixture, State, Task, Values
from deeplfm.paper.baselines.history import History
from deeplfm.paper.baselines.registry import baseline
from deeplfm.shapes import check_count

if TYPE_CHECKING:
    from sklearn.ensemble import HistGradientBoostingRegressor

_RATES, _LEAVES = (0.03, 0.1), (7, 31)
_FOLDS = 3
_LEAST = 1e-6  # spread


@final
@baseline("tuned-trees", "boosted trees, tuned", on=("tables",), smoke={"steps": 3})
class TunedTrees(Baseline):
    """scikit-learn's histogram boosting, its settings chosen from eight, one model per output.

    steps: most rounds of boosting, one tree each; a third of them is the other choice.

    Trees are no tensors. The state holds the data and the chosen settings, and the same trees are
    grown again where they are needed.
    """

    def __init__(
        self,
        steps: int = 300,
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
        x, y = task.gaps()
        chosen = [self._chosen(x[~np.isnan(v)], v[~np.isnan(v)], task.seed) for v in y.T]
        history.add(float(np.mean([error**2 for error, _ in chosen])))
        std = torch.tensor([max(error, _LEAST) for error, _ in chosen]).to(task.x)
        settings = torch.tensor([list(own) for _, own in chosen], dtype=torch.float64).to(task.x)
        observed = task.observed.to(task.x.dtype)
        return {"x": task.x, "y": task.y, "observed": observed, "std": std, "settings": settings}

    def mixture(self, state: State, x: Tensor, num_samples: int, seed: int) -> Mixture:
        tensors = (state["x"], state["y"], state["observed"], x)
        x_fitted, y, observed, x_new = (v.double().cpu().numpy() for v in tensors)
        columns = []
        for values, seen, own in zip(y.T, observed.T > 0, state["settings"].tolist(), strict=True):
            trees = self._grown(x_fitted[seen], values[seen], own[0], int(own[1]), int(own[2]))
            columns.append(trees.predict(x_new))
        mean = torch.tensor(np.stack(columns, axis=1)).to(x)[None]
        return mean, state["std"].expand_as(mean)

    def _chosen(self, x: Values, y: Values, seed: int) -> tuple[float, tuple[float, int, int]]:
        """The least error on folds that were left out, and the rate, leaves and rounds it is of."""
        fold = np.random.default_rng(seed).permutation(len(x)) % _FOLDS
        rounds = sorted({max(1, self.steps // 3), self.steps})
        found = []
        for rate in _RATES:
            for leaves in _LEAVES:
                squares = np.zeros((len(rounds), len(x)))
                for k in range(_FOLDS):
                    left, kept = fold == k, fold != k
                    if not left.any() or not kept.any():  # too few rows to leave some out
                        left = kept = np.ones(len(x), dtype=bool)
                    trees = self._grown(x[kept], y[kept], rate, leaves, self.steps)
                    stages = list(trees.staged_predict(x[left]))
                    for row, count in enumerate(rounds):
                        squares[row, left] = (stages[count - 1] - y[left]) ** 2
                errors = np.sqrt(squares.mean(1))
                found += [
                    (float(error), (rate, leaves, count))
                    for error, count in zip(errors, rounds, strict=True)
                ]
        return min(found)

    def _grown(
        self, x: Values, y: Values, rate: float, leaves: int, rounds: int
    ) -> "HistGradientBoostingRegressor":
        from sklearn.ensemble import HistGradientBoostingRegressor

        return HistGradientBoostingRegressor(
            learning_rate=rate,
            max_leaf_nodes=leaves,
            max_iter=rounds,
            early_stopping=False,
            random_state=self.seed,
        ).fit(x, y)
