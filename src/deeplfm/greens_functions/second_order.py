"""Second order, an oscillator: y'' + 2αy' + ω0²y = u, poles α ± sqrt(α² - ω0²).

Underdamped, critical and overdamped are one smooth family: nothing here divides by the distance
of the poles.
"""

from collections.abc import Collection, Mapping
from typing import final

from torch import Tensor

from deeplfm.greens_functions.base import GreensFunction
from deeplfm.greens_functions.factors import Quadratic
from deeplfm.variational.parameters import Bounds


@final
class SecondOrder(GreensFunction):
    """y'' + 2·damping·y' + frequency²·y = u; damping = frequency is critical."""

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
