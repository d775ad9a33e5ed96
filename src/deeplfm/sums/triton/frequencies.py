"""KL of normal frequencies from their prior, with its gradients, in one pass over them.

KL = ½ Σ (ℓm)² + e^{2a} - 1 - 2a,   a = log(sℓ),   m = location - s·noise or the location
"""

from typing import Any, no_type_check

import torch
import triton
import triton.language as tl
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from deeplfm.sums.triton.blocks import blocks

_WAVES = 128  # of a program


def frequency_kl(
    location: Float[Tensor, "G Q R P"],
    log_std: Float[Tensor, "G Q R P"],
    noise: Float[Tensor, "G Q R P"] | None,
    lengthscale: Float[Tensor, "G Q P"],
) -> Float[Tensor, ""]:
    """With `noise` the location is m + s·noise."""
    divergence: Tensor = _FrequencyKL.apply(location, log_std, noise, lengthscale)
    return divergence


class _FrequencyKL(torch.autograd.Function):
    """Gradients come with the value: nothing else is kept."""

    @staticmethod
    def forward(
        ctx: Any, location: Tensor, log_std: Tensor, noise: Tensor | None, lengthscale: Tensor
    ) -> Tensor:
        location, log_std = location.contiguous(), log_std.contiguous()
        groups, forces, count, inputs = location.shape
        pieces = blocks(count, _WAVES)
        by_location, by_log = torch.empty_like(location), torch.empty_like(log_std)
        # The value and the gradient in ℓ of each program, added up after.
        sums = location.new_empty(pieces, 2, groups, forces, inputs)
        _kernel[(groups * forces * inputs, pieces)](
            *(location, log_std, location if noise is None else noise.contiguous()),
            *(lengthscale.contiguous(), by_location, by_log, sums),
            R=count,
            P=inputs,
            FIXED=noise is not None,
            WAVES=_WAVES,
        )
        total = sums[0] if pieces == 1 else sums.sum(0)
        ctx.save_for_backward(by_location, by_log, total[1])
        return total[0].sum()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        by_location, by_log, by_lengthscale = torch._foreach_mul(list(ctx.saved_tensors), gradient)
        return by_location, by_log, None, by_lengthscale


@triton.jit
@no_type_check
def _kernel(
    location_ptr, log_ptr, noise_ptr, lengthscale_ptr, by_location_ptr, by_log_ptr, sums_ptr,
    R: tl.constexpr, P: tl.constexpr, FIXED: tl.constexpr, WAVES: tl.constexpr,
):  # fmt: skip
    group, p = tl.program_id(0) // P, tl.program_id(0) % P
    r = tl.program_id(1) * WAVES + tl.arange(0, WAVES)
    inside = r < R
    at = (group * R + r) * P + p
    location = tl.load(location_ptr + at, mask=inside, other=0.0)
    log = tl.load(log_ptr + at, mask=inside, other=0.0)
    ell = tl.load(lengthscale_ptr + tl.program_id(0))
    mean, spread = location, tl.zeros_like(location)
    if FIXED:
        spread = tl.exp(log) * tl.load(noise_ptr + at, mask=inside, other=0.0)
        mean = location - spread
    twice = 2 * (log + tl.log(ell))
    # e^t - 1 and e^t - 1 - t, by their series where they would cancel.
    series = tl.full(twice.shape, 1.0, twice.dtype)
    for k in tl.static_range(16):
        series = 1 + series * twice / (18 - k)
    small = tl.abs(twice) < 0.5
    excess = tl.where(small, 0.5 * twice * twice * series, tl.exp(twice) - 1 - twice)
    growth = excess + twice
    pull = ell * ell * mean
    tl.store(by_location_ptr + at, pull, mask=inside)
    tl.store(by_log_ptr + at, growth - pull * spread, mask=inside)
    value = tl.where(inside, 0.5 * (pull * mean + excess), 0.0)
    by_ell = tl.where(inside, ell * mean * mean + growth / ell, 0.0)
    sums_ptr += tl.program_id(1) * 2 * tl.num_programs(0) + tl.program_id(0)
    tl.store(sums_ptr, tl.sum(value))
    tl.store(sums_ptr + tl.num_programs(0), tl.sum(by_ell))
