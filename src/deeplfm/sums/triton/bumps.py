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

from deeplfm.sums.triton.blocks import block_of, blocks, divisor_of
from deeplfm.sums.triton.bump_kernels import backward, forward

_RESPONSES = 12  # of outputs and inputs, that a warp works on at a time
_SHARED_CENTERS = 8  # of a warp, where few points must keep the device busy


def first_order_bump_sums(
    x: Float[Tensor, "S3 N P"],
    centers: Float[Tensor, "Q M P"],
    lengthscale: Float[Tensor, "Q P"],
    decay: Float[Tensor, "D P"],
    coefficients: Float[Tensor, "S D Q M"],
) -> Float[Tensor, "S N D"]:
    """The sums; bumps at inputs that all samples share (S3 = 1) are made once."""
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
            own = divisor_of(outputs, max(1, _RESPONSES // inputs))
            rows = samples * (outputs // own)
            block = block_of(points, rows // 2, 64)  # less to do at a time: more warps
            chunk = min(count, _SHARED_CENTERS) if apart else count
            pieces = forces * blocks(count, chunk) if apart else 1
            forward[(rows, blocks(points, block), pieces)](
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
        own = divisor_of(outputs, max(1, _RESPONSES // inputs))
        groups = outputs // own
        chunk = min(count, _SHARED_CENTERS) if ctx.apart else count
        chunks = blocks(count, chunk)
        block = block_of(points, samples * groups * chunks, 64)
        pieces = blocks(points, block)
        # Each warp has sums of its own, added up after: the same bits every time.
        by_x = x.new_empty(groups * forces * chunks, samples, points, inputs)
        widths = (count * inputs, chunks * inputs, chunks * own * inputs)  # centers, ℓ, γ
        by_parameters = x.new_empty(pieces * samples, groups, forces, sum(widths))
        by_coefficient = x.new_empty(pieces, samples, outputs, forces, count)
        backward[(samples * groups, pieces, forces * chunks)](
            *(*arguments, gradient, by_x, by_parameters, by_coefficient),
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
        by_center, by_scale, by_decay = by_parameters.sum(0).split(widths, dim=-1)
        by_decay = _total(by_decay.unflatten(-1, (chunks, own, inputs)), 1, 2)
        return (
            _total(by_x, 0),
            _total(by_center, 0).reshape(centers.shape),
            _total(by_scale.unflatten(-1, (chunks, inputs)), 0, 2),
            by_decay.flatten(0, 1),
            None if ctx.apart else _total(by_coefficient, 0),
            None,
        )


def _total(partial: Tensor, *dims: int) -> Tensor:
    """A sum over dimensions; no kernel where each has one entry."""
    if all(partial.shape[dim] == 1 for dim in dims):
        for dim in sorted(dims, reverse=True):
            partial = partial.select(dim, 0)
        return partial
    return partial.sum(dims)
