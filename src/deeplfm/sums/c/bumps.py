"""Sums of first-order bump responses with infinite memory, compiled (`bumps.c`).

    sums[s,n,d] = Σ_{qj} coefficients[s,d,q,j] Π_p h(x_{snp} - z_{qjp}; γ_{dp}, ℓ_{qp})

`triton_bumps` is the same on CUDA.
"""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from deeplfm.sums.c.jobs import Bumps
from deeplfm.sums.c.library import call, split_of


def first_order_bump_sums(
    x: Float[Tensor, "S3 N P"],
    centers: Float[Tensor, "Q M P"],
    lengthscale: Float[Tensor, "Q P"],
    decay: Float[Tensor, "D P"],
    coefficients: Float[Tensor, "S D Q M"],
) -> Float[Tensor, "S N D"]:
    """float32; of inputs that samples share, the bumps are made once."""
    sums: Tensor = _BumpSums.apply(x, centers, lengthscale, decay, coefficients)
    return sums


class _BumpSums(torch.autograd.Function):
    """Keeps its arguments only."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, *others: Tensor) -> Tensor:
        parts = [part.contiguous() for part in others]
        ctx.save_for_backward(x, *parts)
        return sum_bumps(x, *parts)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, ...]:
        x, centers, scale, decay, weights = ctx.saved_tensors
        return bumps_backward(x, centers, scale, decay, weights, gradient)


def sum_bumps(x: Tensor, centers: Tensor, scale: Tensor, decay: Tensor, weights: Tensor) -> Tensor:
    """The sums; no node."""
    out = x.new_empty(len(weights), x.shape[1], len(decay))
    job, elements = _job(x, centers, scale, decay, weights)
    job.fill(out=out)
    call("bump_sums", job, elements)
    return out


def bumps_backward(
    x: Tensor, centers: Tensor, scale: Tensor, decay: Tensor, weights: Tensor, gradient: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Gradients in all of these."""
    job, elements = _job(x, centers, scale, decay, weights)
    by_x, by_weights = x.new_empty(x.shape), x.new_empty(job.split.chunks, *weights.shape)
    by_parameters = x.new_empty(job.split.tasks, centers.numel() + scale.numel() + decay.numel())
    by = [torch.empty_like(part) for part in (centers, scale, decay)]
    job.fill(by_x=by_x, by_parameters=by_parameters, by_weights=by_weights, gradient=gradient)
    job.fill(by_centers=by[0], by_scale=by[1], by_decay=by[2])
    job.g_s, job.g_n, job.g_d = gradient.stride()
    call("bump_sums_backward", job, 2 * elements)
    return by_x, by[0], by[1], by[2], by_weights[0]


def _job(
    x: Tensor, centers: Tensor, scale: Tensor, decay: Tensor, weights: Tensor
) -> tuple[Bumps, int]:
    """What both directions are told, and how many bumps there are."""
    samples, outputs, forces, count = weights.shape
    job = Bumps(split_of(x, samples), x.shape[2], outputs, forces, count)
    job.fill(x=x, centers=centers, scale=scale, decay=decay, weights=weights)
    job.x_s, job.x_n, job.x_p = x.stride()
    return job, x.numel() * outputs * forces * count
