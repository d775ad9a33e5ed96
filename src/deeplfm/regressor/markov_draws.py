"""Draws of a fitted state-space model as functions: a prior path plus what the data correct of it.

    f(t) = prior(t) + E[f(t) | y - prior - ε],   ε drawn noise of every observation

The prior path is a function of time (`bridges`), and so is the correction: f at t depends on the
seed and on t alone.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from deeplfm.models.markov_model import MarkovModel
from deeplfm.randomness import derived_seed
from deeplfm.statespace import Record
from deeplfm.statespace.bridges import PriorPaths
from deeplfm.statespace.keyed_normals import standard_normals

Values = NDArray[np.float64]
Codes = NDArray[np.int64]


def posterior_functions(
    model: MarkovModel, record: Record, scale: Tensor | None, count: int, seed: int, member: int
) -> Callable[[Values, Codes], Values]:
    """`count` functions of times and series: f(times, codes) is [S, N, D], standardised."""
    with torch.no_grad():
        system = model.system()
    first, length = record.span
    paths = {
        number: PriorPaths(
            system.decay,
            system.frequency,
            system.block,
            num_samples=count,
            seed=derived_seed(seed, member, number),
            origin=first,
            scale=length,
        )
        for number in range(record.num_series)
    }
    noise_seed = derived_seed(seed, member, record.num_series)

    def prior(times: Values, codes: Codes) -> Values:
        """[n, D, S] at rows of any series."""
        found = np.empty((len(times), record.num_outputs, count))
        for number in np.unique(codes).tolist():
            own = codes == number
            values = paths[number].functions(times[own], system.loadings)
            found[own] = values.permute(1, 2, 0).numpy()
        return found

    def residuals() -> Values:
        rows, outputs = record.targets.shape
        keys = np.ix_(np.arange(count), np.arange(rows), np.arange(outputs))
        noise = standard_normals(noise_seed, *keys).transpose(1, 2, 0)
        size = system.noise.sqrt().numpy()[:, None]
        if scale is not None:
            size = size * np.sqrt(record.timeline.rows(scale.numpy()))[..., None]
        drawn = prior(record.times, record.series) + size * noise
        return np.asarray(record.targets[..., None] - drawn)

    left = residuals()

    def functions(times: Values, codes: Codes) -> Values:
        whole, places = record.beside(times, codes)
        cut, line = whole.whole(), whole.timeline
        added = np.zeros((len(whole.times) - len(left), *left.shape[1:]))
        targets = np.nan_to_num(np.concatenate([left, added]))
        own_scale = None
        if scale is not None:
            rows = record.timeline.rows(scale.numpy())
            more = np.ones((len(whole.times) - len(rows), rows.shape[1]))
            own_scale = torch.tensor(line.table(np.concatenate([rows, more]), 1.0))
        with torch.no_grad():
            observations = model.observations(whole, cut, scale=own_scale)
            found = system.corrections(
                replace(observations, targets=observations.targets),
                torch.tensor(line.table(targets)),
                system.loadings,
                observations.design,
            )
        correction = line.rows(found.numpy())[places]
        return np.moveaxis(prior(times, codes) + correction, -1, 0)

    return functions
