"""Variational Gaussians, measured against the standard normal.

    q(w) = N(μ, CCᵀ),  w = μ + Cε;   KL(q ‖ N(0, I)) = ½ (|μ|² + |C|² - F - 2 log det C)
    μ = μ0 + u C0 a,  C = C0 B      (μ0, C0) as last `set`, a and B what is learnt

Both posteriors of the library are this: whitened inducing values, and weights of features. Steps
of an optimiser are in units of the spread of q as it was set, in every direction, and so small (u)
that many noisy ones at once do not undo a fit.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import final

import torch
from torch import Tensor, nn

from deeplfm.errors import InputError
from deeplfm.randomness import normal
from deeplfm.shapes import check_finite, check_shape

_UNIT = 0.3  # of a standard deviation, once q was set; 1 before


class VariationalGaussian(nn.Module, ABC):
    """A batch of F-dimensional Gaussians, `shape` = [..., F], started at N(0, scale² I)."""

    center: Tensor
    frame: Tensor
    unit: Tensor

    def __init__(self, shape: Sequence[int], *, scale: float, like: Tensor) -> None:
        super().__init__()
        zeros = like.detach().new_zeros(*shape)
        self.register_buffer("center", zeros.clone())
        self.register_buffer("unit", zeros.new_ones(()))
        self.shift = nn.Parameter(zeros)
        self.log_diagonal = nn.Parameter(torch.full_like(zeros, scale).log().detach())

    @property
    @abstractmethod
    def mean(self) -> Tensor:
        """μ [..., F]."""

    @property
    @abstractmethod
    def factor(self) -> Tensor:
        """C [..., F, F], lower triangular with a positive diagonal."""

    @abstractmethod
    def draw(self, num_samples: int, generator: torch.Generator | None = None) -> Tensor:
        """[S, ..., F]."""

    @abstractmethod
    def kl(self) -> Tensor:
        """KL(q ‖ N(0, I)) [...]; exactly 0 where q is the standard normal."""

    @abstractmethod
    def set(self, mean: Tensor, factor: Tensor) -> None:
        """Replace q by N(mean, factor factorᵀ), and measure steps from there."""

    def _noise(self, num_samples: int, generator: torch.Generator | None) -> Tensor:
        return normal((num_samples, *self.shift.shape), generator, self.shift)


@final
class DiagonalGaussian(VariationalGaussian):
    """Independent entries: C is diagonal."""

    def __init__(self, shape: Sequence[int], *, like: Tensor, scale: float = 1.0) -> None:
        super().__init__(shape, scale=scale, like=like)
        self.register_buffer("frame", torch.ones_like(self.center))

    @property
    def mean(self) -> Tensor:
        return self.center + self.unit * self.frame * self.shift

    @property
    def std(self) -> Tensor:
        """The diagonal of C."""
        return self.frame * torch.exp(self.log_diagonal)

    @property
    def factor(self) -> Tensor:
        return torch.diag_embed(self.std)

    def draw(self, num_samples: int, generator: torch.Generator | None = None) -> Tensor:
        return self.mean + self.std * self._noise(num_samples, generator)

    def kl(self) -> Tensor:
        # e^{2a} - 1 - 2a per entry of the diagonal: no cancellation near the prior.
        twice = 2 * (self.log_diagonal + self.frame.log())
        return (self.mean.square() + torch.expm1(twice) - twice).sum(-1) / 2

    def set(self, mean: Tensor, factor: Tensor) -> None:
        """`factor` diagonal."""
        _check(self.shift.shape, mean, factor)
        diagonal = factor.diagonal(dim1=-2, dim2=-1)
        if bool((factor - torch.diag_embed(diagonal)).any()):
            raise InputError(
                "factor must be diagonal; got entries beside its diagonal. Use full weights."
            )
        with torch.no_grad():
            self.center.copy_(mean)
            self.frame.copy_(diagonal)
            self.unit.fill_(_UNIT)
            self.shift.zero_()
            self.log_diagonal.zero_()


@final
class FullGaussian(VariationalGaussian):
    """Full covariance."""

    def __init__(self, shape: Sequence[int], *, like: Tensor, scale: float = 1.0) -> None:
        super().__init__(shape, scale=scale, like=like)
        identity = torch.eye(shape[-1], dtype=self.shift.dtype, device=self.shift.device)
        self.register_buffer("frame", identity.expand(*shape, shape[-1]).clone())
        self.below_diagonal = nn.Parameter(torch.zeros_like(self.frame))

    @property
    def mean(self) -> Tensor:
        return self.center + _times(self.frame, self.unit * self.shift)

    @property
    def factor(self) -> Tensor:
        return self.frame @ self._relative()

    def draw(self, num_samples: int, generator: torch.Generator | None = None) -> Tensor:
        noise = self._noise(num_samples, generator)
        relative = self.unit * self.shift + _times(self._relative(), noise)
        return self.center + _times(self.frame, relative)

    def kl(self) -> Tensor:
        twice = 2 * (self.log_diagonal + self.frame.diagonal(dim1=-2, dim2=-1).log())
        below = torch.tril(self.factor, diagonal=-1).square().sum(-1)
        return (self.mean.square() + torch.expm1(twice) - twice + below).sum(-1) / 2

    def set(self, mean: Tensor, factor: Tensor) -> None:
        """`factor` lower triangular."""
        _check(self.shift.shape, mean, factor)
        if bool(factor.triu(1).any()):
            raise InputError(
                "factor must be lower triangular; got entries above its diagonal. "
                "Pass a Cholesky factor."
            )
        with torch.no_grad():
            self.center.copy_(mean)
            self.frame.copy_(factor)
            self.unit.fill_(_UNIT)
            for learnt in (self.shift, self.log_diagonal, self.below_diagonal):
                learnt.zero_()

    def _relative(self) -> Tensor:
        """B."""
        diagonal = torch.diag_embed(torch.exp(self.log_diagonal))
        return torch.tril(self.below_diagonal, diagonal=-1) + diagonal


def _times(matrix: Tensor, vectors: Tensor) -> Tensor:
    """[..., F, F] times [(S), ..., F]."""
    if vectors.ndim < matrix.ndim:
        return torch.einsum("...fk,...k->...f", matrix, vectors)
    return torch.einsum("...fk,s...k->s...f", matrix, vectors)


def _check(sizes: Sequence[int], mean: Tensor, factor: Tensor) -> None:
    check_shape("mean", mean, tuple(sizes), "Give one mean per entry.")
    check_shape("factor", factor, (*sizes, sizes[-1]), "Give one square factor per Gaussian.")
    check_finite("mean", mean, "Replace them.")
    check_finite("factor", factor, "Replace them.")
    diagonal = factor.diagonal(dim1=-2, dim2=-1)
    if not bool((diagonal > 0).all()):
        raise InputError(
            f"factor must have a positive diagonal; got {diagonal.min().item():g}. "
            "Pass a Cholesky factor."
        )
