"""The bump response of one real pole with infinite memory, in few operations.

    h(t) = ∫_0^∞ e^{-γv} e^{-(t-v)²/(2ℓ²)} dv = ℓ √(π/2) e^{-t²/(2ℓ²)} erfcx((γℓ - t/ℓ)/√2)
    ∂h/∂t = k - γh,   ∂h/∂γ = (γℓ² - t) h - ℓ²k,   ℓ ∂h/∂ℓ = h - t ∂h/∂t + γ ∂h/∂γ,   k the bump

The derivatives subtract numbers up to (γℓ)² times their size: in float64 that leaves ten digits
at γℓ = 1e3, so this is for tables in float64; `bumps` is for everything else.
"""

import math
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


def first_order_bump(lag: Tensor, lengthscale: Tensor, rate: Tensor) -> Tensor:
    """h, for arguments that broadcast, float64."""
    response: Tensor = _FirstOrderBump.apply(lag, lengthscale, rate)
    return response


class _FirstOrderBump(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, lag: Tensor, ell: Tensor, rate: Tensor) -> Tensor:
        scaled = lag / ell
        here = torch.exp(-scaled.square() / 2)
        y = (rate * ell - scaled) / math.sqrt(2)
        decaying = here * torch.special.erfcx(y.abs())
        # Where y < 0 the response is a decaying exponential, short of the same function mirrored.
        tail = 2 * torch.exp((rate * (rate * ell.square() / 2 - lag)).clamp(max=0))
        response = ell * math.sqrt(math.pi / 2) * torch.where(y < 0, tail - decaying, decaying)
        ctx.save_for_backward(lag, ell, rate, here, response)
        return response

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, ...]:
        lag, ell, rate, here, response = ctx.saved_tensors
        square = ell.square()
        by_lag = here - rate * response
        by_rate = (rate * square - lag) * response - square * here
        by_ell = (response - lag * by_lag + rate * by_rate) / ell
        parts = ((lag, by_lag), (ell, by_ell), (rate, by_rate))
        return tuple((gradient * by).sum_to_size(argument.shape) for argument, by in parts)
