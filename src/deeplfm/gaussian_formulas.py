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
        shift, log, below, center, frame, unit, prior, noise = arguments
        ctx.save_for_backward(log, frame, unit, prior, noise)
        relative = (lower_factor(below, log) @ _columns(noise)).add_((unit * shift)[..., None])
        whitened = (frame @ relative).add_(center[..., None])
        return whitened.mul_(prior[:, None]).movedim(-1, 0)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        log, frame, unit, prior, noise = ctx.saved_tensors
        by_relative = frame.mT @ (_columns(gradients[0]) * prior[:, None])
        by_lower = by_relative @ _columns(noise).mT
        by_log = by_lower.diagonal(dim1=-2, dim2=-1).clone() * torch.exp(log)
        by_below = by_lower.tril_(diagonal=-1)
        return unit * by_relative.sum(-1), by_log, by_below, None, None, None, None, None


class FullKL(torch.autograd.Function):
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
    beside = frame @ lower_factor(below, log)
    beside.diagonal(dim1=-2, dim2=-1).zero_()
    return mean_of_full(shift, center, frame, unit), beside, torch.expm1(twice), twice


def mean_of_full(shift: Tensor, center: Tensor, frame: Tensor, unit: Tensor) -> Tensor:
    """μ of a full Gaussian."""
    return center + (frame @ (unit * shift)[..., None])[..., 0]


def lower_factor(below: Tensor, log: Tensor) -> Tensor:
    """B, of its diagonal in logarithms and what is below it."""
    lower = torch.tril(below, diagonal=-1)
    lower.diagonal(dim1=-2, dim2=-1).copy_(torch.exp(log))
    return lower


def _columns(samples: Tensor) -> Tensor:
    """[S, ..., F] as [..., F, S]."""
    return samples.movedim(0, -1)
