"""Sums of plane waves, compiled (`planes.c`), and the weights that a first-order ODE gives them.

    sums[s,n,c] = Σ_b cos(ω_b·x_{sn}) cosine[s,b,c] + sin(ω_b·x_{sn}) sine[s,b,c]
    cosine - j sine = sensitivity_{dq} amplitude_{sqb} e^{jβ_{qb}} Π_p 1/(γ_{dp} + jω_{qbp})

`fused.plane_waves` is the first in torch's operations; `triton_planes`, `triton_turning` on CUDA.
"""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from deeplfm.responses.native.library import ARRAY, INT, LONG, Job, Split, call, split_of


class _Planes(Job):
    _fields_ = (
        ("split", Split),
        *((name, INT) for name in ("inputs", "columns", "waves")),
        ("x", ARRAY),
        *((name, LONG) for name in ("x_s", "x_n", "x_p")),
        *((name, ARRAY) for name in ("omega", "cosine", "sine", "out", "gradient")),
        *((name, LONG) for name in ("g_s", "g_n", "g_c")),
        *((name, ARRAY) for name in ("by_x", "by_omega", "by_weights")),
    )


class _Turn(Job):
    _fields_ = (
        *((name, INT) for name in ("samples", "inputs", "outputs", "forces", "count")),
        *((name, ARRAY) for name in ("omega", "phase", "decay", "sensitivities", "amplitude")),
        *((name, LONG) for name in ("of_s", "of_b", "of_d")),
        *((name, ARRAY) for name in ("cosine", "sine")),
        *((f"by_{name}", ARRAY) for name in ("omega", "decay", "sensitivities", "amplitude")),
    )


def plane_sum(
    x: Float[Tensor, "S N P"],
    frequency: Float[Tensor, "R P"],
    cosine: Float[Tensor, "S R C"],
    sine: Float[Tensor, "S R C"],
) -> Float[Tensor, "S N C"]:
    """The sums of each sample at its own points, float32."""
    total: Tensor = _PlaneSum.apply(x, frequency, cosine, sine)
    return total


def turned_amplitudes(
    theta: Float[Tensor, "Q B P"],
    phase: Float[Tensor, "Q B"],
    decay: Float[Tensor, "D P"],
    sensitivities: Float[Tensor, "D Q"],
    amplitude: Float[Tensor, "S Q B"],
    *,
    together: bool,
) -> tuple[Float[Tensor, "S2 W C"], Float[Tensor, "S2 W C"]]:
    """Weights of cos and sin, W = QB: of each sample, or all `together` as SD columns of one.

    The phase has no gradient.
    """
    cosine, sine = _Turned.apply(theta, phase, decay, sensitivities, amplitude, together)
    return cosine, sine


class _PlaneSum(torch.autograd.Function):
    """Keeps its arguments only."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, *others: Tensor) -> Tensor:
        omega, cosine, sine = (part.contiguous() for part in others)
        ctx.save_for_backward(x, omega, cosine, sine)
        out = x.new_empty(*x.shape[:2], cosine.shape[-1])
        job, elements = _job(x, omega, cosine, sine)
        job.fill(out=out)
        call("plane_sums", job, elements)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, ...]:
        x, omega, cosine, sine = ctx.saved_tensors
        job, elements = _job(x, omega, cosine, sine)
        by_x, by_omega = x.new_empty(x.shape), x.new_empty(job.split.tasks, *omega.shape)
        samples, *size = cosine.shape
        by_weights = x.new_empty(job.split.chunks, samples, 2, *size)
        job.fill(by_x=by_x, by_omega=by_omega, by_weights=by_weights, gradient=gradient)
        job.g_s, job.g_n, job.g_c = gradient.stride()
        call("plane_sums_backward", job, 2 * elements)
        return by_x, by_omega[0], by_weights[0, :, 0], by_weights[0, :, 1]


def _job(x: Tensor, omega: Tensor, cosine: Tensor, sine: Tensor) -> tuple[_Planes, int]:
    """What both directions are told, and how many waves there are."""
    job = _Planes(split_of(x, len(x)), x.shape[2], cosine.shape[-1], len(omega))
    job.fill(x=x, omega=omega, cosine=cosine, sine=sine)
    job.x_s, job.x_n, job.x_p = x.stride()
    return job, x.shape[0] * x.shape[1] * len(omega)


class _Turned(torch.autograd.Function):
    """Keeps its arguments only."""

    @staticmethod
    def forward(ctx: Any, *arguments: Any) -> tuple[Tensor, Tensor]:
        *tensors, together = arguments
        tensors = [part.contiguous() for part in tensors]
        ctx.save_for_backward(*tensors)
        job, shape = _turn(tensors, together)
        cosine, sine = (tensors[0].new_empty(shape) for _ in range(2))
        job.fill(cosine=cosine, sine=sine)
        call("turned", job, 0)
        ctx.together = together
        return cosine, sine

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, by_cosine: Tensor, by_sine: Tensor) -> tuple[Tensor | None, ...]:
        tensors = list(ctx.saved_tensors)
        job, _ = _turn(tensors, ctx.together)
        by_cosine, by_sine = by_cosine.contiguous(), by_sine.contiguous()
        theta, _, *others = tensors
        by = [torch.zeros_like(part) for part in (theta, *others)]
        names = ("by_omega", "by_decay", "by_sensitivities", "by_amplitude")
        job.fill(cosine=by_cosine, sine=by_sine, **dict(zip(names, by, strict=True)))
        call("turned_backward", job, 0)
        return by[0], None, *by[1:], None


def _turn(tensors: list[Tensor], together: bool) -> tuple[_Turn, tuple[int, int, int]]:
    """What both directions are told, and the shape of the weights."""
    theta, phase, decay, sensitivities, amplitude = tensors
    (forces, count, inputs), samples, outputs = theta.shape, len(amplitude), len(decay)
    waves = forces * count
    job = _Turn(samples, inputs, outputs, forces, count)
    job.fill(omega=theta, phase=phase, decay=decay)
    job.fill(sensitivities=sensitivities, amplitude=amplitude)
    shape = (1, waves, samples * outputs) if together else (samples, waves, outputs)
    job.of_s, job.of_b = (outputs, shape[2]) if together else (waves * outputs, outputs)
    job.of_d = 1
    return job, shape
