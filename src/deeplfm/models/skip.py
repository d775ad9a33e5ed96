"""How the input X re-enters a deep model, against the pathologies of pure composition.

`Concatenate`: the next layer receives [F, X], as in the paper. `NoSkip`: it receives F alone.
"""

from abc import ABC, abstractmethod
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor


class Skip(ABC):
    """What a layer's output becomes before the next layer sees it."""

    @abstractmethod
    def width(self, hidden: int, inputs: int) -> int:
        """How many inputs the next layer has."""

    @abstractmethod
    def __call__(
        self, f: Float[Tensor, "S N D"], x: Float[Tensor, "S N P"]
    ) -> Float[Tensor, "S N P2"]: ...


@final
class Concatenate(Skip):
    """[F, X]."""

    def width(self, hidden: int, inputs: int) -> int:
        return hidden + inputs

    def __call__(
        self, f: Float[Tensor, "S N D"], x: Float[Tensor, "S N P"]
    ) -> Float[Tensor, "S N P2"]:
        return torch.cat([f, x], dim=-1)


@final
class NoSkip(Skip):
    """F alone."""

    def width(self, hidden: int, inputs: int) -> int:
        return hidden

    def __call__(
        self, f: Float[Tensor, "S N D"], x: Float[Tensor, "S N P"]
    ) -> Float[Tensor, "S N P2"]:
        return f
