"""Second order, an oscillator: y'' + 2αy' + ω0²y = u, poles α ± sqrt(α² - ω0²).

Underdamped, critical and overdamped are one smooth family: nothing here divides by the distance
of the poles.
"""

from collections.abc import Collection, Mapping
from typing import final

from torch import Tensor

from deeplfm.greens_functions.base import GreensFunction
from deeplfm.greens_functions.factors import Quadratic
from deeplfm.registry import register
from deeplfm.variational.parameters import Bounds


@register
@final
class SecondOrder(GreensFunction):
    """The ODE of second order, an oscillator: y'' + 2·damping·y' + frequency²·y = u.

    It oscillates where damping < frequency; damping = frequency is critical.

    Args:
        damping: α > 0 in 1/time, a number or a tensor [D, P].
        frequency: ω0 > 0, the angular frequency without damping, in radians per unit of time, a
            number or a tensor [D, P].
        normalised: True divides G by its integral, so that a constant force passes unchanged.
        learn: True learns every parameter, False none; a list of names learns those.
        bounds: (low, high) by the name of a parameter, between which it stays.

    Shapes:
        t: a number or a tensor that broadcasts against the parameters, () or [D, P].
        G(t): the broadcast shape of `t` and the parameters; it is 0 for t < 0.

    Example:
        >>> ode = dlfm.SecondOrder(damping=1.0, frequency=1.0, learn=["frequency"])
        >>> [round(g, 4) for g in ode(torch.arange(2).double()).tolist()]  # t e^(-t)
        [0.0, 0.3679]
    """

    def __init__(
        self,
        damping: Tensor | float = 0.3,
        frequency: Tensor | float = 5.0,
        *,
        normalised: bool = False,
        learn: bool | Collection[str] = True,
        bounds: Mapping[str, Bounds] | None = None,
    ) -> None:
        super().__init__(
            {"damping": damping, "frequency": frequency},
            normalised=normalised,
            learn=learn,
            bounds=bounds,
        )

    @property
    def damping(self) -> Tensor:
        """α, [D, P]."""
        return self.value("damping")

    @property
    def frequency(self) -> Tensor:
        """ω0, [D, P], the angular frequency without damping."""
        return self.value("frequency")

    @property
    def order(self) -> int:
        return 2

    @property
    def stable(self) -> bool:
        return True

    @property
    def factors(self) -> tuple[Quadratic]:
        damping, frequency = self.damping, self.frequency
        discriminant = (damping - frequency) * (damping + frequency)
        return (Quadratic(damping, discriminant, frequency**2),)

    def match_oscillation(self, frequency: Tensor, damping: Tensor) -> bool:
        self.set_value("frequency", frequency)
        self.set_value("damping", damping)
        return True
