"""A linear ODE with constant coefficients, as the factors of its characteristic polynomial.

    (d/dt + a) … ((d/dt + α)² - q) … y = gain · u,      y(x) = ∫ G(x - τ) u(τ) dτ

Everything that follows from the factors is here, once: poles, residues, G(t), and `respond`, the
answer of the ODE to any `PoleFunction`, exact where poles meet. `GreensFunction` owns parameters
that make the factors; `FixedDynamics` holds the numbers that they were when it was made.
"""

from abc import ABC, abstractmethod
from functools import reduce
from typing import final

import torch
from torch import Tensor

from deeplfm.errors import InputError
from deeplfm.greens_functions.divided_differences import (
    exponential_sum,
    pair,
    product_of_differences,
)
from deeplfm.greens_functions.factors import (
    Factor,
    Linear,
    Quadratic,
    complex_product,
    polynomial_product,
)
from deeplfm.greens_functions.pole_functions import ImpulseResponse, PoleFunction
from deeplfm.shapes import Memory, Number, as_tensors, check_choice


class Dynamics(ABC):
    """What an ODE does, from its factors: parts of one shape, () or [D, P].

    `normalised` divides G by its integral, so that a constant passes unchanged.
    """

    normalised: bool

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
        return sum(factor.degree for factor in self.factors)

    def gain(self, trailing: int = 0) -> Tensor | float:
        """1, or 1/∫G if normalised, with `trailing` dimensions of size 1 after its shape."""
        if not self.normalised:
            return 1.0
        gain: Tensor | float = 1.0
        for factor in self.factors:
            gain = gain * factor.at_zero[(..., *([None] * trailing))]
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

    def frequency_response(self, omega: Tensor) -> tuple[Tensor, Tensor] | None:
        """The transfer at p = jω as its real and imaginary part, for `omega` that ends in one
        node dimension; none for G = δ, where it is 1.
        """
        total: tuple[Tensor, Tensor] | None = None
        for factor in self.factors:
            # One factor at a time: the square of the whole polynomial would overflow sooner.
            real, imag = type(factor)(*(part[..., None] for part in factor)).at_frequency(omega)
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

    def polynomial(self) -> list[Tensor]:
        """Coefficients of the characteristic polynomial, of one factor or more, lowest first."""
        return reduce(polynomial_product, [factor.coefficients() for factor in self.factors])

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

    def impulse_response(self, t: Number) -> Tensor:
        """G(t), 0 for t < 0; `t` broadcasts against the parameters."""
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

    def fixed(self, *, copy: bool = True) -> "FixedDynamics":
        """The numbers as they are now: they stay when parameters move; gradients go to those.

        Without a copy a fixed parameter is not looked after, for what is evaluated at once.
        """
        factors = self.factors
        if copy:
            factors = tuple(type(one)(*(part.clone() for part in one)) for one in factors)
        return FixedDynamics(factors, self.normalised, self.stable)


@final
class FixedDynamics(Dynamics):
    """An ODE as numbers, without parameters: what draws hold."""

    def __init__(self, factors: tuple[Factor, ...], normalised: bool, stable: bool) -> None:
        self._factors, self.normalised, self._stable = factors, normalised, stable

    @property
    def factors(self) -> tuple[Factor, ...]:
        return self._factors

    @property
    def stable(self) -> bool:
        return self._stable

    def fixed(self, *, copy: bool = True) -> "FixedDynamics":
        """Itself."""
        return self

    def to(self, dtype: torch.dtype) -> "FixedDynamics":
        """The same in another type, with gradients to the numbers as they are."""
        parts = [type(one)(*(part.to(dtype) for part in one)) for one in self._factors]
        return FixedDynamics(tuple(parts), self.normalised, self._stable)

    def along(self, inputs: slice) -> "FixedDynamics":
        """The same along some of its inputs, for parts [D, P]."""
        parts = [type(one)(*(part[:, inputs] for part in one)) for one in self._factors]
        return FixedDynamics(tuple(parts), self.normalised, self._stable)
