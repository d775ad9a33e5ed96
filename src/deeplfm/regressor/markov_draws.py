"""Draws of a fitted state-space model as functions: a prior path plus what the data correct of it.

    f(t) = prior(t) + E[f(t) | y - prior - ε],   ε drawn noise of every observation

The prior path is a function of time (`bridges`), and so is the correction: f at t depends on the
seed and on t alone.
"""

from collections.abc import Callable
from typing import final

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
    model: MarkovModel,
    record: Record,
    scale: Tensor | None,
    count: int,
    seed: int,
    member: int,
    readout: Tensor | None = None,
) -> Callable[[Values, Codes], Values]:
    """`count` functions of times and series: f(times, codes) is [S, N, D], standardised.

    With a `readout` [E, s] they are those functions of the state, [S, N, E], in its units.
    """
    draws = _Draws(model, record, scale, count, seed, member)
    return lambda times, codes: draws.at(times, codes, readout)


@final
class _Draws:
    """Prior paths of every series, and what the observations leave of them."""

    def __init__(
        self,
        model: MarkovModel,
        record: Record,
        scale: Tensor | None,
        count: int,
        seed: int,
        member: int,
    ) -> None:
        self._model, self._record, self._count = model, record, count
        with torch.no_grad():
            self._system = system = model.system()
        first, length = record.span
        self._paths = {
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
        self._scale = None if scale is None else record.timeline.rows(scale.numpy())
        self._left = self._residuals(derived_seed(seed, member, record.num_series))

    def at(self, times: Values, codes: Codes, readout: Tensor | None) -> Values:
        """[S, n, E] at rows of any series."""
        whole, places = self._record.beside(times, codes)
        cut, line = whole.whole(), whole.timeline
        added = np.zeros((len(whole.times) - len(self._left), *self._left.shape[1:]))
        targets = np.nan_to_num(np.concatenate([self._left, added]))
        scale = None
        if self._scale is not None:
            more = np.ones((len(added), self._scale.shape[1]))
            scale = torch.tensor(line.table(np.concatenate([self._scale, more]), 1.0))
        functions = self._system.loadings if readout is None else readout
        with torch.no_grad():
            observations = self._model.observations(whole, cut, scale=scale)
            design = observations.design
            if readout is not None:  # a constant or a trend is no part of a force
                shape = (*design.shape[:2], len(readout), design.shape[3])
                design = design.new_zeros(()).expand(shape)
            corrected = torch.tensor(line.table(targets))
            found = self._system.corrections(observations, corrected, functions, design)
        correction = line.rows(found.numpy())[places]
        return np.moveaxis(self._prior(times, codes, functions) + correction, -1, 0)

    def _prior(self, times: Values, codes: Codes, functions: Tensor) -> Values:
        """[n, E, S] at rows of any series."""
        found = np.empty((len(times), len(functions), self._count))
        for number in np.unique(codes).tolist():
            own = codes == number
            values = self._paths[number].functions(times[own], functions)
            found[own] = values.permute(1, 2, 0).numpy()
        return found

    def _residuals(self, seed: int) -> Values:
        record, system = self._record, self._system
        rows, outputs = record.targets.shape
        keys = np.ix_(np.arange(self._count), np.arange(rows), np.arange(outputs))
        noise = standard_normals(seed, *keys).transpose(1, 2, 0)
        size = system.noise.sqrt().numpy()[:, None]
        if self._scale is not None:
            size = size * np.sqrt(self._scale)[..., None]
        drawn = self._prior(record.times, record.series, system.loadings) + size * noise
        return np.asarray(record.targets[..., None] - drawn)
