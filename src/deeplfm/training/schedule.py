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
    """One stage of the training: how many samples, what is frozen, and which objective.

    Args:
        until: the share of all steps, above 0 and up to 1, at which the stage ends.
        num_samples: S, the functions that are drawn in every step of the stage.
        frozen: roles that keep their values, among "noise", "weights", "frequencies" and
            "hyperparameters".
        objective: "elbo" or "multi_sample"; None is that of the training.

    Example:
        >>> first = dlfm.Stage(until=0.2, num_samples=1, frozen=frozenset({"hyperparameters"}))
        >>> training = dlfm.Training(steps=100, stages=(first,))
        >>> training.stage(19).num_samples, training.stage(20).num_samples
        (1, 5)
    """

    until: float
    num_samples: int
    frozen: frozenset[str] = frozenset()
    objective: ObjectiveName | None = None

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
    """How a model is trained: AdamW without weight decay, a cosine rate and one stage by default.

    Args:
        steps: how many steps the optimiser takes.
        learning_rate: the highest rate of AdamW, above 0.
        batch_size: rows of the data in every step; None is all of them.
        num_samples: S, the functions that are drawn in every step.
        objective: "elbo", or "multi_sample", which is tighter but no bound.
        rate: "cosine" falls to 0 over the steps, "constant" stays.
        warmup: the share of the steps in which the rate rises from 0.
        weight_decay: that of AdamW; more than 0 shrinks variational means.
        gradient_norm: the norm to which longer gradients are cut; None cuts none.
        stages: what is frozen and how many samples are drawn at first, sorted by `until`; after
            the last stage everything is trained.
        local_reparameterisation: sample values at the data, not weights (diagonal weights only).
        restarts: how many starts are trained; weak ones are dropped on the way.
        combine: "best" keeps the start with the best bound, "mixture" predicts with the mixture of
            the better half.
        held_out: a share of the observations, in blocks, on which to find the number of steps
            before all data are fitted with it; 0 trains all steps at once.
        stop_early: True ends a training of one start where the bound has stopped rising; False
            takes all steps.
        checkpoint_every: steps between checkpoints, where a folder for them is given.
        backend: how sums are computed, in steps, bounds, held-out densities and predictions.
            "auto" is the fastest there is, and whole steps as CUDA graphs; "plain" computes them as
            they are written; "torch", "triton" (CUDA) and "c" (CPU) use no form beyond those. What
            a machine does not have is passed over, and logged. Histories say which was used.

    Example:
        >>> training = dlfm.Training(steps=200, learning_rate=0.02, rate="constant", warmup=0.1)
        >>> training.learning_rate_at(0), training.learning_rate_at(199)
        (0.001, 0.02)
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
    stop_early: bool = True
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
