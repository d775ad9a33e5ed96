"""How to train, as frozen settings: steps, rate, samples, and what is trainable when.

Stages name shares of the steps, so that they scale with them. A role that is frozen in a stage
(weights, frequencies, hyperparameters; `Layer.parameter_groups`) keeps its values until it ends.
"""

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias, final

from deeplfm.errors import InputError
from deeplfm.registry import register
from deeplfm.shapes import check_choices, check_count
from deeplfm.sums import FAMILIES, Backend

ObjectiveName: TypeAlias = Literal["elbo", "multi_sample"]
Rate: TypeAlias = Literal["cosine", "constant"]
Combination: TypeAlias = Literal["best", "mixture"]

USED = (*FAMILIES, "graph")  # how a step was computed, in histories
_ROLES = {"noise", "weights", "frequencies", "hyperparameters"}


@register
@final
@dataclass(frozen=True)
class Stage:
    """Until this share of the steps: so many samples, these roles frozen, this objective."""

    until: float
    num_samples: int
    frozen: frozenset[str] = frozenset()
    objective: ObjectiveName | None = None  # None: that of the training

    def __post_init__(self) -> None:
        check_choices(self)
        check_count("num_samples", self.num_samples)
        if not 0 < self.until <= 1:
            raise InputError(
                f"until must be a share of the steps in (0, 1]; got {self.until:g}. Use 1 for all."
            )
        unknown = set(self.frozen) - _ROLES
        if unknown:
            raise InputError(
                f"frozen must name roles among {sorted(_ROLES)}; got {sorted(unknown)}. "
                "Correct the name."
            )


@register
@final
@dataclass(frozen=True)
class Training:
    """AdamW without weight decay, a cosine rate, one stage, unless said otherwise.

    restarts, combine: train so many starts; keep the one with the best bound, or predict with the
                       mixture of the better half. Weak starts are dropped on the way.
    held_out:          a share of the observations, in blocks, on which to find the number of steps
                       before all data are fitted with it; 0 trains all steps at once.
    local_reparameterisation: sample values at the data, not weights (diagonal weights only).
    checkpoint_every:  steps between checkpoints, where a folder for them is given.
    backend:           how sums are computed, in steps, bounds, held-out densities and predictions.
                       "auto": the fastest there is, and whole steps as CUDA graphs. "plain": as
                       they are written. "torch", "triton" (CUDA), "c" (CPU): no form beyond those;
                       what a machine does not have is passed over, and logged. Histories say which.
    """

    steps: int = 300
    learning_rate: float = 0.01
    batch_size: int | None = None
    num_samples: int = 5
    objective: ObjectiveName = "elbo"
    rate: Rate = "cosine"
    warmup: float = 0.05  # share of the steps; the first ones of Adam know no scale yet
    weight_decay: float = 0.0  # it would shrink variational means for no reason
    gradient_norm: float | None = 1e4
    stages: tuple[Stage, ...] = ()
    local_reparameterisation: bool = False
    restarts: int = 1
    combine: Combination = "best"
    held_out: float = 0.0
    checkpoint_every: int = 50
    backend: Backend = "auto"

    def __post_init__(self) -> None:
        check_choices(self)
        for name in ("steps", "num_samples", "restarts", "checkpoint_every"):
            check_count(name, getattr(self, name))
        if self.batch_size is not None:
            check_count("batch_size", self.batch_size)
        if not 0 < self.learning_rate < math.inf:
            raise InputError(
                f"learning_rate must be above 0; got {self.learning_rate:g}. Start with 0.01."
            )
        for name in ("warmup", "held_out"):
            if not 0 <= getattr(self, name) < 1:
                raise InputError(
                    f"{name} must be a share in [0, 1); got {getattr(self, name):g}. Use 0.1."
                )
        shares = [stage.until for stage in self.stages]
        if shares != sorted(shares):
            raise InputError(f"stages must end one after the other; got {shares}. Sort them.")

    @classmethod
    def paper(cls, steps: int = 2000) -> "Training":
        """The paper's schedule: 1 sample for 100 steps, then 100; Ω frozen for 200 steps, the
        hyperparameters for 300; a constant rate. Fewer steps shorten the stages in proportion.
        """
        share = min(1.0, steps / 2000) / steps
        both, one = frozenset({"frequencies", "hyperparameters"}), frozenset({"hyperparameters"})
        return cls(
            steps=steps,
            num_samples=100,
            rate="constant",
            warmup=0.0,
            gradient_norm=None,
            stages=(
                Stage(100 * share, 1, both),
                Stage(200 * share, 100, both),
                Stage(300 * share, 100, one),
            ),
        )

    def stage(self, step: int) -> Stage:
        """The stage that `step` (from 0) is in."""
        for stage in self.stages:
            if step < stage.until * self.steps:
                return stage
        return Stage(1.0, self.num_samples)

    def learning_rate_at(self, step: int) -> float:
        """The rate of `step` (from 0)."""
        rate = self.learning_rate * min(1.0, (step + 1) / max(1.0, self.warmup * self.steps))
        if self.rate == "constant":
            return rate
        return rate * (1 + math.cos(math.pi * step / self.steps)) / 2
