"""Sums of first-order bump responses with infinite memory.

    sums[s,n,d] = Σ_{qj} coefficients[s,d,q,j] Π_p h(x_{snp} - z_{qjp}; γ_{dp}, ℓ_{qp})
    h(t; γ, ℓ)  = ∫_0^∞ e^{-γu} e^{-(t-u)²/(2ℓ²)} du

A gain of the ODE belongs into the coefficients. One warp takes a block of points and walks over
the centers; gradients over points are written per block and summed after.
"""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from deeplfm.responses.fused.triton_blocks import block_of, blocks, divisor_of
from deeplfm.responses.fused.triton_bump_kernels import backward, forward

_RESPONSES = 12  # of outputs and inputs, that a warp works on at a time
_SHARED_CENTERS = 8  # of a warp, where few points must keep the device busy


def first_order_bump_sums(
    x: Float[Tensor, "S3 N P"],
    centers: Float[Tensor, "Q M P"],
    lengthscale: Float[Tensor, "Q P"],
    decay: Float[Tensor, "D P"],
    coefficients: Float[Tensor, "S D Q M"],
) -> Float[Tensor, "S N D"]:
    """With inputs that all samples share, the bumps are made once: S3 = 1."""
    if len(x) == 1:
        ones = coefficients.new_ones(1, *coefficients.shape[1:])
        bumps = _BumpSums.apply(x, centers, lengthscale, decay, ones, True)  # D N QM
        total: Tensor = bumps @ coefficients.flatten(2).permute(1, 2, 0)  # D N S
        return total.permute(2, 1, 0)
    sums: Tensor = _BumpSums.apply(x, centers, lengthscale, decay, coefficients, False)
    return sums


class _BumpSums(torch.autograd.Function):
    """Keeps its arguments only. `apart`: each product for itself, [D, N, QM], not their sums."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        centers: Tensor,
        lengthscale: Tensor,
        decay: Tensor,
        coefficients: Tensor,
        apart: bool,
    ) -> Tensor:
        rest = (centers, lengthscale, decay, coefficients)
        centers, lengthscale, decay, coefficients = (part.contiguous() for part in rest)
        ctx.save_for_backward(x, centers, lengthscale, decay, coefficients)
        ctx.apart = apart
        samples, outputs, forces, count = coefficients.shape
        points, inputs = x.shape[1:]
        shape = (outputs, points, forces * count) if apart else (samples, points, outputs)
        total = x.new_zeros(shape) if centers.numel() == 0 else x.new_empty(shape)
        if total.numel() and centers.numel():
            block, own = block_of(points, 32), divisor_of(outputs, max(1, _RESPONSES // inputs))
            chunk = min(count, _SHARED_CENTERS) if apart else count
            pieces = forces * blocks(count, chunk) if apart else 1
            forward[(samples * (outputs // own), blocks(points, block), pieces)](
                *(x, centers, lengthscale, decay, coefficients, total),
                *(points, *x.stride()),
                Q=forces,
                M=count,
                P=inputs,
                D=outputs,
                OWN=own,
                CHUNK=chunk,
                APART=apart,
                BLOCK=block,
                num_warps=1,
            )
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        arguments = ctx.saved_tensors
        x, centers, _, _, coefficients = arguments
        if x.numel() * centers.numel() * coefficients.numel() == 0:
            return (*(torch.zeros_like(part) for part in arguments), None)
        samples, outputs, forces, count = coefficients.shape
        points, inputs = x.shape[1:]
        block = block_of(points, 64 if samples * points > 2**18 else 32)
        own = divisor_of(outputs, max(1, _RESPONSES // inputs))
        pieces, groups = blocks(points, block), outputs // own
        chunk = min(count, _SHARED_CENTERS) if ctx.apart else count
        chunks = blocks(count, chunk)
        # Each warp has sums of its own, added up after: the same bits every time.
        rows, width = pieces * samples * groups, count * inputs
        by_x = x.new_empty(groups * forces * chunks, samples, points, inputs)
        by_center = x.new_empty(rows, forces, width)
        by_scale = x.new_empty(rows, chunks, forces, (1 + own) * inputs)
        by_coefficient = x.new_empty(pieces, samples, outputs, forces, count)
        backward[(samples * groups, pieces, forces * chunks)](
            *(*arguments, gradient, by_x, by_center, by_scale, by_coefficient),
            *(points, *x.stride(), *gradient.stride(), samples),
            M=count,
            P=inputs,
            D=outputs,
            OWN=own,
            CHUNK=chunk,
            APART=ctx.apart,
            BLOCK=block,
            num_warps=1,
        )
        scales = by_scale.unflatten(0, (-1, groups)).sum((0, 2))  # groups Q (1 + own)·P
        by_lengthscale, by_decay = scales.unflatten(-1, (-1, inputs)).split((1, own), dim=2)
        return (
            by_x[0] if len(by_x) == 1 else by_x.sum(0),
            by_center.sum(0).reshape(centers.shape),
            by_lengthscale.sum((0, 2)),
            by_decay.sum(1).flatten(0, 1),
            None
            if ctx.apart
            else by_coefficient[0]
            if pieces == 1
            else by_coefficient.sum(0),
            None,
        )
