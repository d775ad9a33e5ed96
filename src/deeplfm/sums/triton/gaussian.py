"""The expected log density of Gaussian noise, with its gradients, over all samples and points.

total = -½ scale Σ_{nd} observed_{nd} (mean_s (y_{nd} - f_{snd})²/σ_d² + log 2πσ_d²)
"""

from typing import Any, no_type_check

import torch
import triton
import triton.language as tl
from jaxtyping import Bool, Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from deeplfm.sums.triton.blocks import blocks

_BLOCK, _SAMPLES = 256, 16  # entries of a program, and samples that it adds up


def gaussian_log_density(
    f: Float[Tensor, "S N D"],
    y: Float[Tensor, "N D"],
    observed: Bool[Tensor, "N D"],
    variance: Float[Tensor, " D"],
    rows: int,
) -> Float[Tensor, ""]:
    """What `y` holds where nothing was observed is not read."""
    total: Tensor = _LogDensity.apply(f, y, observed, variance, rows)
    return total


class _LogDensity(torch.autograd.Function):
    """Keeps its arguments only."""

    @staticmethod
    def forward(
        ctx: Any, f: Tensor, y: Tensor, observed: Tensor, variance: Tensor, rows: int
    ) -> Tensor:
        f, y, observed = f.contiguous(), y.contiguous(), observed.contiguous()
        variance = variance.contiguous()
        (samples, points, outputs), entries = f.shape, y.numel()
        # Squares and counts, each program's own, added up after: the same bits every time.
        parts = f.new_empty(2, blocks(samples, _SAMPLES), points, outputs)
        _squares[(blocks(entries, _BLOCK), blocks(samples, _SAMPLES))](
            *(f, y, observed, parts, samples, entries), SAMPLES=_SAMPLES, BLOCK=_BLOCK
        )
        total, by_variance = f.new_empty(()), torch.empty_like(variance)
        _finish[(1,)](
            *(parts.sum((1, 2)), variance, total, by_variance, samples, rows, points),
            D=outputs,
            BLOCK=triton.next_power_of_2(outputs),
        )
        ctx.save_for_backward(f, y, observed, variance, by_variance)
        ctx.rows = rows
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        f, y, observed, variance, by_variance = ctx.saved_tensors
        by_f = torch.empty_like(f)
        _slopes[(blocks(y.numel(), _BLOCK), blocks(len(f), _SAMPLES))](
            *(f, y, observed, variance, gradient, by_f),
            *(len(f), y.numel(), ctx.rows, len(y)),
            D=f.shape[-1],
            SAMPLES=_SAMPLES,
            BLOCK=_BLOCK,
        )
        return by_f, None, None, gradient * by_variance, None


@triton.jit
@no_type_check
def _squares(
    f_ptr, y_ptr, observed_ptr, parts_ptr, samples, entries,
    SAMPLES: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < entries
    observed = tl.load(observed_ptr + at, mask=inside, other=0).to(tl.int1)
    y = tl.load(y_ptr + at, mask=inside & observed, other=0.0)
    total = tl.zeros([BLOCK], y.dtype)
    for k in range(SAMPLES):
        s = tl.program_id(1).to(tl.int64) * SAMPLES + k
        there = inside & observed & (s < samples)
        rest = tl.where(there, y - tl.load(f_ptr + s * entries + at, mask=there, other=0.0), 0.0)
        total += rest * rest
    out = tl.program_id(1).to(tl.int64) * entries + at
    tl.store(parts_ptr + out, total, mask=inside)
    count = tl.where(observed & (tl.program_id(1) == 0), 1.0, 0.0)
    tl.store(parts_ptr + tl.num_programs(1).to(tl.int64) * entries + out, count, mask=inside)


@triton.jit
@no_type_check
def _finish(
    sums_ptr, variance_ptr, total_ptr, by_variance_ptr, samples, rows, points,
    D: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    d = tl.arange(0, BLOCK)
    inside = d < D
    variance = tl.load(variance_ptr + d, mask=inside, other=1.0)
    # By integers, since a number that is given would be rounded to float32.
    half = tl.full([BLOCK], 0.5, variance.dtype) * rows / points
    square = tl.load(sums_ptr + d, mask=inside, other=0.0) / samples / variance
    count = tl.load(sums_ptr + D + d, mask=inside, other=0.0)
    each = square + count * tl.log(variance * 6.283185307179586)
    tl.store(total_ptr, -tl.sum(tl.where(inside, half * each, 0.0)))
    tl.store(by_variance_ptr + d, half * (square - count) / variance, mask=inside)


@triton.jit
@no_type_check
def _slopes(
    f_ptr, y_ptr, observed_ptr, variance_ptr, gradient_ptr, out_ptr, samples, entries, rows, points,
    D: tl.constexpr, SAMPLES: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < entries
    observed = tl.load(observed_ptr + at, mask=inside, other=0).to(tl.int1)
    y = tl.load(y_ptr + at, mask=inside & observed, other=0.0)
    slope = tl.load(gradient_ptr) * rows / points / samples / tl.load(variance_ptr + at % D)
    for k in range(SAMPLES):
        s = tl.program_id(1).to(tl.int64) * SAMPLES + k
        there = inside & (s < samples)
        rest = y - tl.load(f_ptr + s * entries + at, mask=there & observed, other=0.0)
        tl.store(out_ptr + s * entries + at, tl.where(observed, slope * rest, 0.0), mask=there)
