"""The second layer of a fitted state-space model: functions of the phase of a hidden rhythm.

    path_s ~ first layer given the rows and the sites of its phase,
    outputs | path_s: exact, as functions of unknown weight

So what is not known of the phase travels into predictions by draws of its path; each draw is a
model of its own. Sites say what the second layer knows of the phase beyond the first one.
"""

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from torch import Tensor

from deeplfm.layers.phase import PhaseLayer
from deeplfm.models.markov_model import MarkovModel
from deeplfm.randomness import derived_seed
from deeplfm.regressor.markov_draws import posterior_functions
from deeplfm.statespace.phase_sites import PhaseSites
from deeplfm.statespace.record import Cut, Record
from deeplfm.training.laplace import Posterior, flat_parameters, with_flat
from deeplfm.training.path import learnt_path

_PATH = 7  # sets the random numbers of a path apart from those of other functions
_ALONE = 4  # of so many draws one is of the first layer alone: a second one may be wrong altogether


@final
class DrawnRhythm:
    """The phase of one path that is drawn from the first layer given a record, at any times."""

    def __init__(
        self, first: MarkovModel, record: Record, sites: PhaseSites, keys: tuple[int, int]
    ) -> None:
        series, readout = record.num_series, sites.directions
        self._path = posterior_functions(first, record, None, 1, keys, series, readout, sites)
        self._last: tuple[Record, tuple[Tensor, Tensor]] | None = None

    def __call__(self, record: Record, cut: Cut) -> tuple[Tensor, Tensor]:
        if self._last is None or self._last[0] is not record:
            x, y = np.moveaxis(self._path(record.times, record.series)[0], -1, 0)
            phase = torch.tensor(record.timeline.table(np.arctan2(y, x)))
            self._last = record, (phase, torch.zeros_like(phase))
        return self._last[1]

    def __deepcopy__(self, _: object) -> "DrawnRhythm":
        return self  # nothing of it changes


@final
@dataclass(frozen=True, eq=False)
class SecondLayer:
    """A model whose functions of a phase were learnt, and the readouts [2, s] of the rhythm."""

    model: MarkovModel
    directions: Tensor

    def members(
        self,
        first: Sequence[MarkovModel],
        posterior: Posterior,
        record: Record,
        sites: PhaseSites,
        seed: int,
    ) -> list[MarkovModel]:
        """Models above drawn first layers, each with a path that is drawn from its own.

        Their parameters are as far from the best ones as those of the first layers are. Some stay
        first layers.
        """
        best = flat_parameters(self.model)
        found = list[MarkovModel]()
        for number, below in enumerate(first):
            if number % _ALONE == _ALONE - 1:
                found.append(below)
                continue
            values = best.clone()
            values[: len(posterior.mean)] += flat_parameters(below) - posterior.mean
            member = with_flat(self.model, values)
            member.clock = below.clock
            keys = (derived_seed(seed, _PATH), number)
            member.rhythm = DrawnRhythm(below, record, sites, keys)
            found.append(member)
        return found

    def sites(self, first: MarkovModel, record: Record) -> PhaseSites:
        """What this layer knows of the phase that it sees in a first layer, given a record."""
        deep = copy.copy(self.model)
        deep.clock = first.clock
        return learnt_path(first, deep, self.directions, record)

    def rehearsed(self, values: Tensor) -> "SecondLayer":
        """The same with other parameters."""
        return SecondLayer(with_flat(self.model, values), self.directions)


def room_for_second(model: MarkovModel) -> MarkovModel:
    """A model with room for functions of a phase."""
    model.phase = PhaseLayer(model.num_outputs)
    return model
