"""A linear ODE as its Green's function: the physical parameters that make its factors.

    (d/dt + a) … ((d/dt + α)² - q) … y = gain · u,      y(x) = ∫ G(x - τ) u(τ) dτ

Subclasses own the parameters and their positivity, and say which factors those make; what follows
from the factors is in `dynamics`. No probability, no forces.
"""

import copy
from collections.abc import Collection, Mapping
from inspect import signature
from typing import Any

from torch import Tensor, nn

from deeplfm.errors import InputError
from deeplfm.greens_functions.dynamics import Dynamics
from deeplfm.shapes import Number, as_tensors
from deeplfm.variational.parameters import Bounds, Quantity, check_names, in_type_of, learns


class GreensFunction(nn.Module, Dynamics):
    """The causal Green's function of a linear ODE; calling it gives G(t), 0 for t < 0.

    Parameters have one shape, () or [D, P]; times and arguments broadcast against it.
    `normalised=True` divides G by its integral, so a constant passes unchanged.
    Given to a recipe it is a template: `tiled(D, P)` is an independent copy.
    """

    def __init__(
        self,
        quantities: Mapping[str, Tensor | float],
        *,
        normalised: bool = False,
        learn: bool | Collection[str] = True,
        bounds: Mapping[str, Bounds] | None = None,
        positive: bool = True,
    ) -> None:
        super().__init__()
        bounds = bounds or {}
        check_names(quantities, learn, bounds)
        self.quantities = nn.ModuleDict(
            {
                name: Quantity(
                    name,
                    in_type_of(value, quantities.values()),
                    learn=learns(name, learn),
                    bounds=bounds.get(name),
                    positive=positive,
                )
                for name, value in quantities.items()
            }
        )
        values = {name: self.value(name) for name in quantities}
        as_tensors(values)
        for name, value in values.items():
            if value.ndim not in (0, 2):
                raise InputError(
                    f"{name} must be a number or [D, P]; got shape {tuple(value.shape)}. "
                    "Add the missing dimension with [:, None]."
                )
        self.normalised = normalised

    def forward(self, t: Number) -> Tensor:
        """G(t), 0 for t < 0; `t` broadcasts against the parameters."""
        return self.impulse_response(t)

    def tiled(self, outputs: int, inputs: int) -> "GreensFunction":
        """An independent copy with parameters of shape [D, P]."""
        twin = copy.deepcopy(self)
        for name, quantity in self.quantities.items():
            try:
                twin.quantities[name] = _quantity(quantity).tiled(outputs, inputs)
            except RuntimeError:
                raise InputError(
                    f"{name} must broadcast to [{outputs}, {inputs}]; got "
                    f"{tuple(self.value(name).shape)}. Pass one number, or [D, P] of the layer."
                ) from None
        return twin

    def arguments(self) -> dict[str, Any]:
        """The arguments that make it again, as it is now.

        What the constructor of a subclass does not take, the subclass has decided itself.
        """
        whole = {name: _quantity(quantity) for name, quantity in self.quantities.items()}
        bounds = {name: q.bounds for name, q in whole.items() if q.bounds is not None}
        settings = {
            "normalised": self.normalised,
            "learn": [name for name, quantity in whole.items() if quantity.raw is not None],
            "bounds": {name: tuple(limits.tolist()) for name, limits in bounds.items()},
        }
        taken = signature(type(self)).parameters
        found: dict[str, Any] = {name: one().detach() for name, one in whole.items()}
        return found | {name: value for name, value in settings.items() if name in taken}

    def rescaled(self, unit: Tensor) -> "GreensFunction":
        """A copy of this one, [D, P], whose time is measured in `unit` [P] of this one's."""
        twin = copy.deepcopy(self)
        for name, quantity in self.quantities.items():
            whole = _quantity(quantity)
            factor = (unit ** self.inverse_times(name)).expand_as(whole.start).to(whole.start)
            twin.quantities[name] = whole.scaled(factor)
        return twin

    @property
    def free(self) -> bool:
        """Whether all of its quantities are learnt, without bounds."""
        whole = [_quantity(quantity) for quantity in self.quantities.values()]
        return all(one.raw is not None and one.bounds is None for one in whole)

    def inverse_times(self, name: str) -> int:
        """The power of 1/time that a quantity has."""
        return 1

    def match_oscillation(self, frequency: Tensor, damping: Tensor) -> bool:
        """Become resonators of these angular frequencies; False for an ODE that is none."""
        return False

    def match_decay(self, decay: Tensor) -> bool:
        """Become so quick to forget, [D, P] per unit of time; False for an ODE of another kind."""
        return False

    def set_value(self, name: str, value: Tensor) -> None:
        """Move one physical quantity that is learnt, by its name."""
        _quantity(self.quantities[name]).set(value)

    def value(self, name: str) -> Tensor:
        """The value of one physical quantity, by its name."""
        value: Tensor = self.quantities[name]()
        return value


def _quantity(module: nn.Module) -> Quantity:
    """A ModuleDict forgets the type of what it holds."""
    if not isinstance(module, Quantity):
        raise TypeError(f"expected a Quantity, got {type(module).__name__}")
    return module
