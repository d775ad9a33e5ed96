"""Sums of plane waves, compiled (`planes.c`).

sums[s,n,c] = Σ_b cos(ω_b·x_sn) cosine[s,b,c] + sin(ω_b·x_sn) sine[s,b,c]
"""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from deeplfm.sums.c.jobs import Planes
from deeplfm.sums.c.library import call, split_of


def plane_sum(
    x: Float[Tensor, "#S N P"],
    frequency: Float[Tensor, "R P"],
    cosine: Float[Tensor, "S R C"],
    sine: Float[Tensor, "S R C"],
) -> Float[Tensor, "S N C"]:
    """The sums of each sample at its own points, or at points that all share; float32."""
    total: Tensor = _PlaneSum.apply(x, frequency, cosine, sine)
    return total


class _PlaneSum(torch.autograd.Function):
    """Keeps its arguments only."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, *others: Tensor) -> Tensor:
        omega, cosine, sine = (part.contiguous() for part in others)
        ctx.save_for_backward(x, omega, cosine, sine)
        out = x.new_zeros(len(cosine), x.shape[1], cosine.shape[-1])
        add_planes(x, omega, cosine, sine, out)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, ...]:
        x, omega, cosine, sine = ctx.saved_tensors
        by_x = x.new_zeros(x.shape)
        return by_x, *planes_backward(x, omega, cosine, sine, gradient, by_x)


def add_planes(x: Tensor, omega: Tensor, cosine: Tensor, sine: Tensor, out: Tensor) -> None:
    """The sums, added to `out`."""
    job, elements = _job(x, omega, cosine, sine)
    job.fill(out=out)
    call("plane_sums", job, elements)


def planes_backward(
    x: Tensor, omega: Tensor, cosine: Tensor, sine: Tensor, gradient: Tensor, by_x: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients in ω and both weights; that in x is added to `by_x`."""
    job, elements = _job(x, omega, cosine, sine)
    by_omega = x.new_empty(job.split.tasks, *omega.shape)
    by_weights = x.new_empty(job.split.chunks, 2, *cosine.shape)
    job.fill(by_x=by_x, by_omega=by_omega, by_weights=by_weights, gradient=gradient)
    job.g_s, job.g_n, job.g_c = gradient.stride()
    call("plane_sums_backward", job, 2 * elements)
    by_cosine, by_sine = by_weights[0]
    return by_omega[0], by_cosine, by_sine


def _job(x: Tensor, omega: Tensor, cosine: Tensor, sine: Tensor) -> tuple[Planes, int]:
    """What both directions are told, and how many waves there are."""
    _, waves, columns = cosine.shape
    job = Planes(split_of(x, len(cosine)), x.shape[2], columns, waves)
    job.fill(x=x, omega=omega, cosine=cosine, sine=sine)
    job.x_s, job.x_n, job.x_p = x.stride()
    return job, x.shape[0] * x.shape[1] * waves
