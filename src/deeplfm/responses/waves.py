"""The response of one pole to a wave.

    infinite:  ∫_{-∞}^x e^{-s(x-τ)} e^{jωτ} dτ = e^{jωx} / (s + jω)
    zero:      ∫_0^x   e^{-s(x-τ)} e^{jωτ} dτ = x e^{jωx} W_0((s + jω)x)
    with       W_n(y) = ∫_0^1 v^n e^{-yv} dv

W_0 is the paper's (e^z - 1)/z in a form that is safe near s + jω = 0 and bounded for Re(s) x ≥ 0.
For x < 0 the zero-memory value is the oriented integral; it grows like e^{|s x|} and may overflow.
"""

from typing import Any

import torch
from torch import Tensor

from deeplfm.responses.special import piecewise
from deeplfm.shapes import Memory, Number, as_tensors, check_choice, check_positive

# Where |y| is below 2 the Taylor series of W_n has this many useful terms: 2^k/k! is at rounding.
_NEAR, _TAYLOR_TERMS = 2.0, {torch.float32: 14, torch.float64: 24}


def wave_response(
    x: Number, frequency: Number, pole: Number, memory: Memory = "infinite"
) -> Tensor:
    """The response at `x` of a pole to e^{jωτ}; complex, broadcast over every argument.

    With infinite memory the pole must have a positive real part: the past would grow otherwise.
    """
    return wave_moment(x, frequency, pole, memory, order=0)


def wave_moment(
    x: Number, frequency: Number, pole: Number, memory: Memory = "infinite", order: int = 0
) -> Tensor:
    """∫ v^n e^{-sv} e^{jω(x-v)} dv, the n-th derivative of the response in -s (repeated poles)."""
    check_choice("memory", memory, Memory)
    x, frequency, pole = as_tensors(
        {"x": x, "frequency": frequency, "pole": pole}, complex_names=("pole",)
    )
    phase = frequency * x
    wave = torch.complex(torch.cos(phase), torch.sin(phase))
    rate = pole + torch.complex(torch.zeros_like(frequency), frequency)
    if memory == "infinite":
        check_positive("pole", pole, " (in its real part) with infinite memory")
        for n in range(1, order + 1):
            wave = wave * n / rate
        return wave / rate
    return x ** (order + 1) * wave * unit_interval_moment(rate * x, order)


def unit_interval_moment(y: Tensor, order: int) -> Tensor:
    """W_n(y) = ∫_0^1 v^n e^{-yv} dv, entire in `y`, differentiable to any order."""
    moment: Tensor = _UnitIntervalMoment.apply(y, order)
    return moment


class _UnitIntervalMoment(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, y: Tensor, order: int) -> Tensor:
        ctx.save_for_backward(y)
        ctx.order = order
        return piecewise(y.abs() < _NEAR, _by_taylor, _by_recursion, y, order=order)[0]

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        (y,) = ctx.saved_tensors
        return gradients[0] * -unit_interval_moment(y, ctx.order + 1).conj(), None


def _by_taylor(y: Tensor, order: int) -> list[Tensor]:
    """Σ_k (-y)^k / (k! (n+1+k)) by Horner's rule."""
    terms = _TAYLOR_TERMS[y.real.dtype]
    total = torch.full_like(y, 1 / (order + 1 + terms))
    for k in range(terms, 0, -1):
        total = 1 / (order + k) - y / k * total
    return [total]


def _by_recursion(y: Tensor, order: int) -> list[Tensor]:
    """W_n = (n W_{n-1} - e^{-y}) / y, from W_0 = (1 - e^{-y}) / y."""
    decay = torch.exp(-y)
    moment = (1 - decay) / y
    for n in range(1, order + 1):
        moment = (n * moment - decay) / y
    return [moment]
