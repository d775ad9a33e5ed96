"""First order, the paper's ODE1: y' + γy = u, so G(t) = e^{-γt}, with one real pole at γ."""

from collections.abc import Collection, Mapping
from typing import final

from torch import Tensor

from deeplfm.greens_functions.base import GreensFunction
from deeplfm.greens_functions.factors import Linear
from deeplfm.variational.parameters import Bounds


@final
class FirstOrder(GreensFunction):
    """y' + decay·y = u; its time constant is 1/decay."""

    def __init__(
        self,
        decay: Tensor | float = 2.5,
        *,
        normalised: bool = False,
        learn: bool | Collection[str] = True,
        bounds: Mapping[str, Bounds] | None = None,
    ) -> None:
        super().__init__({"decay": decay}, normalised=normalised, learn=learn, bounds=bounds)

    @property
    def decay(self) -> Tensor:
        """γ, [D, P]."""
        return self.value("decay")

    @property
    def order(self) -> int:
        return 1

    @property
    def stable(self) -> bool:
        return True

    @property
    def factors(self) -> tuple[Linear]:
        return (Linear(self.decay),)
