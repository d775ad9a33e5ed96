"""Models that a prediction averages over: drawn parameters, each with a drawn clock and path."""

import copy
from dataclasses import dataclass
from functools import cached_property
from typing import final

from deeplfm.errors import InputError
from deeplfm.models.markov_model import MarkovModel
from deeplfm.regressor.markov_second import SecondLayer
from deeplfm.shapes import check_count
from deeplfm.statespace import Record
from deeplfm.statespace.phase_sites import PhaseSites
from deeplfm.training.clock import ClockPosterior, fit_clock
from deeplfm.training.laplace import Posterior, with_flat

PHYSICS = 16  # draws of the physics that a prediction averages over


@final
@dataclass(frozen=True, eq=False)
class Members:
    """Copies of a model that are drawn given a record; each depends on its number alone."""

    model: MarkovModel
    posterior: Posterior
    second: SecondLayer | None
    record: Record

    def first(self, count: int, seed: int) -> list[MarkovModel]:
        """First layers with drawn parameters and clocks."""
        found = [with_flat(self.model, values) for values in self.posterior.draw(count, seed)]
        if self._clock is not None:
            for member, own in zip(found, self._clock.draw(count, seed), strict=True):
                member.clock = own
        return found

    def draw(self, count: int, seed: int) -> list[MarkovModel]:
        """Models of outputs: with a second layer each has a drawn path of the rhythm below."""
        first = self.first(count, seed)
        if self.second is None:
            return first
        return self.second.members(first, self.posterior, self.record, self._sites, seed)

    def shared_out(
        self, num_samples: int, seed: int, forces: bool = False
    ) -> list[tuple[MarkovModel, int]]:
        """Models of outputs or of forces, and how many of the samples are each one's."""
        check_count("num_samples", num_samples)
        every = (self.first if forces else self.draw)(min(num_samples, PHYSICS), seed)
        return [(member, (num_samples + k) // len(every)) for k, member in enumerate(every)]

    @cached_property
    def _sites(self) -> PhaseSites:
        """What a second layer says about the phase of the most probable first one."""
        if self.second is None:
            raise TypeError("the phase is seen by a second layer")
        first = copy.copy(self.model)
        first.clock = None if self._clock is None else self._clock.mean()
        return self.second.sites(first, self.record)

    @cached_property
    def _clock(self) -> ClockPosterior | None:
        """What the rows say about the clock of the oscillators."""
        return fit_clock(self.model, self.record)


def check_layer(layer: int) -> None:
    """It is an error if a layer is asked for that has no forces."""
    if layer != 0:
        raise InputError(f"layer must be 0, there is one of forces; got {layer}. Pass 0.")
