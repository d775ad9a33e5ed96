"""How the input X re-enters a deep model, against the pathologies of pure composition.

`Concatenate`: the next layer receives [F, X], as in the paper. `NoSkip`: it receives F alone.
"""

from abc import ABC, abstractmethod
from typing import final

from jaxtyping import Float
from torch import Tensor

from deeplfm.layers.base import join


class Skip(ABC):
    """What a layer's output becomes before the next layer sees it."""

    @abstractmethod
    def width(self, hidden: int, inputs: int) -> int:
        """How many inputs the next layer has."""

    @property
    @abstractmethod
    def passes_inputs(self) -> bool:
        """Whether X re-enters: the next layer sees it beside F."""

    @abstractmethod
    def shared(self, x: Float[Tensor, "N P"]) -> Float[Tensor, "N P"] | None:
        """What the next layer sees beside F, the same for all samples."""

    def __call__(
        self, f: Float[Tensor, "S N D"], x: Float[Tensor, "N P"]
    ) -> Float[Tensor, "S N P2"]:
        """All that the next layer sees."""
        return join(f, self.shared(x))


@final
class Concatenate(Skip):
    """[F, X]."""

    def width(self, hidden: int, inputs: int) -> int:
        return hidden + inputs

    @property
    def passes_inputs(self) -> bool:
        return True

    def shared(self, x: Float[Tensor, "N P"]) -> Float[Tensor, "N P"] | None:
        return x


@final
class NoSkip(Skip):
    """F alone."""

    def width(self, hidden: int, inputs: int) -> int:
        return hidden

    @property
    def passes_inputs(self) -> bool:
        return False

    def shared(self, x: Float[Tensor, "N P"]) -> Float[Tensor, "N P"] | None:
        return None
