"""Variational Gaussians, measured against the standard normal they start from.

    q(w) = N(μ, CCᵀ),  w = μ + Cε;   KL(q ‖ N(0, I)) = ½ (|μ|² + |C|² - F - 2 log det C)

Both posteriors of the library are this: whitened inducing values, and weights of features.
The diagonal of C is held through its logarithm; entries below it are free.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import final

import torch
from torch import Tensor, nn

from deeplfm.errors import InputError
from deeplfm.shapes import check_finite, check_shape


class VariationalGaussian(nn.Module, ABC):
    """A batch of F-dimensional Gaussians, `shape` = [..., F], started at N(0, scale² I)."""

    def __init__(self, shape: Sequence[int], *, scale: float, like: Tensor) -> None:
        super().__init__()
        self.mean = nn.Parameter(like.detach().new_zeros(*shape))
        self.log_diagonal = nn.Parameter(torch.full_like(self.mean, scale).log().detach())

    @property
    @abstractmethod
    def factor(self) -> Tensor:
        """C [..., F, F], lower triangular with a positive diagonal."""

    @abstractmethod
    def perturbation(self, noise: Tensor) -> Tensor:
        """C ε for ε [S, ..., F]."""

    def draw(self, num_samples: int, generator: torch.Generator | None = None) -> Tensor:
        """[S, ..., F]."""
        noise = torch.randn(
            num_samples,
            *self.mean.shape,
            generator=generator,
            dtype=self.mean.dtype,
            device=self.mean.device,
        )
        return self.mean + self.perturbation(noise)

    def kl(self) -> Tensor:
        """KL(q ‖ N(0, I)) [...]; exactly 0 where q is the standard normal."""
        # e^{2a} - 1 - 2a per entry of the diagonal: no cancellation near the prior.
        twice = 2 * self.log_diagonal
        return (self.mean.square() + torch.expm1(twice) - twice).sum(-1) / 2


@final
class DiagonalGaussian(VariationalGaussian):
    """Independent entries: C is diagonal."""

    def __init__(self, shape: Sequence[int], *, like: Tensor, scale: float = 1.0) -> None:
        super().__init__(shape, scale=scale, like=like)

    @property
    def factor(self) -> Tensor:
        return torch.diag_embed(torch.exp(self.log_diagonal))

    def perturbation(self, noise: Tensor) -> Tensor:
        return torch.exp(self.log_diagonal) * noise


@final
class FullGaussian(VariationalGaussian):
    """Full covariance."""

    def __init__(self, shape: Sequence[int], *, like: Tensor, scale: float = 1.0) -> None:
        super().__init__(shape, scale=scale, like=like)
        self.below_diagonal = nn.Parameter(self.mean.new_zeros(*shape, shape[-1]).detach())

    @property
    def factor(self) -> Tensor:
        diagonal = torch.diag_embed(torch.exp(self.log_diagonal))
        return torch.tril(self.below_diagonal, diagonal=-1) + diagonal

    def perturbation(self, noise: Tensor) -> Tensor:
        return torch.einsum("...fk,s...k->s...f", self.factor, noise)

    def kl(self) -> Tensor:
        below = torch.tril(self.below_diagonal, diagonal=-1).square().sum((-2, -1))
        return super().kl() + below / 2

    def set(self, mean: Tensor, factor: Tensor) -> None:
        """Replace q by N(mean, factor factorᵀ), `factor` lower triangular."""
        sizes = tuple(self.mean.shape)
        check_shape("mean", mean, sizes, "Give one mean per entry.")
        check_shape("factor", factor, (*sizes, sizes[-1]), "Give one square factor per Gaussian.")
        check_finite("mean", mean, "Replace them.")
        check_finite("factor", factor, "Replace them.")
        diagonal = factor.diagonal(dim1=-2, dim2=-1)
        if not bool((diagonal > 0).all()):
            raise InputError(
                f"factor must have a positive diagonal; got {diagonal.min().item():g}. "
                "Pass a Cholesky factor."
            )
        if bool(factor.triu(1).any()):
            raise InputError(
                "factor must be lower triangular; got entries above its diagonal. "
                "Pass a Cholesky factor."
            )
        with torch.no_grad():
            self.mean.copy_(mean)
            self.log_diagonal.copy_(diagonal.log())
            self.below_diagonal.copy_(torch.tril(factor, diagonal=-1))
