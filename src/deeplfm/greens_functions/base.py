"""A linear ODE with constant coefficients, as the factors of its characteristic polynomial.

    (d/dt + a) … ((d/dt + α)² - q) … y = gain · u,      y(x) = ∫ G(x - τ) u(τ) dτ

Subclasses own the physical parameters and their positivity, and say which factors those make.
Everything else is here, once: poles, residues, G(t), and `respond`, the answer of the ODE to any
`PoleFunction`, exact where poles meet. No probability, no forces.
"""

import copy
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from inspect import signature
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from deeplfm.errors import InputError
from deeplfm.greens_functions.divided_differences import (
    exponential_sum,
    pair,
    product_of_differences,
)
from deeplfm.greens_functions.pole_functions import ImpulseResponse, PoleFunction
from deeplfm.shapes import Memory, Number, as_tensors, check_choice, complex_dtype
from deeplfm.variational.parameters import Bounds, Quantity, as_company, check_names, learns


class Linear(NamedTuple):
    """The factor p + a."""

    rate: Tensor

    def at(self, p: Tensor) -> Tensor:
        return p + self.rate

    def turning(self, omega: Tensor) -> tuple[Tensor, Tensor]:
        return self.rate, omega

    def poles(self) -> list[Tensor]:
        return [self.rate.to(complex_dtype(self.rate.dtype))]


class Quadratic(NamedTuple):
    """The factor (p + α)² - q, with α² - q given on its own since it may cancel."""

    damping: Tensor
    discriminant: Tensor
    product: Tensor

    def at(self, p: Tensor) -> Tensor:
        return p * (p + 2 * self.damping) + self.product

    def turning(self, omega: Tensor) -> tuple[Tensor, Tensor]:
        return self.product - omega.square(), 2 * self.damping * omega

    def poles(self) -> list[Tensor]:
        d = torch.sqrt(self.discriminant.to(complex_dtype(self.discriminant.dtype)))
        far = self.damping + torch.where(self.damping < 0, -d, d)  # no cancellation
        near = self.product / torch.where(far == 0, torch.ones_like(far), far)
        return [near, far]


Factor = Linear | Quadratic


