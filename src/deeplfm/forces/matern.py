"""Matérn forces: as rough as their order says, and Markov, so that they also are a state.

    k(r) = poly(a) e^{-a},  a = √(2ν) r;   spectrum: Student-t with 2ν degrees of freedom
    u = (d/dt + λ)^{-k} of white noise,  λ = √(2ν)/ℓ,  k = ν + 1/2

Order 1/2 is continuous, 3/2 has one derivative and 5/2 two; higher orders approach the squared
exponential.
"""

import math
from dataclasses import dataclass
from typing import Any, final

import torch
from torch import Tensor

from deeplfm.errors import InputError
from deeplfm.forces.kernels import ForceKernel, MarkovForce, Mixture
from deeplfm.randomness import normal
from deeplfm.registry import register

ORDERS = (0.5, 1.5, 2.5)
_FAR = 1e3  # e^{-a} is 0 from here on, and a² e^{-a} still a number
_NEAR = 1e-18  # a distance that is 0 to rounding, by which one may divide
_STEP = 0.5  # of the rule that makes a mixture of k, in log scale: its error is about e^{-π²/step}
_LEFT_OUT = 1e-6  # weight that the mixture leaves out at each end


@register
@final
@dataclass(frozen=True)
class Matern(ForceKernel):
    """The Matérn covariance: forces that are rough, and Markov.

        k(r) = e^{-r},  (1 + √3 r) e^{-√3 r},  (1 + √5 r + 5r²/3) e^{-√5 r}     for 1/2, 3/2, 5/2

    with r the distance in lengthscales. A force of order 1/2 is continuous, of order 3/2 it has one
    derivative, of order 5/2 two.

    Args:
        order: ν, one of 0.5, 1.5 and 2.5.

    Shapes:
        squared: squared distances in lengthscales, any shape; `correlation(squared)` has the same.

    Example:
        >>> rough = dlfm.Matern(1.5)
        >>> distance = torch.tensor([0.0, 1.0], dtype=torch.float64)
        >>> [round(k, 4) for k in rough.correlation(distance**2).tolist()]
        [1.0, 0.4834]
        >>> recipe = dlfm.InducingDLFM(force=rough)
    """

    order: float = 2.5

    def __post_init__(self) -> None:
        if self.order not in ORDERS:
            raise InputError(
                f"order of a Matérn force must be one of {list(ORDERS)}; got {self.order!r}. "
                "Take 2.5, or SquaredExponential() for smoother forces."
            )

    @property
    def degrees(self) -> int:
        """2ν, the degrees of freedom of its spectrum."""
        return round(2 * self.order)

    @property
    def num_states(self) -> int:
        """k = ν + 1/2, the number of its states."""
        return round(self.order + 0.5)

    def correlation(self, squared: Tensor) -> Tensor:
        value: Tensor = _Correlation.apply(self.degrees * squared, self.num_states - 1)
        return value

    def spectral_scales(
        self, shape: tuple[int, ...], generator: torch.Generator | None, like: Tensor
    ) -> Tensor:
        """A Student-t variable is a normal one over the root of a chi-square by its degrees."""
        chi_square = normal((self.degrees, *shape), generator, like).square().sum(0)
        return torch.sqrt(self.degrees / chi_square)

    def mixture(self) -> Mixture:
        """k(r) = E exp(-2ν r²/(2v)), v chi-square: the trapezoidal rule over log v, to 1e-6."""
        half = self.order
        norm = 2**half * math.gamma(half)
        low = math.log(_LEFT_OUT * norm * half) / half  # mass below v is about v^ν/(ν norm)
        high = math.log(-2 * math.log(_LEFT_OUT) + 10)  # where v^ν e^{-v/2} has gone as well
        terms = math.ceil((high - low) / _STEP)
        nodes = [math.exp(high - _STEP * i) for i in range(terms + 1)]
        weights = [v**half * math.exp(-v / 2) for v in nodes]
        total = math.fsum(weights)
        return tuple(
            (weight / total, math.sqrt(v / self.degrees))
            for weight, v in zip(weights, nodes, strict=True)
        )

    def rate(self, lengthscale: Tensor) -> Tensor:
        """λ = √(2ν)/ℓ, at which the force forgets."""
        return math.sqrt(self.degrees) / lengthscale

    def markov_state(self, lengthscale: Tensor) -> MarkovForce:
        """A chain x_1' = -λx_1 + noise, x_i' = λ(x_{i-1} - x_i), with u a multiple of the last.

        x_1 has variance 1 and every x_i less, whatever the lengthscale: nothing is ill scaled.
        """
        rate = self.rate(lengthscale.double())
        size = self.num_states
        unit = torch.zeros(size, size, dtype=torch.float64, device=rate.device)
        unit.fill_diagonal_(-1.0)
        unit.diagonal(-1).fill_(1.0)
        # Var x_k = Γ(k - 1/2) / (√π Γ(k)): the variance of k unit poles in a row, that of one is 1.
        variance = math.gamma(size - 0.5) / (math.sqrt(math.pi) * math.gamma(size))
        return MarkovForce(
            rate[..., None, None] * unit,
            _unit_vector(size, 0, rate),
            2 * rate,
            _unit_vector(size, size - 1, rate) / math.sqrt(variance),
        )

    def companion(self, lengthscale: Tensor) -> MarkovForce:
        """The textbook's form: the state is u and its derivatives, noise drives the highest.

        u^(k) + … + λ^k u = w. Its entries are powers of λ; `markov_state` is the same, well scaled.
        """
        rate = self.rate(lengthscale.double())
        size = self.num_states
        shift = torch.zeros(size, size, dtype=torch.float64, device=rate.device)
        shift.diagonal(1).fill_(1.0)
        powers = [-math.comb(size, i) * rate ** (size - i) for i in range(size)]
        last = torch.stack(powers, dim=-1)[..., None, :]
        below = _unit_vector(size, size - 1, rate)
        feedback = shift + below[:, None] * last
        # q with Var u = 1:  q Γ(k - 1/2) / (2 √π Γ(k) λ^{2k-1}) = 1
        unit = 2 * math.sqrt(math.pi) * math.gamma(size) / math.gamma(size - 0.5)
        density = unit * rate ** (2 * size - 1)
        return MarkovForce(feedback, below, density, _unit_vector(size, 0, rate))


class _Correlation(torch.autograd.Function):
    """M_p at v = a²:  M_0 = e^{-a}, M_1 = (1 + a) e^{-a}, M_2 = (1 + a + a²/3) e^{-a}.

    Its derivative is -M_{p-1} / (2 (2p - 1)), so it is exact at 0, where that of a root is not.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(v: Tensor, power: int) -> Tensor:
        a = v.sqrt().clamp(max=_FAR)
        factor = (torch.ones_like(a), 1 + a, 1 + a + a * a / 3)[power]
        return factor * torch.exp(-a)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, int], output: Tensor) -> None:
        ctx.save_for_backward(inputs[0])
        ctx.power = inputs[1]

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        (v,) = ctx.saved_tensors
        if ctx.power:
            slope = _Correlation.apply(v, ctx.power - 1) / (2 * (1 - 2 * ctx.power))
        else:  # e^{-a} has no derivative in v at 0; a finite one makes that of a distance 0 there
            slope = -_Correlation.apply(v, 0) / (2 * v.sqrt().clamp(min=_NEAR))
        return gradients[0] * slope, None


def _unit_vector(size: int, place: int, like: Tensor) -> Tensor:
    vector = torch.zeros(size, dtype=torch.float64, device=like.device)
    vector[place] = 1.0
    return vector
