"""Sums of plane waves, which run along all inputs at once.

    sums[s,n,d] = Σ_b (1 - cos(ω_b·x_{sn}))·versine[s,b,d] + sin(ω_b·x_{sn})·sine[s,b,d]

Where nothing starts from 0 the 1 may be left out: `whole` waves. One warp takes a block of points
and walks over b; gradients over points are written per block and summed after.
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
from deeplfm.sums.triton.features import wave_features
from deeplfm.sums.triton.maths import columns_of, turned, turns

_OUTPUTS = 8  # that a warp holds the sums of


def plane_wave_sums(
    x: Float[Tensor, "S3 N P"],
    omega: Float[Tensor, "B P"],
    versine: Float[Tensor, "S B D"],
    sine: Float[Tensor, "S B D"],
    *,
    whole: bool = False,
) -> Float[Tensor, "S N D"]:
    """With inputs that all samples share, the waves are made once: S3 = 1."""
    if len(x) == 1:
        samples, _, outputs = versine.shape
        weights = torch.cat((-versine, sine), dim=1).transpose(0, 1).flatten(1)
        total = wave_features(x, omega[None], whole=whole)[0] @ weights
        columns: Tensor = total.unflatten(-1, (samples, outputs))
        return columns.transpose(0, 1)
    sums: Tensor = _PlaneWaveSums.apply(x, omega, versine, sine, whole)
    return sums


class _PlaneWaveSums(torch.autograd.Function):
    """Keeps its arguments only."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, omega: Tensor, versine: Tensor, sine: Tensor, whole: bool
    ) -> Tensor:
        ctx.whole = whole
        omega, versine, sine = (part.contiguous() for part in (omega, versine, sine))
        ctx.save_for_backward(x, omega, versine, sine)
        (samples, points, inputs), (_, count, outputs) = x.shape, versine.shape
        total = x.new_empty(samples, points, outputs)
        if total.numel():
            own = divisor_of(outputs, _OUTPUTS)
            rows = samples * (outputs // own)
            block = block_of(points, rows, 128)
            _forward[(rows, blocks(points, block))](
                *(x, omega, versine, sine, total),
                *(points, *x.stride()),
                B=count,
                P=inputs,
                D=outputs,
                OWN=own,
                WHOLE=whole,
                BLOCK=block,
                num_warps=1,
            )
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        x, omega, versine, sine = ctx.saved_tensors
        (samples, points, inputs), (_, count, outputs) = x.shape, versine.shape
        if x.numel() * versine.numel() == 0:
            return (*(torch.zeros_like(part) for part in (x, omega, versine, sine)), None)
        own = divisor_of(outputs, _OUTPUTS)
        groups = outputs // own
        block = block_of(points, samples * groups, 128)
        pieces = blocks(points, block)
        by_x = x.new_empty(groups, samples, points, inputs)
        by_omega = x.new_empty(pieces, groups, samples, count, inputs)
        by_weights = x.new_empty(pieces, 2, samples, count, outputs)
        _backward[(samples * groups, pieces)](
            *(x, omega, versine, sine, gradient, by_x, by_omega, by_weights),
            *(points, *x.stride(), *gradient.stride(), samples),
            B=count,
            P=inputs,
            D=outputs,
            OWN=own,
            WHOLE=ctx.whole,
            BLOCK=block,
            num_warps=1,
        )
        weights = by_weights[0] if pieces == 1 else by_weights.sum(0)
        return (
            by_x[0] if groups == 1 else by_x.sum(0),
            by_omega.sum((0, 1, 2)),
            weights[0],
            weights[1],
            None,
        )


@triton.jit
@no_type_check
def _half_waves(x, omega_ptr, P: tl.constexpr):
    f = tl.zeros_like(x[0])
    for p in tl.static_range(P):
        high, low = turns(tl.load(omega_ptr + p))
        # Each term has its whole turns taken off: a sum of long phases would lose them to rounding.
        whole = tl.floor(x[p] * high + 0.5)
        f += tl.fma(x[p], low, tl.fma(x[p], high, -whole))
    return turned(f - tl.floor(f + 0.5))


@triton.jit
@no_type_check
def _forward(
    x_ptr, omega_ptr, versine_ptr, sine_ptr, out_ptr,
    points, x_s, x_n, x_p,
    B: tl.constexpr, P: tl.constexpr, D: tl.constexpr, OWN: tl.constexpr, WHOLE: tl.constexpr,
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
        versines, waves = _half_waves(x, omega_ptr + b * P, P)
        if WHOLE:
            versines -= 0.5
        more = ()
        for d in tl.static_range(OWN):
            versine = tl.load(versine_ptr + at + b * D + d)
            sine = tl.load(sine_ptr + at + b * D + d)
            more = more + (totals[d] + versines * versine + waves * sine,)
        totals = more
    for d in tl.static_range(OWN):
        out = (s * points + n) * D + first + d
        tl.store(out_ptr + out, 2 * totals[d], mask=n < points)


@triton.jit
@no_type_check
def _backward(
    x_ptr, omega_ptr, versine_ptr, sine_ptr, gradient_ptr, by_x_ptr, by_omega_ptr, by_weights_ptr,
    points, x_s, x_n, x_p, g_s, g_n, g_d, samples,
    B: tl.constexpr, P: tl.constexpr, D: tl.constexpr, OWN: tl.constexpr, WHOLE: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    GROUPS: tl.constexpr = D // OWN
    row, piece = tl.program_id(0).to(tl.int64), tl.program_id(1).to(tl.int64)
    s, first = row // GROUPS, row % GROUPS * OWN
    n = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = columns_of(x_ptr + s * x_s, n, points, x_n, x_p, P)
    gradient = columns_of(gradient_ptr + s * g_s + first * g_d, n, points, g_n, g_d, OWN)
    at = s * (B * D) + first
    by_omega_ptr += ((piece * GROUPS + row % GROUPS) * samples + s) * (B * P)
    by_versine_ptr = by_weights_ptr + 2 * piece * samples * (B * D) + at
    by_sine_ptr = by_versine_ptr + samples * (B * D)
    by_x = ()
    for _ in tl.static_range(P):
        by_x = by_x + (tl.zeros_like(x[0]),)
    for b in range(B):
        versines, waves = _half_waves(x, omega_ptr + b * P, P)
        cosine = 1 - 2 * versines
        if WHOLE:
            versines -= 0.5
        by_versine, by_sine = tl.zeros_like(x[0]), tl.zeros_like(x[0])
        for d in tl.static_range(OWN):
            by_versine += gradient[d] * tl.load(versine_ptr + at + b * D + d)
            by_sine += gradient[d] * tl.load(sine_ptr + at + b * D + d)
            tl.store(by_versine_ptr + b * D + d, 2 * tl.sum(gradient[d] * versines))
            tl.store(by_sine_ptr + b * D + d, 2 * tl.sum(gradient[d] * waves))
        slope = 2 * waves * by_versine + cosine * by_sine
        more = ()
        for p in tl.static_range(P):
            tl.store(by_omega_ptr + b * P + p, tl.sum(slope * x[p]))
            more = more + (by_x[p] + slope * tl.load(omega_ptr + b * P + p),)
        by_x = more
    by_x_ptr += ((row % GROUPS * samples + s) * points + n) * P
    for p in tl.static_range(P):
        tl.store(by_x_ptr + p, by_x[p], mask=n < points)
