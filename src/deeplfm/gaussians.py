"""Variational Gaussians, measured against the standard normal.

    q(w) = N(μ, CCᵀ),  w = μ + Cε;   KL(q ‖ N(0, I)) = ½ (|μ|² + |C|² - F - 2 log det C)
    μ = μ0 + u C0 a,  C = C0 B      (μ0, C0) as last `set`, a and B what is learnt

Both posteriors of the library are this: whitened inducing values, and weights of features. Steps
of an optimiser are in units of the spread of q as it was set, in every direction, and so small (u)
that many noisy ones at once do not undo a fit; or as large as the prior's (`widen_steps`).
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, final

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

    def widen_steps(self) -> None:
        """Just after `set`: steps of μ as large as those from the prior, on average.

        For a q that is only a beginning: in units of its spread it would never get far.
        """
        with torch.no_grad():
            self.unit.copy_((self.shift.numel() / self.frame.square().sum()).sqrt())

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
        noise = self._noise(num_samples, generator)
        fixed = (self.center, self.frame, self.unit)
        draws: Tensor = _DiagonalDraw.apply(self.shift, self.log_diagonal, *fixed, noise)
        return draws

    def kl(self) -> Tensor:
        fixed = (self.center, self.frame, self.unit)
        divergence: Tensor = _DiagonalKL.apply(self.shift, self.log_diagonal, *fixed)
        return divergence

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
        return _mean(self.shift, *self._fixed())

    @property
    def factor(self) -> Tensor:
        return self.frame @ _lower(self.below_diagonal, self.log_diagonal)

    def draw(self, num_samples: int, generator: torch.Generator | None = None) -> Tensor:
        noise = self._noise(num_samples, generator)
        draws: Tensor = _FullDraw.apply(*self._learnt(), *self._fixed(), noise)
        return draws

    def kl(self) -> Tensor:
        divergence: Tensor = _FullKL.apply(*self._learnt(), *self._fixed())
        return divergence

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

    def _learnt(self) -> tuple[Tensor, Tensor, Tensor]:
        return self.shift, self.log_diagonal, self.below_diagonal

    def _fixed(self) -> tuple[Tensor, Tensor, Tensor]:
        return self.center, self.frame, self.unit


# What follows is each formula with its gradient in few operations: a step of training is bound by
# their number. Gradients that are differentiated in turn come from the formula itself.


class _DiagonalDraw(torch.autograd.Function):
    """μ + c ε, c the diagonal of C."""

    @staticmethod
    def forward(ctx: Any, *arguments: Tensor) -> Tensor:
        shift, log, center, frame, unit, noise = arguments
        scale, std = unit * frame, torch.exp(log).mul_(frame)
        ctx.save_for_backward(*arguments, scale, std)
        return torch.addcmul(torch.addcmul(center, scale, shift), std, noise)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (gradient,), (_, log, _, frame, unit, noise, scale, std) = gradients, ctx.saved_tensors
        if torch.is_grad_enabled():
            scale, std = unit * frame, frame * torch.exp(log)
        by_shift, by_log = gradient.sum(0) * scale, (gradient * noise).sum(0) * std
        return by_shift, by_log, None, None, None, None


class _DiagonalKL(torch.autograd.Function):
    """½ Σ μ² + e^{2a} - 1 - 2a with c = e^a: no cancellation near the prior."""

    @staticmethod
    def forward(ctx: Any, *arguments: Tensor) -> Tensor:
        shift, log, center, frame, unit = arguments
        scale = unit * frame
        mean, twice = torch.addcmul(center, scale, shift), (frame.log() + log).mul_(2)
        growth = torch.expm1(twice)
        ctx.save_for_backward(*arguments, scale.mul_(mean), growth)
        return torch.addcmul(growth - twice, mean, mean).sum(-1).div_(2)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        shift, log, center, frame, unit, pull, growth = ctx.saved_tensors
        if torch.is_grad_enabled():
            pull = unit * frame * (center + unit * frame * shift)
            growth = torch.expm1(2 * (log + frame.log()))
        gradient = gradients[0][..., None]
        return gradient * pull, gradient * growth, None, None, None


class _FullDraw(torch.autograd.Function):
    """μ0 + C0 (u a + B ε)."""

    @staticmethod
    def forward(ctx: Any, *arguments: Tensor) -> Tensor:
        shift, log, below, center, frame, unit, noise = arguments
        ctx.save_for_backward(log, frame, unit, noise)
        relative = (_lower(below, log) @ _columns(noise)).add_((unit * shift)[..., None])
        return (frame @ relative).add_(center[..., None]).movedim(-1, 0)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (gradient,), (log, frame, unit, noise) = gradients, ctx.saved_tensors
        by_relative = frame.mT @ _columns(gradient)
        by_lower = by_relative @ _columns(noise).mT
        by_log = by_lower.diagonal(dim1=-2, dim2=-1).clone() * torch.exp(log)
        by_below = by_lower.tril_(diagonal=-1)
        return unit * by_relative.sum(-1), by_log, by_below, None, None, None, None


class _FullKL(torch.autograd.Function):
    """½ (|μ|² + what is below the diagonal of C, squared + Σ e^{2a} - 1 - 2a of its diagonal)."""

    @staticmethod
    def forward(ctx: Any, *arguments: Tensor) -> Tensor:
        shift, log, below, *fixed = arguments
        mean, beside, growth, twice = _full_parts(shift, log, below, *fixed)
        ctx.save_for_backward(*arguments, mean, beside, growth)
        own = torch.addcmul(growth - twice, mean, mean).sum(-1)
        return own.add_(torch.linalg.vector_norm(beside, dim=(-2, -1)).square_()).div_(2)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        *arguments, mean, beside, growth = ctx.saved_tensors
        _, log, _, _, frame, unit = arguments
        if torch.is_grad_enabled():
            mean, beside, growth, _ = _full_parts(*arguments)
        gradient = gradients[0][..., None]
        by_shift = unit * gradient * (frame.mT @ mean[..., None])[..., 0]
        by_lower = (frame.mT @ beside).mul_(gradient[..., None])
        diagonal = by_lower.diagonal(dim1=-2, dim2=-1).clone()
        by_log = torch.addcmul(gradient * growth, diagonal, torch.exp(log))
        return by_shift, by_log, by_lower.tril_(diagonal=-1), None, None, None


def _full_parts(
    shift: Tensor, log: Tensor, below: Tensor, center: Tensor, frame: Tensor, unit: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """μ, C below its diagonal, e^{2a} - 1 and 2a."""
    twice = 2 * (log + frame.diagonal(dim1=-2, dim2=-1).log())
    beside = frame @ _lower(below, log)
    beside.diagonal(dim1=-2, dim2=-1).zero_()
    return _mean(shift, center, frame, unit), beside, torch.expm1(twice), twice


def _mean(shift: Tensor, center: Tensor, frame: Tensor, unit: Tensor) -> Tensor:
    """μ of a full Gaussian."""
    return center + (frame @ (unit * shift)[..., None])[..., 0]


def _lower(below: Tensor, log: Tensor) -> Tensor:
    """B, of its diagonal in logarithms and what is below it."""
    lower = torch.tril(below, diagonal=-1)
    lower.diagonal(dim1=-2, dim2=-1).copy_(torch.exp(log))
    return lower


def _columns(samples: Tensor) -> Tensor:
    """[S, ..., F] as [..., F, S]."""
    return samples.movedim(0, -1)


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
