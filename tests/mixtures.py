"""Predictions with noise of a family, made from arrays."""

import numpy as np
from numpy.typing import NDArray

from deeplfm.evaluation import NormalComponents, Predictive, StudentTComponents

Values = NDArray[np.float64]


def mixture(
    samples: Values, scale: Values, degrees: float | None = None, names: tuple[str, ...] = ()
) -> Predictive:
    """Gaussian noise of that standard deviation, or Student-t noise of that scale."""
    if degrees is None:
        return Predictive(samples, NormalComponents(samples, scale), names)
    return Predictive(samples, StudentTComponents(samples, scale, degrees), names)
