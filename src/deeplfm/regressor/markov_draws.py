"""Draws of a fitted state-space model as functions: a prior path plus what the data correct of it.

    f(t) = prior(t) + E[f(t) | y - prior - ε],   ε drawn noise of every observation

The prior path is a function of time (`bridges`), and so is the correction: f at t depends on the
seed and on t alone.
"""

from collections.abc import Callable, Sequence
from functools import cached_property, partial
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
from deeplfm.statespace.phase_sites import PhaseSites
from deeplfm.statespace.row_paths import row_paths
from deeplfm.training.robust import noise_scale

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
        clock, ahead = model.clock, None
        if clock is not None:
            ahead = partial(clock.ahead, series=number)
        self._paths = PriorPaths(*own, seed=derived_seed(*keys), ahead=ahead, **self._common)

    def __call__(self, times: Values, readout: Tensor | None = None) -> Values:
        """[n, E, S] of the outputs, or of other functions of the state."""
        found = self._paths.functions(times, self._loadings if readout is None else readout)
        early = times < self._origin
        if readout is None and early.any() and self._back is not None:
            paths, loadings = self._back
            mirrored = 2 * self._origin - times[early]
            # Sites come after the outputs and see nothing of a walk.
            found[:, torch.tensor(early), : len(loadings)] += paths.functions(mirrored, loadings)
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
    keys: tuple[int, int],
    series: int,
    readout: Tensor | None = None,
    sites: PhaseSites | None = None,
) -> Callable[[Values, Codes], Values]:
    """`count` functions of times and `series` numbers: f(times, codes) is [S, N, D], standardised.

    The record may lack a row of some of the series; `keys` are the seed and the number of the
    model. With a `readout` [E, s] they are those functions of the state, [S, N, E], in its units.
    Where `sites` say more about the state than the rows do, it is drawn given them as well.
    """
    draws = _Draws(model, record, scale, count, keys, series, sites)
    return lambda times, codes: draws.at(times, codes, readout)


def drawn_at_rows(
    members: Sequence[MarkovModel], record: Record, places: Codes, count: int, seed: int
) -> Values:
    """`count` draws of each model at some rows of one series, [S, n, D], standardised.

    Quicker than `posterior_functions`, and of the same distribution; but no functions of time.
    """
    cut, line, found = record.whole(), record.timeline, []
    for number, model in enumerate(members):
        random = np.random.default_rng(derived_seed(seed, number))
        with torch.no_grad():
            scale = noise_scale(model, record, cut)
            system, rows = model.system(), model.observations(record, cut, scale=scale)
            prior = row_paths(system, line, count, random, rows.faster)[None]
            size = system.noise.sqrt().numpy()[:, None]
            if scale is not None:
                size = size * np.sqrt(scale.numpy())[..., None]
            if model.phase is not None:
                weights = torch.tensor(random.standard_normal((model.phase.count, count)))
                prior = prior + (rows.design[..., -len(weights) :] @ weights).numpy()
            drawn = prior + size * random.standard_normal(prior.shape)
            left = torch.tensor(cut.targets.numpy()[..., None] - drawn)
            correction = system.corrections(rows, left, system.loadings, rows.design)
        found.append(line.rows(prior + correction.numpy())[places])
    return np.moveaxis(np.concatenate(found, axis=-1), -1, 0)


@final
class _Draws:
    """Prior paths of every series, and what the observations leave of them."""

    def __init__(
        self,
        model: MarkovModel,
        record: Record,
        scale: Tensor | None,
        count: int,
        keys: tuple[int, int],
        series: int,
        sites: PhaseSites | None,
    ) -> None:
        self._model, self._record, self._count, self._sites = model, record, count, sites
        with torch.no_grad():
            self._system = model.system() if sites is None else sites.joined(model.system())
        self._paths = [
            _Prior(model, self._system, record, count, (*keys, number)) for number in range(series)
        ]
        self._scale = None if scale is None else record.timeline.rows(scale.numpy())
        believed = 0 if model.phase is None else model.phase.count
        every = np.ix_(np.arange(believed), np.arange(count))
        self._weights = torch.tensor(standard_normals(derived_seed(*keys, series, 1), *every))
        self._left = self._residuals(derived_seed(*keys, series))

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
            if self._sites is not None:
                observations = self._sites.beside(observations, line)
            design = observations.design
            if readout is not None:  # a constant or a trend is no part of a force
                shape = (*design.shape[:2], len(readout), design.shape[3])
                design = design.new_zeros(()).expand(shape)
            left = torch.tensor(line.table(targets))
            found = self._system.corrections(observations, left, functions, design)
            if readout is None:
                found = found + self._of_weights(observations.design)
        correction = line.rows(found.numpy())[places]
        return np.moveaxis(self._prior(times, codes, readout) + correction, -1, 0)

    def _prior(self, times: Values, codes: Codes, readout: Tensor | None = None) -> Values:
        """[n, E, S] at rows of any series."""
        outputs = len(self._system.loadings if readout is None else readout)
        found = np.empty((len(times), outputs, self._count))
        for number in np.unique(codes).tolist():
            own = codes == number
            found[own] = self._paths[number](times[own], readout)
        return found

    def _of_weights(self, design: Tensor) -> Tensor:
        """What weights that are drawn before data come add to all outputs."""
        count = len(self._weights)
        return design[..., design.shape[-1] - count :] @ self._weights

    def _residuals(self, seed: int) -> Values:
        record = self._record
        targets, scale = record.targets, self._scale
        if self._sites is not None:
            ones = np.ones_like(targets) if scale is None else scale
            targets = np.concatenate([targets, self._sites.targets], 1)
            scale = np.concatenate([ones, self._sites.width], 1)
        rows, outputs = targets.shape
        keys = np.ix_(np.arange(self._count), np.arange(rows), np.arange(outputs))
        noise = standard_normals(seed, *keys).transpose(1, 2, 0)
        size = self._system.noise.sqrt().numpy()[:, None]
        if scale is not None:
            size = size * np.sqrt(scale)[..., None]
        drawn = self._prior(record.times, record.series) + size * noise
        if len(self._weights):
            with torch.no_grad():
                added = self._of_weights(self._model.design(record, record.whole()))
            drawn = drawn + record.timeline.rows(added.numpy())
        return np.asarray(targets[..., None] - drawn)
