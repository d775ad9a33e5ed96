"""Exact moments of functions of a state, for several draws of the physics side by side.

mean_s(t), variance_s(t) of outputs or of other readouts, given all rows
"""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from deeplfm.evaluation import Components, NormalComponents, Predictive, StudentTComponents
from deeplfm.likelihoods import Likelihood, StudentT
from deeplfm.models.markov_model import MarkovModel
from deeplfm.regressor.base import Summary
from deeplfm.statespace import Record
from deeplfm.training.robust import noise_scale
from deeplfm.training.threads import side_by_side

Values = NDArray[np.float64]
Places = NDArray[np.int64]
Functions = Callable[[MarkovModel], Tensor]

_CHUNK = 2**20  # numbers of a mixture whose quantiles are found at a time


def smoothed_at(
    members: Sequence[MarkovModel],
    record: Record,
    places: Places,
    functions: Functions | None = None,
) -> tuple[Values, Values]:
    """Means and variances [S, n, E] at some rows of a record, of the outputs by default.

    `functions` gives readouts [E, s] of a model; a constant or a trend is no part of those.
    """
    cut, take = record.whole(), record.timeline.rows

    def one(member: MarkovModel) -> tuple[Values, Values]:
        with torch.no_grad():
            scale = noise_scale(member, record, cut)
            observations = member.observations(record, cut, scale=scale)
            system = member.system()
            readout, design = system.loadings, observations.design
            if functions is not None:
                readout = functions(member)
                shape = (*design.shape[:2], len(readout), design.shape[3])
                design = design.new_zeros(()).expand(shape)
            found = system.smooth(observations, readout, design)
        return take(found.mean.numpy())[places], take(found.variance.numpy())[places]

    every = side_by_side(one, members)
    mean, variance = (np.stack(part) for part in zip(*every, strict=True))
    return mean, variance


def components_of(
    likelihood: Likelihood, mean: Values, variance: Values, noise: Values
) -> Components:
    """Targets about functions with these means and variances [S, N, D], and noise [S, 1, D]."""
    if isinstance(likelihood, StudentT):
        # The t distribution with the variance of function and noise together.
        factor = (likelihood.degrees - 2) / likelihood.degrees
        scale = np.sqrt(noise + factor * variance)
        return StudentTComponents(mean, scale, likelihood.degrees)
    return NormalComponents(mean, np.sqrt(variance + noise))


def summarised(
    likelihood: Likelihood,
    moments: tuple[Values, Values, Values],
    levels: Sequence[float],
    factor: Values | None,
) -> Summary:
    """Mean, standard deviation and quantiles of `components_of` moments, in chunks side by side.

    With a `factor` [N] the spread is so many times as wide.
    """
    mean, variance, noise = moments
    shape = mean.shape[1:]
    found = Summary(np.empty(shape), np.empty(shape), {one: np.empty(shape) for one in levels})
    size = max(1, _CHUNK // (len(mean) * shape[1]))

    def fill(first: int) -> None:
        rows = slice(first, first + size)
        own = mean[:, rows]
        chunk = Predictive(own, components_of(likelihood, own, variance[:, rows], noise))
        chunk = chunk if factor is None else chunk.widened(factor[rows])
        found.mean[rows], found.std[rows] = chunk.mean, chunk.std
        for level, column in found.quantiles.items():
            column[rows] = chunk.quantile(level)

    side_by_side(fill, range(0, shape[0], size))
    return found
