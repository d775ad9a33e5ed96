"""First order, the paper's ODE1: y' + γy = u, so G(t) = e^{-γt}, with one real pole at γ."""

from collections.abc import Collection, Mapping
from typing import final

from torch import Tensor

from deeplfm.greens_functions.base import GreensFunction
from deeplfm.greens_functions.factors import Linear
from deeplfm.registry import register
from deeplfm.variational.parameters import Bounds


@register
@final
class FirstOrder(GreensFunction):
    """The ODE of first order, y' + decay·y = u, whose Green's function is G(t) = e^(-decay·t).

    Its time constant is 1/decay.

    Args:
        decay: γ > 0 in 1/time, a number or a tensor [D, P].
        normalised: True divides G by its integral, so that a constant force passes unchanged.
        learn: True learns every parameter, False none; a list of names learns those.
        bounds: (low, high) by the name of a parameter, between which it stays.

    Shapes:
        t: a number or a tensor that broadcasts against the parameters, () or [D, P].
        G(t): the broadcast shape of `t` and the parameters; it is 0 for t < 0.

    Example:
        >>> ode = dlfm.FirstOrder(decay=2.0)
        >>> [round(g, 4) for g in ode(torch.linspace(0, 1, 3).double()).tolist()]
        [1.0, 0.3679, 0.1353]
    """

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

    def match_decay(self, decay: Tensor) -> bool:
        self.set_value("decay", decay)
        return True
