"""Sums of plane waves, compiled (`planes.c`), and the weights that a first-order ODE gives them.

    sums[s,n,c] = Σ_b cos(ω_b·x_{sn}) cosine[s,b,c] + sin(ω_b·x_{sn}) sine[s,b,c]
    cosine - j sine = sensitivity_{dq} amplitude_{sqb} e^{jβ_{qb}} Π_p 1/(γ_{dp} + jω_{qbp})

What is not a node of the graph adds to given tensors.
"""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from deeplfm.sums.c.jobs import Planes, WaveWeights
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


def wave_weights(
    theta: Float[Tensor, "1 Q B P"],
    phase: Float[Tensor, "1 Q B"],
    decay: Float[Tensor, "D P"],
    sensitivities: Float[Tensor, "D Q"],
    amplitude: Float[Tensor, "S Q B"],
) -> tuple[Float[Tensor, "S W D"], Float[Tensor, "S W D"]]:
    """Weights of cos and sin, W = QB; no node."""
    parts = (theta, phase, decay, sensitivities, amplitude)
    job = _weights_job(parts)
    shape = (len(amplitude), phase.numel(), len(decay))
    cosine, sine = theta.new_empty(shape), theta.new_empty(shape)
    job.fill(cosine=cosine, sine=sine)
    call("wave_weights", job, 0)
    return cosine, sine


def wave_weights_backward(
    parts: Sequence[Tensor], by_cosine: Tensor, by_sine: Tensor, by: Sequence[Tensor]
) -> None:
    """Gradients in all but the phase, added to `by`."""
    job = _weights_job(parts)
    job.fill(cosine=by_cosine, sine=by_sine)
    job.by_omega, job.by_decay, job.by_sensitivities, job.by_amplitude = (
        part.data_ptr() for part in by
    )
    call("wave_weights_backward", job, 0)


def _weights_job(parts: Sequence[Tensor]) -> WaveWeights:
    theta, phase, decay, sensitivities, amplitude = parts
    _, forces, count, inputs = theta.shape
    job = WaveWeights(len(amplitude), inputs, len(decay), forces, count)
    job.fill(omega=theta, phase=phase, decay=decay)
    job.fill(sensitivities=sensitivities, amplitude=amplitude)
    return job