class GreensFunction(nn.Module, ABC):
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
                    as_company(value, quantities.values()),
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

    @property
    @abstractmethod
    def stable(self) -> bool:
        """Whether every pole has a positive real part, so that the ODE forgets."""

    @property
    @abstractmethod
    def factors(self) -> tuple[Factor, ...]:
        """The factors of the characteristic polynomial, none for G = δ."""

    @property
    def order(self) -> int:
        """The order of the ODE, the number K of its poles."""
        return sum(1 if isinstance(factor, Linear) else 2 for factor in self.factors)

    def gain(self, trailing: int = 0) -> Tensor | float:
        """1, or 1/∫G if normalised, with `trailing` dimensions of size 1 after its shape."""
        if not self.normalised:
            return 1.0
        gain: Tensor | float = 1.0
        for factor in self.factors:
            part = factor.rate if isinstance(factor, Linear) else factor.product
            gain = gain * part[(..., *([None] * trailing))]
        return gain

    def characteristic(self, p: Tensor) -> Tensor:
        """The characteristic polynomial at `p`, of a shape that ends in one node dimension."""
        value = torch.ones_like(p)
        for factor in self.factors:
            value = value * type(factor)(*(part[..., None] for part in factor)).at(p)
        return value

    def transfer(self, p: Tensor) -> Tensor:
        """∫_0^∞ G(t) e^{-pt} dt, for `p` of a shape that ends in one node dimension."""
        return self.gain(trailing=1) / self.characteristic(p)

    def turning(self, omega: Tensor) -> tuple[Tensor, Tensor] | None:
        """The transfer at p = jω as its real and imaginary part, for `omega` that ends in one
        node dimension; none for G = δ, where it is 1.
        """
        total: tuple[Tensor, Tensor] | None = None
        for factor in self.factors:
            # One factor at a time: the square of the whole polynomial would overflow sooner.
            real, imag = type(factor)(*(part[..., None] for part in factor)).turning(omega)
            size = real.square() + imag.square()
            one = real / size, -imag / size
            total = one if total is None else complex_product(total, one)
        if total is None or not self.normalised:
            return total
        gain = self.gain(trailing=1)
        return gain * total[0], gain * total[1]

    def poles(self) -> Tensor:
        """All poles s_k, complex, [..., K]; conjugate pairs are both listed.

        A single pole has no derivative where two coincide; G and every response have.
        """
        found = [pole for factor in self.factors for pole in factor.poles()]
        if not found:
            return torch.zeros((0,), dtype=torch.complex128)
        return torch.stack(torch.broadcast_tensors(*found), dim=-1)

    def poles_and_residues(self) -> tuple[Tensor, Tensor]:
        """s_k and r_k [..., K] with G(t) = Σ_k r_k e^{-s_k t}; an error where poles coincide."""
        poles = self.poles()
        product = product_of_differences(poles)
        if poles.device.type == "cpu" and bool((product == 0).any()):
            raise InputError(
                "residues exist for distinct poles only; got two equal poles (critical damping). "
                "Use g(t), exponentials() or the responses, which are exact there."
            )
        return poles, self.gain(trailing=1) / product

    def exponentials(self, longest: float | None = None) -> tuple[Tensor, Tensor]:
        """Nodes and weights with G(t) = Σ_i w_i e^{-s_i t}, finite for coinciding poles too.

        It holds for lags up to `longest`, by default for all, which needs a stable ODE.
        """
        if longest is None:
            self.check_memory("infinite")
        nodes, weights = exponential_sum(self.poles(), self.characteristic, longest)
        return nodes, weights * self.gain(trailing=1)

    def respond(self, function: PoleFunction, trailing: int = 0) -> Tensor:
        """The answer of this ODE: divided difference of `function` at its poles, times the gain.

        `trailing` dimensions of size 1 follow the parameters' shape, for arguments that have more.
        """
        index = (..., *([None] * trailing))
        factors = [type(factor)(*(part[index] for part in factor)) for factor in self.factors]
        gain = self.gain(trailing)
        if factors:
            flat = {f"parameter {k}": part for k, part in enumerate(sum(factors, ()))}
            as_tensors(function.arguments | flat)
        match factors:
            case []:
                return function.instant()
            case [Linear(rate)]:
                return gain * function.at(rate)
            case [Quadratic(damping, discriminant, product)]:
                return gain * pair(function, damping, discriminant, product)
        total: Tensor | float = 0.0
        nodes, weights = exponential_sum(self.poles(), self.characteristic, function.longest)
        for node, weight in zip(nodes.unbind(-1), weights.unbind(-1), strict=True):
            total = total + weight[index] * function.at(node[index])
        answer = gain * torch.as_tensor(total)
        return answer.real if function.is_real else answer

    def forward(self, t: Number) -> Tensor:
        """G(t); `t` broadcasts against the parameters."""
        factors = self.factors
        like = factors[0][0] if factors else torch.zeros((), dtype=torch.float64)
        t, _ = as_tensors({"t": t, "parameters": like})
        value = self.respond(ImpulseResponse(t.clamp(min=0)))
        return torch.where(t >= 0, value, torch.where(t.isnan(), t, torch.zeros_like(t)))

    def check_memory(self, memory: Memory) -> None:
        """An ODE that does not forget has no response to an infinite past."""
        check_choice("memory", memory, Memory)
        if memory == "infinite" and not self.stable:
            worst = self.poles().detach().real.min().item()
            raise InputError(
                "infinite memory needs a stable ODE (every pole s with Re s > 0); got a pole with "
                f"Re s = {worst:g}. Use memory='zero', or change the coefficients."
            )

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


def complex_product(
    left: tuple[Tensor, Tensor], right: tuple[Tensor, Tensor]
) -> tuple[Tensor, Tensor]:
    """The product of two complex numbers, by real and imaginary parts."""
    (a, b), (c, d) = left, right
    return a * c - b * d, a * d + b * c


def _quantity(module: nn.Module) -> Quantity:
    """A ModuleDict forgets the type of what it holds."""
    if not isinstance(module, Quantity):
        raise TypeError(f"expected a Quantity, got {type(module).__name__}")
    return module
