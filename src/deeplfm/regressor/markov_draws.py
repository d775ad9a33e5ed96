"""Draws of a fitted state-space model as functions: a prior path plus what the data correct of it.

    f(t) = prior(t) + E[f(t) | y - prior - ε],   ε drawn noise of every observation

The prior path is a function of time (`bridges`), and so is the correction: f at t depends on the
seed and on t alone.
"""

from collections.abc import Callable
from functools import cached_property
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from deeplfm.models.markov_model import MarkovModel
from deeplfm.randomness import derived_seed
from deeplfm.statespace import Record, System, stack_blocks
from deeplfm.statespace.bridges import PriorPaths
from deeplfm.statespace.keyed_normals import standard_normals

Values = NDArray[np.float64]
Codes = NDArray[np.int64]


@final
class _Prior:
    """Prior paths of all outputs of one series, as a function of time."""

    def __init__(
        self, model: MarkovModel, system: System, record: Record, count: int, keys: tuple[int, ...]
    ) -> None:
        first, length = record.span
        number = keys[-1]
        self._origin = float(record.begins[number]) if number < len(record.begins) else first
        self._keys, self._model, self._loadings = keys, model, system.loadings
        self._common: dict[str, Any] = {
            "num_samples": count,
            "origin": self._origin,
            "scale": length,
        }
        own = system.decay, system.frequency, system.block
        self._paths = PriorPaths(*own, seed=derived_seed(*keys), **self._common)

    def __call__(self, times: Values) -> Values:
        """[n, D, S]."""
        found = self._paths.functions(times, self._loadings)
        early = times < self._origin
        if early.any() and self._back is not None:
            paths, loadings = self._back
            mirrored = 2 * self._origin - times[early]
            found[:, torch.tensor(early)] += paths.functions(mirrored, loadings)
        return found.permute(1, 2, 0).numpy()

    @cached_property
    def _back(self) -> tuple[PriorPaths, Tensor] | None:
        """Walks leave the begin in both directions: backwards on paths of their own."""
        levels, none = self._model.levels, torch.zeros(0, dtype=torch.float64)
        if levels is None:
            return None
        with torch.no_grad():
            blocks, loadings = levels.parts(levels.natural())
        seed = derived_seed(*self._keys, 1)
        return PriorPaths(none, none, stack_blocks(blocks), seed=seed, **self._common), loadings


def posterior_functions(
    model: MarkovModel,
    record: Record,
    scale: Tensor | None,
    count: int,
    seed: int,
    member: int,
    series: int,
) -> Callable[[Values, Codes], Values]:
    """`count` functions of times and `series` numbers: f(times, codes) is [S, N, D], standardised.

    The record may lack a row of some of the series.
    """
    with torch.no_grad():
        system = model.system()
    paths = [_Prior(model, system, record, count, (seed, member, b)) for b in range(series)]
    noise_seed = derived_seed(seed, member, series)

    def prior(times: Values, codes: Codes) -> Values:
        """[n, D, S] at rows of any series."""
        found = np.empty((len(times), record.num_outputs, count))
        for number in np.unique(codes).tolist():
            own = codes == number
            found[own] = paths[number](times[own])
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
                observations,
                torch.tensor(line.table(targets)),
                system.loadings,
                observations.design,
            )
        correction = line.rows(found.numpy())[places]
        return np.moveaxis(prior(times, codes) + correction, -1, 0)

    return functions
