"""Draws and divergences of variational Gaussians, each formula with its gradient in few operations.

A step of training is bound by their number. Gradients that are differentiated in turn come from the
formula itself. Notation as in `gaussians`.
"""

from typing import Any

import torch
from torch import Tensor


class DiagonalDraw(torch.autograd.Function):
    """s (μ + c ε), c the diagonal of C."""

    @staticmethod
    def forward(ctx: Any, *arguments: Tensor) -> Tensor:
        shift, log, center, frame, unit, prior, noise = arguments
        scale, std = unit * frame, torch.exp(log).mul_(frame)
        ctx.save_for_backward(*arguments, scale, std)
        return torch.addcmul(torch.addcmul(center, scale, shift), std, noise).mul_(prior)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        _, log, _, frame, unit, prior, noise, scale, std = ctx.saved_tensors
        if torch.is_grad_enabled():
            scale, std = unit * frame, frame * torch.exp(log)
        gradient = prior * gradients[0]
        by_shift, by_log = gradient.sum(0) * scale, (gradient * noise).sum(0) * std
        return by_shift, by_log, None, None, None, None, None


class DiagonalKL(torch.autograd.Function):
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


class FullDraw(torch.autograd.Function):
    """s (μ0 + C0 (u a + B ε))."""

    @staticmethod
    def forward(ctx: Any, *arguments: Tensor) -> Tensor:
        *given, prior, noise = arguments
        draws, diagonal = full_draw(noise.movedim(0, -1), *given)
        ctx.save_for_backward(*arguments, diagonal)
        return draws.mul_(prior[..., None]).movedim(-1, 0)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        _, log, _, _, frame, unit, prior, noise, diagonal = ctx.saved_tensors
        if torch.is_grad_enabled():
            diagonal = torch.exp(log)
        columns = ((prior * gradients[0]).movedim(0, -1), noise.movedim(0, -1))
        return *full_draw_gradients(*columns, diagonal, frame, unit), *([None] * 5)


def full_draw(
    noise: Tensor,
    shift: Tensor,
    log: Tensor,
    below: Tensor,
    center: Tensor,
    frame: Tensor,
    unit: Tensor,
) -> tuple[Tensor, Tensor]:
    """μ + C ε for each column ε of the noise [..., F, S]; and the diagonal of B."""
    diagonal = torch.exp(log)
    relative = torch.addcmul((unit * shift)[..., None], diagonal[..., None], noise)
    relative = _plus_product(relative, _below_diagonal(below), noise)
    return _plus_product(center[..., None], frame, relative), diagonal


def full_draw_gradients(
    gradient: Tensor, noise: Tensor, diagonal: Tensor, frame: Tensor, unit: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients in what is learnt, from the gradient in such columns."""
    by_relative = _product(frame.mT, gradient)
    by_lower = _product(by_relative, noise.mT)
    by_log = by_lower.diagonal(dim1=-2, dim2=-1).clone() * diagonal  # before it is set to zero
    return unit * by_relative.sum(-1), by_log, by_lower.tril_(diagonal=-1)


class FullKL(torch.autograd.Function):
    """½ (|μ|² + what is below the diagonal of C, squared + Σ e^{2a} - 1 - 2a of its diagonal)."""

    @staticmethod
    def forward(ctx: Any, *arguments: Tensor) -> Tensor:
        mean, beside, growth, twice, diagonal = _full_parts(*arguments)
        ctx.save_for_backward(*arguments, mean, beside, growth, diagonal)
        own = torch.addcmul(growth - twice, mean, mean).sum(-1)
        return own.add_(torch.linalg.vector_norm(beside, dim=(-2, -1)).square_()).mul_(0.5)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        *arguments, mean, beside, growth, diagonal = ctx.saved_tensors
        frame, unit = arguments[-2:]
        if torch.is_grad_enabled():
            mean, beside, growth, _, diagonal = _full_parts(*arguments)
        gradient, transposed = gradients[0][..., None], frame.mT
        by_shift = _product(transposed, mean[..., None])[..., 0] * (unit * gradient)
        by_lower = _product(transposed, beside).mul_(gradient[..., None])
        own = by_lower.diagonal(dim1=-2, dim2=-1).clone()
        by_log = torch.addcmul(gradient * growth, own, diagonal)
        return by_shift, by_log, by_lower.tril_(diagonal=-1), None, None, None


def _full_parts(
    shift: Tensor, log: Tensor, below: Tensor, center: Tensor, frame: Tensor, unit: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """μ, C below its diagonal, e^{2a} - 1, 2a, and the diagonal of B."""
    lower, diagonal = lower_factor(below, log)
    beside = _product(frame, lower)
    beside.diagonal(dim1=-2, dim2=-1).zero_()
    a = frame.diagonal(dim1=-2, dim2=-1).log() + log
    twice = a + a
    return mean_of_full(shift, center, frame, unit), beside, torch.expm1(twice), twice, diagonal


def mean_of_full(shift: Tensor, center: Tensor, frame: Tensor, unit: Tensor) -> Tensor:
    """μ of a full Gaussian."""
    return _plus_product(center[..., None], frame, (unit * shift)[..., None])[..., 0]


def lower_factor(below: Tensor, log: Tensor) -> tuple[Tensor, Tensor]:
    """B, of the logarithms of its diagonal and what is below it; and its diagonal."""
    lower, diagonal = _below_diagonal(below), torch.exp(log)
    lower.diagonal(dim1=-2, dim2=-1).copy_(diagonal)
    return lower, diagonal


def _below_diagonal(matrix: Tensor) -> Tensor:
    """Its strict lower triangle; `torch.tril` takes twice as long as a copy and this."""
    return matrix.clone().tril_(diagonal=-1)


def _product(left: Tensor, right: Tensor) -> Tensor:
    """The product of two batches; `matmul` needs several operations to see that it is one."""
    return torch.bmm(left, right) if left.ndim == 3 else left @ right


def _plus_product(total: Tensor, left: Tensor, right: Tensor) -> Tensor:
    return torch.baddbmm(total, left, right) if left.ndim == 3 else total + left @ right
