"""How to train, as frozen settings: steps, rate, samples, and what is trainable when.

Stages name shares of the steps, so that they scale with them. A role that is frozen in a stage
(weights, frequencies, hyperparameters; `Layer.parameter_groups`) keeps its values until it ends.
"""

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias, final

from deeplfm.errors import InputError
from deeplfm.shapes import check_count

ObjectiveName: TypeAlias = Literal["elbo", "multi_sample"]
Rate: TypeAlias = Literal["cosine", "constant"]


@final
@dataclass(frozen=True)
class Stage:
    """Until this share of the steps: so many samples, these roles frozen."""

    until: float
    num_samples: int
    frozen: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        check_count("num_samples", self.num_samples)
        if not 0 < self.until <= 1:
            raise InputError(
                f"until must be a share of the steps in (0, 1]; got {self.until:g}. Use 1 for all."
            )


@final
@dataclass(frozen=True)
class Training:
    """AdamW without weight decay, a cosine rate, one stage, unless said otherwise."""

    steps: int = 3000
    learning_rate: float = 0.01
    batch_size: int | None = None
    num_samples: int = 5
    objective: ObjectiveName = "elbo"
    rate: Rate = "cosine"
    warmup: float = 0.05  # share of the steps; the first ones of Adam know no scale yet
    weight_decay: float = 0.0  # it would shrink variational means for no reason
    gradient_norm: float | None = 1e4
    stages: tuple[Stage, ...] = ()

    def __post_init__(self) -> None:
        check_count("steps", self.steps)
        check_count("num_samples", self.num_samples)
        if self.batch_size is not None:
            check_count("batch_size", self.batch_size)
        if not self.learning_rate > 0:
            raise InputError(
                f"learning_rate must be above 0; got {self.learning_rate:g}. Start with 0.01."
            )
        if self.objective not in ("elbo", "multi_sample"):
            raise InputError(
                f"objective must be 'elbo' or 'multi_sample'; got {self.objective!r}. Choose one."
            )
        shares = [stage.until for stage in self.stages]
        if shares != sorted(shares):
            raise InputError(f"stages must end one after the other; got {shares}. Sort them.")

    def stage(self, step: int) -> Stage:
        """The stage that `step` (from 0) is in."""
        for stage in self.stages:
            if step < stage.until * self.steps:
                return stage
        return Stage(1.0, self.num_samples)

    def learning_rate_at(self, step: int) -> float:
        """The rate of `step` (from 0)."""
        warm = min(1.0, (step + 1) / max(1.0, self.warmup * self.steps))
        if self.rate == "constant":
            return warm * self.learning_rate
        return warm * self.learning_rate * (1 + math.cos(math.pi * step / self.steps)) / 2
