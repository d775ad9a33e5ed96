"""Seven channels of four sources, three of which end early: do the others carry them on?

The rival is a ridge regression on the channels that go on, which is nearly all that can be known
where as many of them are seen as there are sources.
"""

from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from deeplfm.data.series import Series
from deeplfm.evaluation import metrics
from deeplfm.models import MarkovDLFM
from deeplfm.paper.baselines.ridge import Regression
from deeplfm.paper.datasets.simulated import seven_channels
from deeplfm.paper.experiments.study import Study
from deeplfm.paper.experiments.table import Results, Table
from deeplfm.regressor.estimator import DeepLFMRegressor

Values = NDArray[np.float64]


@final
class MixedChannels(Study[Series]):
    """Twenty sets of 256 rows."""

    sets = 20

    def estimators(self) -> dict[str, DeepLFMRegressor]:
        return {"seven": DeepLFMRegressor(MarkovDLFM(), check=False)}

    def load(self, system: str, seed: int) -> Series:
        return seven_channels(seed)

    def fit(self, estimator: Any, simulated: Series) -> None:
        estimator.fit(simulated.times, simulated.training("ends"))

    def score(self, estimator: Any, simulated: Series) -> dict[str, Any]:
        hidden = simulated.tests["ends"]
        rows, ended = np.any(hidden, axis=1), np.any(hidden, axis=0)
        y = simulated.test("ends")[rows][:, ended]
        predicted = estimator.predictive(simulated.times[rows])
        lower, upper = (part[:, ended] for part in predicted.interval(0.9))
        training = simulated.training("ends")
        return {
            "ends": {
                "nmse": metrics.nmse(y, predicted.mean[:, ended]).tolist(),
                "coverage_90": ((lower <= y) & (y <= upper)).mean(0).tolist(),
                "nmse_ridge": metrics.nmse(y, ridge_on_others(training, ended)[rows]).tolist(),
            }
        }

    def tables(self, results: Results) -> list[Table]:
        if not results:
            return []
        scores = [one["metrics"]["ends"] for one in results]
        ours, ridge, covered = (
            np.array([one[name] for one in scores]).mean(1)
            for name in ("nmse", "nmse_ridge", "coverage_90")
        )
        caption = (
            "Three of seven channels, mixed from four sources, end 100 samples early: mean over "
            "sets of the NMSE of their ends, and what 90 % intervals cover."
        )
        headings = ("model", "sets", "mean NMSE", "median", "worst", "90 % covers")
        rows = [
            ("LFM, state space", *_cells(ours), f"{covered.mean():.3f}"),
            ("ridge on the other channels", *_cells(ridge), ""),
            ("ratio of the means", "", f"{ours.mean() / ridge.mean():.3f}", "", "", ""),
        ]
        return [Table("seven", caption, headings, rows)]


def ridge_on_others(training: Values, ended: NDArray[np.bool_]) -> Values:
    """Channels that end [N, E] by regression on the others; the penalty by held-out blocks.

    Columns are standardised over the rows where all channels were observed, which it learns from.
    """
    complete = ~np.isnan(training).any(1)
    others = training[:, ~ended]
    seen = others[complete]
    columns = (others - seen.mean(0)) / seen.std(0)
    found = []
    for target in training[complete][:, ended].T:
        mean, std = target.mean(), target.std()
        regression = Regression.of(columns[complete], (target - mean) / std)
        penalty, _ = regression.best_penalty()
        weights = regression.solve(penalty, np.arange(columns.shape[1]))
        found.append(mean + std * (weights[0] + columns @ weights[1:]))
    return np.stack(found, 1)


def _cells(values: Values) -> tuple[str, ...]:
    shown = (values.mean(), np.median(values), values.max())
    return (str(len(values)), *(f"{value:.4f}" for value in shown))
