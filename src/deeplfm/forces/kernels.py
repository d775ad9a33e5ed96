"""How a latent force varies: stationary covariances, as mixtures of squared exponentials.

    k(r) = Σ_i w_i exp(-r²/(2 s_i²)),  r the distance in lengthscales
    a draw of the spectrum:  ω = scale · ε/ℓ,  ε ~ N(0, 1)

A kernel has no parameters of its own: the prior owns lengthscale and variance. A new one is a class
with `correlation`, `spectral_scales` and `mixture`, registered where models of it are saved.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TypeAlias, final

import torch
from torch import Tensor

from deeplfm.registry import register

Mixture: TypeAlias = tuple[tuple[float, float], ...]


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


@register
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
