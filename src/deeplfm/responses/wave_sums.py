"""Sums of many waves, in real numbers, without keeping the waves of every sum.

    sum(x) = Σ_r (1 - cos ω_r·x) a_r + sin(ω_r·x) b_r
    wave(x; s, ω) = H(ω) ((1 - e^{-sx}) - (1 - cos ωx) + j sin ωx),   H = 1/(s + jω)

The three terms vanish at x = 0 to full relative accuracy: no cancellation where s + jω is small.
"""

from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from deeplfm.greens_functions import GreensFunction
from deeplfm.shapes import Memory


class Separated(NamedTuple):
    """A wave response as transfer · (e^{jωx} - e^{-decay·x}), or without transient."""

    transfer: Tensor  # complex, of the frequencies' shape [..., G, P, K]
    decay: Tensor | None  # [G, P]

    def transient(self, x: Float[Tensor, "S N P"]) -> Float[Tensor, "S N G P"] | float:
        """1 - e^{-decay |x|}, or 1."""
        return 1.0 if self.decay is None else -torch.expm1(-self.decay * x.abs()[:, :, None])


def separable(greens_function: GreensFunction, memory: Memory) -> bool:
    """Whether `separate` can be called: no transient at all, or that of one real pole."""
    return memory == "infinite" or greens_function.order <= 1


def separate(
    greens_function: GreensFunction, frequency: Float[Tensor, "*S G P K"], memory: Memory
) -> Separated:
    """The response to e^{jωx} by its terms, for frequencies that end in one node dimension."""
    steady = greens_function.transfer(torch.complex(torch.zeros_like(frequency), frequency))
    if memory == "infinite" or greens_function.order == 0:
        return Separated(steady, None)
    (pole,) = greens_function.factors
    return Separated(steady, pole[0])


def wave_sum(
    x: Float[Tensor, "*A N K"],
    frequency: Float[Tensor, "*B R K"],
    versine: Float[Tensor, "*C R C"],
    sine: Float[Tensor, "*C R C"],
) -> Float[Tensor, "*D N C"]:
    """Σ_r (1 - cos ω_r·x) versine_r + sin(ω_r·x) sine_r, for C sums over the same waves.

    The batch of `versine` and `sine` is the broadcast one of `x` and `frequency`.
    """
    total: Tensor = _WaveSum.apply(x, frequency, versine, sine)
    return total


class _WaveSum(torch.autograd.Function):
    """Keeps 1 - cos and sin: each is the other's derivative, so the backward pass needs no more."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, frequency: Tensor, versine: Tensor, sine: Tensor) -> Tensor:
        half = x * (frequency.mT / 2) if x.shape[-1] == 1 else x @ (frequency.mT / 2)
        sines = torch.sin(half)
        waves = half.cos_().mul_(sines).mul_(2)  # sin = 2 sin(½) cos(½)
        versines = sines.square_().mul_(2)  # 1 - cos = 2 sin²(½)
        ctx.save_for_backward(x, frequency, versine, sine, versines, waves)
        return versines @ versine + waves @ sine

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        x, frequency, versine, sine, versines, waves = ctx.saved_tensors
        by_versine, by_sine = versines.mT @ gradient, waves.mT @ gradient
        by_phase = (gradient @ versine.mT).mul_(waves)
        by_wave = gradient @ sine.mT
        by_phase.add_(by_wave).sub_(by_wave.mul_(versines))  # cos = 1 - versine
        by_x = (by_phase @ frequency).sum_to_size(x.shape)
        by_frequency = (by_phase.mT @ x).sum_to_size(frequency.shape)
        return by_x, by_frequency, by_versine, by_sine
