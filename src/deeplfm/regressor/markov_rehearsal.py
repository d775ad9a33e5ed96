"""A check on the way: most steps of a state-space model without blocks, the others with all rows.

    rows without blocks ─► parameters, scored on the blocks ─► steps with all rows ─► posterior

So a checked fit has no more steps than another. What is believed about the parameters is found
once, at the end, and taken to be as wide about those that are scored.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import final

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from deeplfm.evaluation.held_blocks import HeldBlock, hidden_by, near
from deeplfm.models.markov_model import MarkovModel
from deeplfm.regressor.checking import check_of, without_blocks
from deeplfm.regressor.markov import FittedMarkov
from deeplfm.statespace import Record
from deeplfm.training import Training
from deeplfm.training.evidence import EvidenceTrainer
from deeplfm.training.laplace import Posterior, flat_parameters, with_flat
from deeplfm.training.progress import Report

Values = NDArray[np.float64]

REHEARSAL = "rehearsal"  # folder of its checkpoints, in that of the others
_AFTER = 0.25  # share of the steps that see all rows
_SLOWER = 0.5  # their rate: they start near the end
_CONTEXT, _WHOLE = 300, 4000  # rows beside a block that it is scored with, where there are more


@final
@dataclass(frozen=True, eq=False)
class Rehearsal:
    """The record without blocks, and how the steps are shared out: before and after."""

    record: Record
    before: Training
    after: Training
    first: int = 0  # steps before; there may be none

    @classmethod
    def of(cls, record: Record, training: Training, blocks: list[HeldBlock]) -> "Rehearsal":
        """Hide the blocks; without any all steps come after."""
        if not blocks:
            return cls(record, training, training)
        shape = record.targets.shape[0], record.num_outputs
        left = np.where(hidden_by(blocks, shape), np.nan, record.targets)
        steps = max(1, round(_AFTER * training.steps))
        rate = _SLOWER * training.learning_rate
        first = training.steps - steps
        return cls(
            replace(record, targets=left),
            replace(training, steps=max(1, first)),
            replace(training, steps=steps, learning_rate=rate),
            first,
        )


@final
class Passes:
    """Trainings of one model, one after the other, each with checkpoints of its own."""

    def __init__(
        self, model: MarkovModel, seed: int, checkpoints: Path | None, report: Report | None
    ) -> None:
        self._model, self._seed, self._folder, self._report = model, seed, checkpoints, report
        self._trainers: list[EvidenceTrainer] = []

    @property
    def steps(self) -> int:
        """How many steps were taken in all."""
        return sum(trainer.step for trainer in self._trainers)

    @property
    def exact(self) -> bool:
        """Whether every step of the last training sees all rows."""
        return self._trainers[-1].exact

    def run(self, record: Record, training: Training, until: int, name: str = "") -> Tensor:
        """Train on a record up to a step, from the checkpoint in the folder `name` if there is one.

        Gives the parameters that it leads to.
        """
        folder = None if self._folder is None else self._folder / name
        trainer = EvidenceTrainer(self._model, record, training, self._seed, folder)
        before = self.steps
        self._trainers.append(trainer)
        trainer.resume()
        trainer.run(until, self._reporting(before))
        return flat_parameters(self._model).clone()

    def history(self) -> Mapping[str, Values]:
        """One entry per step of all trainings; steps and seconds go on from one to the next."""
        first, *others = (dict(trainer.history()) for trainer in self._trainers)
        for other in others:
            for name in ("step", "seconds"):
                other[name] = other[name] + (first[name][-1] if len(first[name]) else 0.0)
            first = {name: np.concatenate([first[name], other[name]]) for name in first}
        return first

    def _reporting(self, before: int) -> Report | None:
        report = self._report
        if report is None or not before:
            return report
        return lambda step, loss: report(before + step, loss)


def checked(fitted: FittedMarkov, rehearsed: Tensor, blocks: list[HeldBlock]) -> FittedMarkov:
    """The model with its check: `rehearsed` parameters [n] have not seen the blocks."""
    data = without_blocks(fitted.data, blocks)
    posterior = Posterior(len(rehearsed))
    posterior.mean.copy_(rehearsed)
    posterior.factor.copy_(fitted.posterior.factor)
    asked = fitted.data
    if len(data) > _WHOLE:
        rows = near(blocks, data.x[:, 0], _CONTEXT)
        data = replace(data, x=data.x[rows], y=data.y[rows])
    model = with_flat(fitted.model, rehearsed)
    other = replace(fitted, model=model, posterior=posterior, data=data)
    return replace(fitted, check=check_of(other, asked, blocks))
