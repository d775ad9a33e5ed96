"""How a latent force varies: stationary covariances, as mixtures of squared exponentials.

    k(r) = Σ_i w_i exp(-r²/(2 s_i²)),  r the distance in lengthscales
    a draw of the spectrum:  ω = scale · ε/ℓ,  ε ~ N(0, 1)

A kernel has no parameters of its own: the prior owns lengthscale and variance. A new one is a class
with `correlation`, `spectral_scales` and `mixture`, and `markov_state` if it has one.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias, final

import torch
from jaxtyping import Float
from torch import Tensor

from deeplfm.registry import register

Mixture: TypeAlias = tuple[tuple[float, float], ...]


class MarkovForce(NamedTuple):
    """A force as a readout of a Markov state, dz = F z dt + L dβ with density q, u = h·z.

    Forces of several lengthscales are batched in front; the stationary variance of u is 1.
    """

    feedback: Float[Tensor, "*Q k k"]
    noise: Float[Tensor, " k"]
    density: Float[Tensor, "*Q"]
    readout: Float[Tensor, " k"]


class ForceKernel(ABC):
    """The covariance of a force whose variance and lengthscale are 1."""

    @abstractmethod
    def correlation(self, squared: Tensor) -> Tensor:
        """k, at squared distances in lengthscales; 1 at 0, with a gradient everywhere."""

    @abstractmethod
    def spectral_scales(
        self, shape: tuple[int, ...], generator: torch.Generator | None, like: Tensor
    ) -> Tensor | None:
        """Random scales with which scale · N(0, 1) is a draw of the spectrum; None if all are 1."""

    @abstractmethod
    def mixture(self) -> Mixture:
        """(w_i, s_i) of the squared exponentials that k is a mixture of, up to rounding or so."""

    def markov_state(self, lengthscale: Float[Tensor, "*Q"]) -> MarkovForce | None:
        """The state of forces with these lengthscales, float64; None for a force that has none.

        Its feedback must be lower triangular (real poles, one after another), so that it can be
        integrated exactly over any time.
        """
        return None


@register
@final
@dataclass(frozen=True)
class SquaredExponential(ForceKernel):
    """k(r) = exp(-r²/2): smooth forces. This is the library's one lengthscale convention.

    Example:
        >>> SquaredExponential().correlation(torch.tensor([0.0]))
        tensor([1.])
    """

    def correlation(self, squared: Tensor) -> Tensor:
        return torch.exp(squared * -0.5)

    def spectral_scales(
        self, shape: tuple[int, ...], generator: torch.Generator | None, like: Tensor
    ) -> Tensor | None:
        return None

    def mixture(self) -> Mixture:
        return ((1.0, 1.0),)


SMOOTH = SquaredExponential()  # what every force is, unless said otherwise
