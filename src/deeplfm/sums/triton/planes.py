"""Sums of plane waves, which run along all inputs at once.

    sums[s,n,d] = Σ_b cos(ω_b·x_sn)·cosine[s,b,d] + sin(ω_b·x_sn)·sine[s,b,d]

One warp takes a block of points and walks over b; gradients over points are written per block and
summed after.
"""

# ruff: noqa: RUF005 (kernels know no unpacking of tuples)

from typing import Any, no_type_check

import torch
import triton
import triton.language as tl
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from deeplfm.sums.triton.blocks import block_of, blocks, divisor_of
from deeplfm.sums.triton.maths import columns_of, turned, turns

_OUTPUTS = 8  # that a warp holds the sums of


def plane_wave_sums(
    x: Float[Tensor, "S N P"],
    omega: Float[Tensor, "B P"],
    cosine: Float[Tensor, "S B D"],
    sine: Float[Tensor, "S B D"],
) -> Float[Tensor, "S N D"]:
    """Each sample has points and weights of its own; all have the same waves."""
    sums: Tensor = _PlaneWaveSums.apply(x, omega, cosine, sine)
    return sums


class _PlaneWaveSums(torch.autograd.Function):
    """Keeps its arguments only."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, omega: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
        omega, cosine, sine = (part.contiguous() for part in (omega, cosine, sine))
        ctx.save_for_backward(x, omega, cosine, sine)
        (samples, points, inputs), (_, count, outputs) = x.shape, cosine.shape
        total = x.new_empty(samples, points, outputs)
        if total.numel():
            own = divisor_of(outputs, _OUTPUTS)
            rows = samples * (outputs // own)
            block = block_of(points, rows, 128)
            _forward[(rows, blocks(points, block))](
                *(x, omega, cosine, sine, total),
                *(points, *x.stride()),
                B=count,
                P=inputs,
                D=outputs,
                OWN=own,
                BLOCK=block,
                num_warps=1,
            )
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        x, omega, cosine, sine = ctx.saved_tensors
        (samples, points, inputs), (_, count, outputs) = x.shape, cosine.shape
        if x.numel() * cosine.numel() == 0:
            return tuple(torch.zeros_like(part) for part in (x, omega, cosine, sine))
        own = divisor_of(outputs, _OUTPUTS)
        groups = outputs // own
        block = block_of(points, samples * groups, 128)
        parts = blocks(points, block)
        by_x = x.new_empty(groups, samples, points, inputs)
        by_omega = x.new_empty(parts, groups, samples, count, inputs)
        by_weights = x.new_empty(parts, 2, samples, count, outputs)
        _backward[(samples * groups, parts)](
            *(x, omega, cosine, sine, gradient, by_x, by_omega, by_weights),
            *(points, *x.stride(), *gradient.stride(), samples),
            B=count,
            P=inputs,
            D=outputs,
            OWN=own,
            BLOCK=block,
            num_warps=1,
        )
        weights = by_weights[0] if parts == 1 else by_weights.sum(0)
        return (
            by_x[0] if groups == 1 else by_x.sum(0),
            by_omega.sum((0, 1, 2)),
            weights[0],
            weights[1],
        )


@triton.jit
@no_type_check
def _waves(x, omega_ptr, P: tl.constexpr):
    """cos and sin of the phases."""
    f = tl.zeros_like(x[0])
    for p in tl.static_range(P):
        high, low = turns(tl.load(omega_ptr + p))
        # Each term has its whole turns taken off: a sum of long phases would lose them to rounding.
        whole = tl.floor(x[p] * high + 0.5)
        f += tl.fma(x[p], low, tl.fma(x[p], high, -whole))
    square, product = turned(f - tl.floor(f + 0.5))
    return 1 - 2 * square, 2 * product


@triton.jit
@no_type_check
def _forward(
    x_ptr, omega_ptr, cosine_ptr, sine_ptr, out_ptr,
    points, x_s, x_n, x_p,
    B: tl.constexpr, P: tl.constexpr, D: tl.constexpr, OWN: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    GROUPS: tl.constexpr = D // OWN
    row = tl.program_id(0).to(tl.int64)
    s, first = row // GROUPS, row % GROUPS * OWN
    n = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = columns_of(x_ptr + s * x_s, n, points, x_n, x_p, P)
    at = s * (B * D) + first
    totals = ()
    for _ in tl.static_range(OWN):
        totals = totals + (tl.zeros_like(x[0]),)
    for b in range(B):
        cosines, waves = _waves(x, omega_ptr + b * P, P)
        more = ()
        for d in tl.static_range(OWN):
            cosine = tl.load(cosine_ptr + at + b * D + d)
            sine = tl.load(sine_ptr + at + b * D + d)
            more = more + (totals[d] + cosines * cosine + waves * sine,)
        totals = more
    for d in tl.static_range(OWN):
        out = (s * points + n) * D + first + d
        tl.store(out_ptr + out, totals[d], mask=n < points)


@triton.jit
@no_type_check
def _backward(
    x_ptr, omega_ptr, cosine_ptr, sine_ptr, gradient_ptr, by_x_ptr, by_omega_ptr, by_weights_ptr,
    points, x_s, x_n, x_p, g_s, g_n, g_d, samples,
    B: tl.constexpr, P: tl.constexpr, D: tl.constexpr, OWN: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    GROUPS: tl.constexpr = D // OWN
    row, part = tl.program_id(0).to(tl.int64), tl.program_id(1).to(tl.int64)
    s, first = row // GROUPS, row % GROUPS * OWN
    n = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = columns_of(x_ptr + s * x_s, n, points, x_n, x_p, P)
    gradient = columns_of(gradient_ptr + s * g_s + first * g_d, n, points, g_n, g_d, OWN)
    at = s * (B * D) + first
    by_omega_ptr += ((part * GROUPS + row % GROUPS) * samples + s) * (B * P)
    by_cosine_ptr = by_weights_ptr + 2 * part * samples * (B * D) + at
    by_sine_ptr = by_cosine_ptr + samples * (B * D)
    by_x = ()
    for _ in tl.static_range(P):
        by_x = by_x + (tl.zeros_like(x[0]),)
    for b in range(B):
        cosines, waves = _waves(x, omega_ptr + b * P, P)
        by_cosine, by_sine = tl.zeros_like(x[0]), tl.zeros_like(x[0])
        for d in tl.static_range(OWN):
            by_cosine += gradient[d] * tl.load(cosine_ptr + at + b * D + d)
            by_sine += gradient[d] * tl.load(sine_ptr + at + b * D + d)
            tl.store(by_cosine_ptr + b * D + d, tl.sum(gradient[d] * cosines))
            tl.store(by_sine_ptr + b * D + d, tl.sum(gradient[d] * waves))
        slope = cosines * by_sine - waves * by_cosine
        more = ()
        for p in tl.static_range(P):
            tl.store(by_omega_ptr + b * P + p, tl.sum(slope * x[p]))
            more = more + (by_x[p] + slope * tl.load(omega_ptr + b * P + p),)
        by_x = more
    by_x_ptr += ((row % GROUPS * samples + s) * points + n) * P
    for p in tl.static_range(P):
        tl.store(by_x_ptr + p, by_x[p], mask=n < points)
