"""Sums of many waves, in real numbers, without keeping the waves of every sum.

    sum(x) = Σ_r (1 - cos ω_r·x) a_r + sin(ω_r·x) b_r
    wave(x; ω) = H(ω) (e^{jωx} - c(x) - jω s(x)),   c, s: the ODE without force, from (1, 0), (0, 1)

The sum and the transients 1 - c and s vanish at x = 0, so nothing cancels there. A first-order ODE
has c = e^{-γx} and no s; a second-order one has s = G and 1 - c = ω0² ∫_0^x G.
"""

from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from deeplfm.greens_functions import GreensFunction
from deeplfm.greens_functions.base import Linear, Quadratic
from deeplfm.greens_functions.pole_functions import ImpulseResponse
from deeplfm.responses.systems import WaveFunction
from deeplfm.shapes import Memory


class Transients(NamedTuple):
    """What is left of the start at a point, [S, N, G, P] each; no slope below order 2."""

    rise: Tensor | float  # 1 - c(|x|), or 1 where nothing started
    slope: Tensor | None  # s(|x|), with the sign of x


class Separated(NamedTuple):
    """A wave response as transfer · (e^{jωx} - c - jω s), or without transients."""

    transfer: Tensor  # complex, of the frequencies' shape [..., G, P, K]
    started: GreensFunction | None  # the ODE, where it starts at rest

    @property
    def before(self) -> Tensor | None:
        """The transfer before the origin, where the ODE runs backwards from rest."""
        if self.started is None:
            return None
        sign = -1.0 if self.started.order % 2 else 1.0
        return sign * self.transfer.conj()

    def transients(self, x: Float[Tensor, "S N P"]) -> Transients:
        g = self.started
        if g is None:
            return Transients(1.0, None)
        x = x[:, :, None]
        lag = x.abs()
        (factor,) = g.factors
        match factor:
            case Linear(rate):
                return Transients(-torch.expm1(-rate * lag), None)
            case Quadratic(_, _, product):
                gain = g.gain()
                step = g.respond(WaveFunction(lag, torch.zeros_like(lag), "zero")).real
                return Transients(
                    product * step / gain,
                    torch.sign(x) * g.respond(ImpulseResponse(lag)) / gain,
                )


def separable(greens_function: GreensFunction, memory: Memory) -> bool:
    """Whether `separate` can be called: no transients at all, or those of one or two poles."""
    return memory == "infinite" or len(greens_function.factors) <= 1


def separate(
    greens_function: GreensFunction, frequency: Float[Tensor, "*S G P K"], memory: Memory
) -> Separated:
    """The response to e^{jωx} by its terms, for frequencies that end in one node dimension."""
    steady = greens_function.transfer(torch.complex(torch.zeros_like(frequency), frequency))
    from_rest = memory == "zero" and greens_function.order > 0
    return Separated(steady, greens_function if from_rest else None)


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
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        (gradient,) = gradients
        x, frequency, versine, sine, versines, waves = ctx.saved_tensors
        if torch.is_grad_enabled():  # derivatives of derivatives: what was kept knows no x
            phase = x @ frequency.mT
            versines, waves = 1 - torch.cos(phase), torch.sin(phase)
            by_phase = (gradient @ versine.mT) * waves + (gradient @ sine.mT) * torch.cos(phase)
        else:
            by_phase = (gradient @ versine.mT).mul_(waves)
            by_wave = gradient @ sine.mT
            by_phase.add_(by_wave).sub_(by_wave.mul_(versines))  # cos = 1 - versine
        by_versine, by_sine = versines.mT @ gradient, waves.mT @ gradient
        by_x = (by_phase @ frequency).sum_to_size(x.shape)
        by_frequency = (by_phase.mT @ x).sum_to_size(frequency.shape)
        return by_x, by_frequency, by_versine, by_sine
