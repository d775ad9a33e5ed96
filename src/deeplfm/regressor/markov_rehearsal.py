"""A check beside a fit: a copy of its start is trained without some blocks, and scored on them.

    start ─┬─► the fit itself: all steps with all rows ─► second layer ─► posterior
           └─► rehearsal: fewer steps without the blocks ─► parameters, scored on the blocks

So a check changes nothing of the fit. What is believed about the parameters is found once, for the
fit, and taken to be as wide about those that are scored; the start has seen the blocks.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple, final

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from deeplfm.evaluation.held_blocks import HeldBlock, hidden_by, near
from deeplfm.models.markov_model import MarkovModel
from deeplfm.regressor.checking import check_of, without_blocks
from deeplfm.regressor.markov import FittedMarkov
from deeplfm.statespace import Record
from deeplfm.training import Training
from deeplfm.training import depth as layers
from deeplfm.training.checkpoints import Checkpoints
from deeplfm.training.depth import Depth, deepen, second_layer
from deeplfm.training.evidence import EvidenceTrainer
from deeplfm.training.laplace import Posterior, flat_parameters, with_flat
from deeplfm.training.progress import Report
from deeplfm.training.rhythms import History
from deeplfm.training.settling import settle

Values = NDArray[np.float64]

REHEARSAL = "rehearsal"  # folder of its checkpoints, in that of the others
SHARE = 0.6  # of the steps of a fit, in its rehearsal
_CONTEXT, _WHOLE = 300, 4000  # rows beside a block that it is scored with, where there are more


@final
@dataclass(frozen=True, eq=False)
class Rehearsal:
    """The record without blocks, and a shorter training."""

    record: Record
    training: Training

    @classmethod
    def of(cls, record: Record, training: Training, blocks: list[HeldBlock]) -> "Rehearsal":
        """Hide the blocks."""
        shape = record.targets.shape[0], record.num_outputs
        left = np.where(hidden_by(blocks, shape), np.nan, record.targets)
        steps = max(1, round(SHARE * training.steps))
        return cls(replace(record, targets=left), replace(training, steps=steps))


class Rehearsed(NamedTuple):
    """Parameters of a first layer, and of a second one where the fit has it."""

    first: Tensor
    second: Tensor | None


@final
class Passes:
    """Trainings one after the other, each with checkpoints of its own; one bar shows them all."""

    def __init__(
        self, seed: int, checkpoints: Checkpoints | None, report: Report | None, share: float
    ) -> None:
        self._seed, self._checkpoints, self._report = seed, checkpoints, report
        self._share, self._before = share, 0  # how far the bar goes with a step

    def rehearse(
        self, model: MarkovModel, rehearsal: Rehearsal, directions: Tensor | None
    ) -> Rehearsed | None:
        """The parameters that a rehearsal leads a copy of the start to; None if interrupted.

        With `directions` of a rhythm there is a second layer above it.
        """
        record, training = rehearsal.record, rehearsal.training
        if model.smooth is not None:  # it is fitted without steps
            settle(model, record, training.backend)
            return Rehearsed(flat_parameters(model).clone(), None)
        if not self._done(model, record, training, REHEARSAL):
            return None
        first = flat_parameters(model).clone()
        if directions is None:
            return Rehearsed(first, None)
        deep = second_layer(model, directions)
        if not self._done(deep, record, of_depth(training), f"{REHEARSAL}/{layers.SECOND}"):
            return None
        return Rehearsed(first, flat_parameters(deep).clone())

    def deepen(
        self, model: MarkovModel, record: Record, training: Training
    ) -> tuple[MarkovModel | None, Depth]:
        """The second layer of a fitted model, where it pays, and what was found."""
        fewer = of_depth(training)
        return deepen(model, record, lambda own, name: self._done(own, record, fewer, name))

    def trained(
        self, model: MarkovModel, record: Record, training: Training, name: str
    ) -> History | None:
        """How a model was trained to its end; None if that was interrupted."""
        trainer = self.run(model, record, training, name)
        return trainer.history() if trainer.finished else None

    def _done(self, model: MarkovModel, record: Record, training: Training, name: str) -> bool:
        return self.trained(model, record, training, name) is not None

    def run(
        self, model: MarkovModel, record: Record, training: Training, name: str = ""
    ) -> EvidenceTrainer:
        """Train on a record, from the checkpoint in the folder `name` if there is one.

        An interruption gives what was reached; of a fit, which has no name, it must be a step or
        more.
        """
        own = None if self._checkpoints is None else self._checkpoints.of(name)
        trainer = EvidenceTrainer(model, record, training, self._seed, own)
        trainer.resume()
        try:
            trainer.run(training.steps, self._reporting())
        except KeyboardInterrupt:
            # The step that was interrupted is no state to go on from: the last checkpoint is.
            if trainer.step == 0 and not name:
                raise
        self._before += training.steps
        if trainer.exact and model.bank is None:
            settle(model, record, training.backend)
        return trainer

    def _reporting(self) -> Report | None:
        report, before, share = self._report, self._before, self._share
        if report is None or share == 1:
            return report
        return lambda step, loss: report(round(share * (before + step)), loss)


def of_depth(training: Training) -> Training:
    """The training of a second layer, and of what it is compared with."""
    steps = max(1, round(layers.SHARE * training.steps))
    return replace(training, steps=steps, learning_rate=layers.RATE * training.learning_rate)


def all_steps(*, deep: bool, checked: bool, simpler: bool = False) -> float:
    """Steps of everything that a fit trains, in those of its first layer."""
    second = layers.SHARE if deep else 0.0
    return 1 + simpler + 2 * second + (SHARE * (1 + second) if checked else 0.0)


def checked(fitted: FittedMarkov, rehearsed: Rehearsed, blocks: list[HeldBlock]) -> FittedMarkov:
    """The model with its check: `rehearsed` parameters have not seen the blocks."""
    data = without_blocks(fitted.data, blocks)
    posterior = Posterior(len(rehearsed.first))
    posterior.mean.copy_(rehearsed.first)
    posterior.factor.copy_(fitted.posterior.factor)
    asked = fitted.data
    if len(data) > _WHOLE:
        rows = near(blocks, data.x[:, 0], _CONTEXT)
        data = replace(data, x=data.x[rows], y=data.y[rows])
    model, second = with_flat(fitted.model, rehearsed.first), fitted.second
    if second is not None and rehearsed.second is not None:
        second = second.rehearsed(rehearsed.second)
    other = replace(fitted, model=model, posterior=posterior, data=data, second=second)
    return replace(fitted, check=check_of(other, asked, blocks))
