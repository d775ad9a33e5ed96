"""Sums of waves along one input at a time, each point on its own side of the origin.

    sums[s,n,d,p] = Σ_r (cos φ - 1)·even[c,s,d,p,r] + sin φ·odd[c,s,d,p,r],   φ = ω_{gpr} x_{snp}

c is 1 where x < 0, else 0; g is d, or 0 where all outputs have the same frequencies. One warp takes
a block of points and walks over r; gradients over points are written per block and summed after.
"""

from typing import Any, no_type_check

import torch
import triton
import triton.language as tl
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from deeplfm.sums.triton.blocks import block_of, blocks
from deeplfm.sums.triton.features import wave_features
from deeplfm.sums.triton.maths import half_waves, turns


def fourier_sums(
    x: Float[Tensor, "S3 N P"],
    omega: Float[Tensor, "G P R"],
    even: Float[Tensor, "C S D P R"],
    odd: Float[Tensor, "C S D P R"],
) -> Float[Tensor, "S N D P"]:
    """G is 1 or D. With inputs that all samples share, the waves are made once: S3 = 1."""
    if len(x) == 1 and even.shape[1] > 1:
        return _shared(x, omega, even, odd)
    total: Tensor = _FourierSums.apply(x, omega, even, odd)
    return total


def _shared(x: Tensor, omega: Tensor, even: Tensor, odd: Tensor) -> Tensor:
    """One product per input and group: waves [N, 2CR] by weights [2CR, S·D/G]."""
    sides, samples, outputs, inputs, count = even.shape
    groups = len(omega)
    waves = wave_features(x.permute(2, 1, 0), omega.flatten(0, 1)[..., None], sides)
    weights = torch.stack((even, odd), dim=1)  # C 2 S D P R
    weights = weights.unflatten(3, (groups, outputs // groups)).permute(3, 5, 0, 1, 6, 2, 4)
    weights = weights.reshape(groups * inputs, 2 * sides * count, -1)
    total: Tensor = (waves @ weights).unflatten(0, (groups, inputs)).unflatten(-1, (samples, -1))
    return total.permute(3, 2, 0, 4, 1).reshape(samples, x.shape[1], outputs, inputs)


class _FourierSums(torch.autograd.Function):
    """Keeps its arguments only."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, omega: Tensor, even: Tensor, odd: Tensor) -> Tensor:
        omega, even, odd = (part.contiguous() for part in (omega, even, odd))
        ctx.save_for_backward(x, omega, even, odd)
        sides, samples, outputs, inputs, count = even.shape
        points = x.shape[1]
        total = x.new_empty(samples, points, outputs, inputs)
        if total.numel():
            block = block_of(points, samples * outputs * inputs, 256)
            _forward[(samples * outputs * inputs, blocks(points, block))](
                *(x, omega, even, odd, total),
                *(points, *x.stride(), even[0].numel()),
                G=len(omega),
                D=outputs,
                P=inputs,
                R=count,
                C=sides,
                BLOCK=block,
                num_warps=1,
            )
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        x, omega, even, odd = ctx.saved_tensors
        sides, samples, outputs, inputs, count = even.shape
        points = x.shape[1]
        if gradient.numel() * count == 0:
            return tuple(torch.zeros_like(part) for part in (x, omega, even, odd))
        block = block_of(points, samples * outputs * inputs, 256)
        pieces = blocks(points, block)
        # Each output and each block has sums of its own, added up after: the same bits every time.
        by_x = x.new_empty(outputs, samples, points, inputs)
        sums = x.new_empty(pieces, 2 * sides + 1, samples, outputs, inputs, count)
        _backward[(samples * outputs * inputs, pieces)](
            *(x, omega, even, odd, gradient, by_x, sums),
            *(points, *x.stride(), *gradient.stride(), even[0].numel(), samples),
            G=len(omega),
            D=outputs,
            P=inputs,
            R=count,
            C=sides,
            WITH_X=ctx.needs_input_grad[0],
            BLOCK=block,
            num_warps=1,
        )
        total = sums[0] if pieces == 1 else sums.sum(0)
        by_even, by_odd, by_omega = total.split((sides, sides, 1))
        over = (0, 1) if len(omega) > 1 else (0, 1, 2)
        return (
            by_x.sum(0) if ctx.needs_input_grad[0] else None,
            by_omega.sum(over).reshape(omega.shape),
            by_even,
            by_odd,
        )


@triton.jit
@no_type_check
def _forward(
    x_ptr, omega_ptr, even_ptr, odd_ptr, out_ptr,
    points, x_s, x_n, x_p, other_side,
    G: tl.constexpr, D: tl.constexpr, P: tl.constexpr, R: tl.constexpr, C: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    p, d, s = row % P, row // P % D, row // (P * D)
    n = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = n < points
    x = tl.load(x_ptr + s * x_s + n * x_n + p * x_p, mask=inside, other=0.0)
    before = x < 0
    omega_ptr += (d % G * P + p) * R
    even_ptr += row * R
    odd_ptr += row * R
    total = tl.zeros([BLOCK], x.dtype)
    for r in range(R):
        high, low = turns(tl.load(omega_ptr + r))
        versine, wave = half_waves(x, high, low)
        even, odd = tl.load(even_ptr + r), tl.load(odd_ptr + r)
        if C == 2:
            even = tl.where(before, tl.load(even_ptr + other_side + r), even)
            odd = tl.where(before, tl.load(odd_ptr + other_side + r), odd)
        total += wave * odd - versine * even
    out = (s * points + n) * (D * P) + d * P + p
    tl.store(out_ptr + out, 2 * total, mask=inside)


@triton.jit
@no_type_check
def _backward(
    x_ptr, omega_ptr, even_ptr, odd_ptr, gradient_ptr, by_x_ptr, sums_ptr,
    points, x_s, x_n, x_p, g_s, g_n, g_d, g_p, other_side, samples,
    G: tl.constexpr, D: tl.constexpr, P: tl.constexpr, R: tl.constexpr, C: tl.constexpr,
    WITH_X: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    p, d, s = row % P, row // P % D, row // (P * D)
    n = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = n < points
    x = tl.load(x_ptr + s * x_s + n * x_n + p * x_p, mask=inside, other=0.0)
    at = s * g_s + n * g_n + d * g_d + p * g_p
    gradient = 2 * tl.load(gradient_ptr + at, mask=inside, other=0.0)
    before = x < 0
    here, there = gradient, gradient
    if C == 2:
        here, there = tl.where(before, 0.0, gradient), tl.where(before, gradient, 0.0)
    omega_ptr += (d % G * P + p) * R
    even_ptr += row * R
    odd_ptr += row * R
    sums_ptr += tl.program_id(1).to(tl.int64) * (2 * C + 1) * other_side + row * R
    by_x = tl.zeros([BLOCK], x.dtype)
    for r in range(R):
        omega = tl.load(omega_ptr + r)
        high, low = turns(omega)
        versine, wave = half_waves(x, high, low)
        even, odd = tl.load(even_ptr + r), tl.load(odd_ptr + r)
        tl.store(sums_ptr + r, -tl.sum(here * versine))
        tl.store(sums_ptr + C * other_side + r, tl.sum(here * wave))
        if C == 2:
            even = tl.where(before, tl.load(even_ptr + other_side + r), even)
            odd = tl.where(before, tl.load(odd_ptr + other_side + r), odd)
            tl.store(sums_ptr + other_side + r, -tl.sum(there * versine))
            tl.store(sums_ptr + 3 * other_side + r, tl.sum(there * wave))
        slope = gradient * ((0.5 - versine) * odd - wave * even)
        tl.store(sums_ptr + 2 * C * other_side + r, tl.sum(slope * x))
        by_x += slope * omega
    if WITH_X:
        out = ((d * samples + s) * points + n) * P + p
        tl.store(by_x_ptr + out, by_x, mask=inside)
