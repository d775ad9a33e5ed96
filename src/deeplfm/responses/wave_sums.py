"""Sums of many waves, in real numbers, without keeping the waves of every sum.

    sum(x) = Σ_r (1 - cos ω_r·x) a_r + sin(ω_r·x) b_r
    wave(x; ω) = H(ω) (e^{jωx} - Σ_{k<n} (jω)^k b_k(x)),   H = 1/P(jω)

A wave that meets an ODE at rest leaves a transient: b_k is the ODE without force, started with its
k-th derivative at 1 and the others at 0. No frequency is in it, so it is summed up apart.
"""

from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from deeplfm.greens_functions import GreensFunction
from deeplfm.greens_functions.base import Linear
from deeplfm.shapes import Memory


class Transients(NamedTuple):
    """What is left of the start at a point, [S, N, G, P] each."""

    rise: Tensor | float  # 1 - b_0(|x|), or 1 where nothing started
    others: tuple[Tensor, ...]  # b_k(|x|) of k = 1, 2 …, with the sign of x^k


class Separated(NamedTuple):
    """A wave response as transfer · (e^{jωx} - transient), or without a transient."""

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
            return Transients(1.0, ())
        x = x[:, :, None]
        lag = x.abs()
        if isinstance(g.factors[0], Linear) and g.order == 1:
            return Transients(-torch.expm1(-g.factors[0].rate * lag), ())
        first, *rest = _free_motions(g, lag)
        signs = torch.sign(x)
        others = tuple(signs**k * motion for k, motion in enumerate(rest, start=1))
        return Transients(1 - first, others)


def _free_motions(g: GreensFunction, lag: Tensor) -> list[Tensor]:
    """b_k = Σ_{j>k} a_j G^{(j-k-1)} for P(p) = Σ_j a_j p^j, with G as a sum of exponentials."""
    nodes, weights = g.exponentials(None if g.stable else float(lag.detach().max()))
    powers = torch.exp(-nodes * lag[..., None])
    coefficients = _polynomial(g)
    motions = []
    for k in range(g.order):
        factor = torch.zeros_like(nodes)
        for coefficient in reversed(coefficients[k + 1 :]):  # Horner, in -s
            factor = coefficient[..., None] - nodes * factor
        motions.append(((weights * factor) * powers).sum(-1).real / g.gain())
    return motions


def _polynomial(g: GreensFunction) -> list[Tensor]:
    """The coefficients a_0 … a_n of the characteristic polynomial, [G, P] each."""
    product = [torch.ones_like(g.factors[0][0])]
    for factor in g.factors:
        one = torch.ones_like(product[0])
        terms = (
            [factor.rate, one]
            if isinstance(factor, Linear)
            else [factor.product, 2 * factor.damping, one]
        )
        longer = [torch.zeros_like(one) for _ in range(len(product) + len(terms) - 1)]
        for i, left in enumerate(product):
            for j, right in enumerate(terms):
                longer[i + j] = longer[i + j] + left * right
        product = longer
    return product


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
