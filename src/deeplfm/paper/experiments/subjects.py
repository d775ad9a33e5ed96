"""A panel whose subjects are columns: our models see one series per subject, others see outputs.

    fit(model, t [T], y [T, subjects], panel=True);   predictive(model, t, 200, subjects)

All subjects share the physics of our model, and each has a state of its own.
"""

import numpy as np
from numpy.typing import NDArray

from deeplfm.evaluation import NormalComponents, Predictive
from deeplfm.paper.experiments.models import Estimator
from deeplfm.regressor.estimator import DeepLFMRegressor

Values = NDArray[np.float64]


def fit(estimator: Estimator, x: Values, y: Values, panel: bool = False) -> None:
    """Fit to inputs x [T] or [T, P] and targets y [T, D]; of a panel D are subjects."""
    if not panel or not isinstance(estimator, DeepLFMRegressor):
        estimator.fit(x, y)
        return
    subjects = y.shape[1]
    estimator.fit(np.tile(x, subjects), y.T.reshape(-1), series=_ids(len(x), subjects))


def predictive(
    estimator: Estimator, x: Values, num_samples: int, subjects: int | None = None
) -> Predictive:
    """The prediction at inputs x [T] or [T, P]; of a panel that of all subjects [T, subjects]."""
    if subjects is None or not isinstance(estimator, DeepLFMRegressor):
        return estimator.predictive(x, num_samples=num_samples)
    ids = _ids(len(x), subjects)
    long = estimator.predictive(np.tile(x, subjects), num_samples=num_samples, series=ids)
    center = long.components.mean
    variance = np.broadcast_to(long.components.variance, center.shape)
    center, variance = (
        values.reshape(-1, subjects, len(x)).swapaxes(1, 2) for values in (center, variance)
    )
    return Predictive(center, NormalComponents(center, np.sqrt(variance)), seed=long.seed)


def _ids(rows: int, subjects: int) -> list[str]:
    """The subject of every row, one subject after the other."""
    return [f"{subject:03d}" for subject in range(subjects) for _ in range(rows)]
