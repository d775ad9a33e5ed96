"""ONE LAYER is a distribution over functions from P inputs to D outputs.

    path = layer.draw(S, generator)      f = path(x): [S, N, P] → [S, N, D]

Nothing of a draw is stored on the module. A layer owns its parameters and their KL; depth, data and
sample counts are other rooms' business.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from deeplfm.sums import Backend


@runtime_checkable
class Path(Protocol):
    """Drawn functions, the same wherever they are evaluated.

    `shared` are inputs that all samples have in common, after those of `x`: what they need is
    worked out once.
    """

    def __call__(
        self, x: Float[Tensor, "S3 N P"], shared: Float[Tensor, "N P2"] | None = None
    ) -> Float[Tensor, "S N D"]: ...


def join(
    x: Float[Tensor, "S3 N P"], shared: Float[Tensor, "N P2"] | None
) -> Float[Tensor, "S3 N P3"]:
    """All inputs of every sample in one table."""
    return x if shared is None else torch.cat([x, shared.expand(len(x), -1, -1)], dim=-1)


class Layer(nn.Module, ABC):
    """A random function."""

    num_inputs: int
    num_outputs: int

    @abstractmethod
    def draw(
        self,
        num_samples: int,
        generator: torch.Generator | None = None,
        backend: Backend = "auto",
    ) -> Path:
        """`num_samples` functions: evaluated twice, in chunks or on a grid, they are the same.

        They hold numbers: they stay what they are when parameters of the layer move.
        """

    def draw_for_training(
        self,
        num_samples: int,
        generator: torch.Generator | None = None,
        backend: Backend = "auto",
        *,
        local: bool = False,
    ) -> Path:
        """What a training step evaluates once: may share or sample what a function may not.

        `local` asks for values at the data instead of functions, from layers that can.
        """
        return self.draw(num_samples, generator, backend)

    @abstractmethod
    def forces(self, tau: Float[Tensor, "S3 N P"], path: Any) -> Float[Tensor, "S N F"]:
        """The forces behind a path that this layer drew, at `tau`; `force_names` says which."""

    @abstractmethod
    def force_names(self, functions: Sequence[str], inputs: Sequence[str]) -> tuple[str, ...]:
        """What the columns of `forces` are."""

    @abstractmethod
    def kl(self, backend: Backend = "auto") -> Float[Tensor, ""]:
        """KL of everything this layer infers from its prior, each term once."""

    @abstractmethod
    def parameter_groups(self) -> Mapping[str, list[nn.Parameter]]:
        """The parameters by role, for schedules: weights, frequencies, hyperparameters."""

    @property
    @abstractmethod
    def elements(self) -> int:
        """How many numbers one sample at one point takes while a path is evaluated."""

    def recover(self) -> bool:
        """After a loss that was not finite: whether something was changed that makes it safer."""
        return False
