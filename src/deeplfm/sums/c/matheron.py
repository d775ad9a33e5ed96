"""`sums.matheron_draw` for few inducing points on a CPU, compiled (`matheron.c`)."""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from deeplfm.forces.numbers import Numbers
from deeplfm.sums.c.jobs import GIVEN, KEPT, LEARNT, NUMBERS, Matheron
from deeplfm.sums.c.library import call

MOST = 256  # inducing points: from there on large products are what counts


def matheron_draw(
    z: Float[Tensor, "#Q M P"],
    lengthscale: Float[Tensor, "#Q P"],
    variance: Float[Tensor, "Q"],
    gaussian: Sequence[Tensor],
    jitter: Float[Tensor, ""],
    numbers: Numbers,
) -> tuple[Float[Tensor, "1 Q B P"], Float[Tensor, "S Q M"]]:
    """θ and c; float32. c is NaN where a Gram matrix is not positive definite."""
    *parts, unit = gaussian
    theta, coefficients = _Draw.apply(
        z, lengthscale, variance, *parts, *numbers, jitter.item(), unit.item()
    )
    return theta, coefficients


class _Draw(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *arguments: Any) -> tuple[Tensor, Tensor]:
        *tensors, jitter, unit = arguments
        tensors = [part.contiguous() for part in tensors]
        job = _job(tensors, jitter, unit)
        sets, forces, points = max(job.z_rows, job.ell_rows), job.forces, job.points
        like = tensors[0]
        shapes = (
            *((sets, points, job.inputs), (sets, points, points), (sets, points, points)),
            *((forces, points, job.samples), (forces, points, job.samples)),
        )
        kept = [torch.empty(shape, dtype=torch.float64) for shape in shapes]
        kept += [
            torch.empty(sets, dtype=torch.int32),
            like.new_empty(forces, points, job.basis),
            torch.empty_like(tensors[9]),
            like.new_empty(job.samples, forces, points),
        ]
        job.fill(**dict(zip(KEPT, kept, strict=True)))
        call("matheron", job, points**3)
        ctx.save_for_backward(*tensors, *kept)
        ctx.numbers = (jitter, unit)
        return kept[-2], kept[-1]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, by_theta: Tensor, by_coefficients: Tensor) -> tuple[Tensor | None, ...]:
        saved = ctx.saved_tensors
        tensors, kept = saved[: len(GIVEN) + len(NUMBERS)], saved[-len(KEPT) :]
        job = _job(tensors, *ctx.numbers)
        by_theta, by_coefficients = by_theta.contiguous(), by_coefficients.contiguous()
        by = [torch.zeros_like(part) for part in tensors[: len(LEARNT)]]
        job.fill(**dict(zip(KEPT, kept, strict=True)))
        job.fill(by_theta=by_theta, by_coefficients=by_coefficients)
        job.fill(**{f"by_{name}": part for name, part in zip(LEARNT, by, strict=True)})
        call("matheron_backward", job, job.points**3)
        return *by, *([None] * (len(ctx.needs_input_grad) - len(by)))


def _job(tensors: Any, jitter: float, unit: float) -> Matheron:
    z, ell, variance = tensors[:3]
    xi, weights = tensors[9:11]
    sizes = (len(variance), z.shape[-2], z.shape[-1], len(weights), xi.shape[2])
    job = Matheron(*sizes, len(z), len(ell), jitter, unit)
    job.fill(**dict(zip((*GIVEN, *NUMBERS), tensors, strict=True)))
    return job
