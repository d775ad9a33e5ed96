"""Scores of a prediction per output, over observed targets only (NaN = not observed).

NMSE = mean (ŷ - y)² / mean (y - ȳ)²,   RMSE,   MNLL = -mean log p(y),   CRPS,   coverage
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deeplfm.errors import InputError
from deeplfm.evaluation.predictive import Predictive
from deeplfm.shapes import observed_values

Values = NDArray[np.float64]


def nmse(y: ArrayLike, mean: ArrayLike) -> Values:
    """[D]: mean squared error over the variance of the observed targets."""
    y, error = _errors(y, mean)
    spread = y - np.nanmean(y, axis=0)
    return np.asarray(np.nanmean(error**2, axis=0) / np.nanmean(spread**2, axis=0))


def rmse(y: ArrayLike, mean: ArrayLike) -> Values:
    """[D], in the units of y."""
    _, error = _errors(y, mean)
    return np.asarray(np.sqrt(np.nanmean(error**2, axis=0)))


def mnll(y: ArrayLike, predictive: Predictive) -> Values:
    """[D]: mean negative log density of the mixture, noise included."""
    return np.asarray(-np.nanmean(predictive.log_density(y), axis=0))


def crps(y: ArrayLike, predictive: Predictive) -> Values:
    """[D]: mean continuous ranked probability score."""
    return np.asarray(np.nanmean(predictive.crps(y), axis=0))


def coverage(y: ArrayLike, predictive: Predictive, probability: float) -> Values:
    """[D]: the share of targets inside the central interval."""
    lower, upper = predictive.interval(probability)
    y, _ = _errors(y, predictive.mean)
    inside = np.where(np.isnan(y), np.nan, (y >= lower) & (y <= upper))
    return np.asarray(np.nanmean(inside, axis=0))


def _errors(y: ArrayLike, mean: ArrayLike) -> tuple[Values, Values]:
    observed, predicted = (
        values[:, None] if values.ndim == 1 else values
        for values in (observed_values(y), observed_values(mean))
    )
    if observed.ndim != 2 or observed.shape != predicted.shape:
        raise InputError(
            f"y and mean must both be [N, D]; got {observed.shape} and {predicted.shape}. "
            "Reshape them."
        )
    if np.isnan(observed).all(axis=0).any():
        raise InputError("every output must have an observed target; got one without. Drop it.")
    return observed, predicted - observed
