"""A second layer for a Markov model: functions of the phase of its strongest rhythm.

    first layer, as fitted ─► phase of a rhythm, its mean and variance at every row
    second layer: a copy of the model, with functions of that phase ─► trained by evidence
    gain = evidence of the copy - that of the first layer, trained as long - cost of the path

Depth is kept where the gain is above 0. At an amplitude of 0 the copy is the first layer exactly.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from deeplfm.layers.phase import PhaseLayer
from deeplfm.likelihoods import StudentT
from deeplfm.models.markov_model import MarkovModel
from deeplfm.statespace.record import Cut, Record
from deeplfm.statespace.rhythm import path_cost, phase_moments, rhythms, strongest

Train = Callable[[MarkovModel, str], bool]  # a model, under a name: whether it went to its end

BESIDE, SECOND = "beside", "depth"  # names of the two trainings
SHARE, RATE = 0.4, 0.4  # of the steps of a fit in each of them, and of its rate: they go on
_MOST_ROWS = 3000  # every step sees all of them
_PERIODS = 10.0  # of the rhythm, at least: a shape is learnt from its repeats


@final
@dataclass(frozen=True)
class Depth:
    """Whether a second layer was kept, why, and the nats that it gains, where it was tried."""

    kept: bool
    why: str
    gain: float | None = None

    @property
    def sentence(self) -> str:
        """All of it in a sentence."""
        kept = "was kept" if self.kept else "was not kept"
        gain = "" if self.gain is None else f" It gains {self.gain:.0f} nats."
        return f"A second layer {kept}: {self.why}{gain}"


@final
class ExpectedRhythm:
    """The phase of a rhythm as the smoother of the first layer sees it, at rows of any record."""

    def __init__(self, first: MarkovModel, directions: Tensor) -> None:
        self._first, self.directions = first, directions
        self._last: tuple[Record, tuple[Tensor, Tensor]] | None = None

    def __call__(self, record: Record, cut: Cut) -> tuple[Tensor, Tensor]:
        if self._last is None or self._last[0] is not record:
            with torch.no_grad():
                rows = self._first.observations(record, record.whole())
                found = phase_moments(self._first.system(), rows, self.directions)
            self._last = record, found
        return self._last[1]

    def __deepcopy__(self, _: object) -> "ExpectedRhythm":
        return self  # nothing of it changes


def may_deepen(model: MarkovModel, record: Record) -> str | None:
    """Why there is nothing to try, in words; None where there is."""
    if model.smooth is not None:
        return "nothing oscillates; smooth processes explain the data better than rhythms."
    if model.bank is None:
        return "the physics is given, and no rhythm is looked for."
    if isinstance(model.likelihood, StudentT):
        return "the noise has heavy tails."
    if record.num_series > 1:
        return "this is a panel of several series."
    if len(record.times) > _MOST_ROWS:
        return f"there are more than {_MOST_ROWS} rows."
    directions = strongest(model.system())
    if not bool((directions != 0).any()):
        return "nothing oscillates."
    turns = _turns(model, directions, record)
    if turns < _PERIODS:
        return f"the strongest rhythm has {turns:.1f} periods in the data, fewer than {_PERIODS:g}."
    return None


def second_layer(first: MarkovModel, directions: Tensor) -> MarkovModel:
    """A copy of the first layer with functions of its phase that are small yet."""
    fixed = copy.deepcopy(first).requires_grad_(False)
    model = copy.deepcopy(first)
    model.phase = PhaseLayer(first.num_outputs)
    model.rhythm = ExpectedRhythm(fixed, directions)
    return model


def deepen(first: MarkovModel, record: Record, train: Train) -> tuple[MarkovModel | None, Depth]:
    """The second layer of a fitted model, where it pays, and what was found; `first` stays."""
    if (why := may_deepen(first, record)) is not None:
        return None, Depth(False, why)
    directions = promising(first, record)
    deep, beside = second_layer(first, directions), copy.deepcopy(first)
    if not (train(deep, SECOND) and train(beside, BESIDE)):
        return None, Depth(False, "the fit was interrupted.")
    cut = record.whole()
    with torch.no_grad():
        rows = first.observations(record, cut)
        cost = float(path_cost(first.system(), rows, directions))
        shallow = max(float(_score(one, record, cut)) for one in (first, beside))
        gain = float(_score(deep, record, cut)) - shallow - cost
    if gain <= 0:
        return None, Depth(False, "the shape of a beat adds less than its phase costs.", gain)
    return deep, Depth(True, "outputs follow the phase of the strongest rhythm.", gain)


def promising(first: MarkovModel, record: Record) -> Tensor:
    """The rhythm that gains most before anything is learnt, where there are two to choose from."""
    system, cut = first.system(), record.whole()
    found = rhythms(system)
    found = [one for one in found if _turns(first, one, record) >= _PERIODS] or found[:1]
    if len(found) == 1:
        return found[0]

    def gain(directions: Tensor) -> float:
        with torch.no_grad():
            evidence = second_layer(first, directions).evidence(record, cut)
            return float(evidence - path_cost(system, first.observations(record, cut), directions))

    return max(found, key=gain)


def _score(model: MarkovModel, record: Record, cut: Cut) -> Tensor:
    """Evidence and prior together: what training maximises."""
    return model.evidence(record, cut) + model.log_prior()


def _turns(model: MarkovModel, directions: Tensor, record: Record) -> float:
    """How many periods of the rhythm the record is long."""
    system = model.system()
    power = directions.square().sum(0)[: len(system.frequency)]
    power = power + directions.square().sum(0)[len(system.frequency) :][: len(power)]
    frequency = float(system.frequency[int(power.argmax())].abs().detach())
    return frequency * record.span[1] / (2 * torch.pi)
