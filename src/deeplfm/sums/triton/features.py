"""Waves for inputs that all samples share: made once, then columns of one product.

    features[b, n] = [cos φ - 1, sin φ] of φ_{bnr} = ω_{br}·x_{bn},   [B, N, 2CR]

With two sides (C = 2, for one input) the first 2R are zero where x < 0, the others elsewhere.
"""

from typing import Any, no_type_check

import torch
import triton
import triton.language as tl
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from deeplfm.sums.triton.blocks import blocks
from deeplfm.sums.triton.maths import turned, turns

_ROWS, _WAVES = 16, 64  # of a tile


def wave_features(
    x: Float[Tensor, "B2 N K"],
    omega: Float[Tensor, "B R K"],
    sides: int = 1,
    *,
    whole: bool = False,
) -> Float[Tensor, "B N F"]:
    """B is a multiple of B2: the batch of `x` repeats. `whole`: cos φ in place of cos φ - 1."""
    features: Tensor = _WaveFeatures.apply(x, omega, sides, whole)
    return features


class _WaveFeatures(torch.autograd.Function):
    """Keeps its arguments only."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, omega: Tensor, sides: int, whole: bool) -> Tensor:
        omega = omega.contiguous()
        ctx.save_for_backward(x, omega)
        ctx.sides = sides
        (batch, count, width), points = omega.shape, x.shape[1]
        features = x.new_empty(batch, points, 2 * sides * count)
        if features.numel():
            _forward[(batch, blocks(points, _ROWS), blocks(count, _WAVES))](
                *(x, omega, features),
                *(points, *x.stride(), len(x)),
                R=count,
                K=width,
                C=sides,
                WHOLE=whole,
                ROWS=_ROWS,
                WAVES=_WAVES,
            )
        return features

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        x, omega = ctx.saved_tensors
        (batch, count, width), (inputs, points, _) = omega.shape, x.shape
        rows, columns = blocks(points, _ROWS), blocks(count, _WAVES)
        by_x = omega.new_empty(columns, batch // inputs, inputs, points, width)
        by_omega = omega.new_empty(rows, batch, count, width)
        if by_x.numel() == 0:
            return torch.zeros_like(x), torch.zeros_like(omega), None, None
        _backward[(batch, rows, columns)](
            *(x, omega, gradient.contiguous(), by_x, by_omega),
            *(points, *x.stride(), inputs),
            R=count,
            K=width,
            C=ctx.sides,
            ROWS=_ROWS,
            WAVES=_WAVES,
        )
        by_points = by_x.sum((0, 1)) if ctx.needs_input_grad[0] else None
        return by_points, by_omega.sum(0), None, None


@triton.jit
@no_type_check
def _half_waves(x_ptr, omega_ptr, n, r, points, x_n, x_k, R, K: tl.constexpr):
    """sin² and sin·cos of half a phase, [ROWS, WAVES]; what is outside counts as x = ω = 0."""
    f = tl.zeros([n.shape[0], r.shape[1]], x_ptr.dtype.element_ty)
    for k in tl.static_range(K):
        x = tl.load(x_ptr + n * x_n + k * x_k, mask=n < points, other=0.0)
        high, low = turns(tl.load(omega_ptr + r * K + k, mask=r < R, other=0.0))
        # Each term has its whole turns taken off: a sum of long phases would lose them to rounding.
        whole = tl.floor(x * high + 0.5)
        f += tl.fma(x, low, tl.fma(x, high, -whole))
    return turned(f - tl.floor(f + 0.5))


@triton.jit
@no_type_check
def _forward(
    x_ptr, omega_ptr, out_ptr,
    points, x_b, x_n, x_k, batch,
    R: tl.constexpr, K: tl.constexpr, C: tl.constexpr, WHOLE: tl.constexpr,
    ROWS: tl.constexpr, WAVES: tl.constexpr,
):  # fmt: skip
    b = tl.program_id(0).to(tl.int64)
    n = tl.program_id(1) * ROWS + tl.arange(0, ROWS)[:, None]
    r = tl.program_id(2) * WAVES + tl.arange(0, WAVES)[None, :]
    x_ptr += b % batch * x_b
    versine, wave = _half_waves(x_ptr, omega_ptr + b * R * K, n, r, points, x_n, x_k, R, K)
    even, odd = -2 * versine, 2 * wave
    if WHOLE:
        even += 1
    out_ptr += (b * points + n) * (2 * C * R) + r
    inside = (n < points) & (r < R)
    if C == 2:
        x = tl.load(x_ptr + n * x_n, mask=n < points, other=0.0)
        tl.store(out_ptr + 2 * R, tl.where(x < 0, even, 0.0), mask=inside)
        tl.store(out_ptr + 3 * R, tl.where(x < 0, odd, 0.0), mask=inside)
        even, odd = tl.where(x < 0, 0.0, even), tl.where(x < 0, 0.0, odd)
    tl.store(out_ptr, even, mask=inside)
    tl.store(out_ptr + R, odd, mask=inside)


@triton.jit
@no_type_check
def _backward(
    x_ptr, omega_ptr, gradient_ptr, by_x_ptr, by_omega_ptr,
    points, x_b, x_n, x_k, batch,
    R: tl.constexpr, K: tl.constexpr, C: tl.constexpr, ROWS: tl.constexpr, WAVES: tl.constexpr,
):  # fmt: skip
    b = tl.program_id(0).to(tl.int64)
    n = tl.program_id(1) * ROWS + tl.arange(0, ROWS)[:, None]
    r = tl.program_id(2) * WAVES + tl.arange(0, WAVES)[None, :]
    x_ptr += b % batch * x_b
    omega_ptr += b * R * K
    versine, wave = _half_waves(x_ptr, omega_ptr, n, r, points, x_n, x_k, R, K)
    at = (b * points + n) * (2 * C * R) + r
    inside = (n < points) & (r < R)
    if C == 2:
        x = tl.load(x_ptr + n * x_n, mask=n < points, other=0.0)
        at = tl.where(x < 0, at + 2 * R, at)
    by_even = tl.load(gradient_ptr + at, mask=inside, other=0.0)
    by_odd = tl.load(gradient_ptr + at + R, mask=inside, other=0.0)
    slope = (1 - 2 * versine) * by_odd - 2 * wave * by_even
    by_x_ptr += ((tl.program_id(2) * tl.num_programs(0) + b) * points + n) * K
    by_omega_ptr += ((tl.program_id(1) * tl.num_programs(0) + b) * R + r) * K
    for k in tl.static_range(K):
        x = tl.load(x_ptr + n * x_n + k * x_k, mask=n < points, other=0.0)
        omega = tl.load(omega_ptr + r * K + k, mask=r < R, other=0.0)
        by_x, by_omega = tl.sum(slope * omega, 1)[:, None], tl.sum(slope * x, 0)[None, :]
        tl.store(by_x_ptr + k, by_x, mask=n < points)
        tl.store(by_omega_ptr + k, by_omega, mask=r < R)
