"""What first-order ODEs make of drawn forces with infinite memory: waves and bumps in one node.

    f[s,n,d] = Σ_q a_{dq} (Σ_b w_{sqb} wave_d(x; θ_{qb}, β_{qb}) + Σ_j c_{sqj} bump_d(x; z_{qj}))

All samples share the waves. Products over the inputs, each with its own decay (`bumps`, `planes`).
"""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from deeplfm.sums.c.bumps import bumps_backward, sum_bumps
from deeplfm.sums.c.planes import add_planes, planes_backward, wave_weights, wave_weights_backward


def first_order_response(
    x: Float[Tensor, "#S N P"],
    theta: Float[Tensor, "1 Q B P"],
    phase: Float[Tensor, "1 Q B"],
    amplitude: Float[Tensor, "S Q B"],
    centers: Float[Tensor, "K M P"],
    lengthscale: Float[Tensor, "K P"],
    coefficients: Float[Tensor, "S Q M"],
    decay: Float[Tensor, "D P"],
    sensitivities: Float[Tensor, "D Q"],
) -> Float[Tensor, "S N D"]:
    """float32; the phase has no gradient. K is Q, or 1 where all forces have the same bumps."""
    waves, bumps = (theta, phase, amplitude), (centers, lengthscale, coefficients)
    response: Tensor = _Response.apply(x, *waves, *bumps, decay, sensitivities)
    return response


class _Response(torch.autograd.Function):
    """Keeps its arguments, and the weights of waves and bumps."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, *others: Tensor) -> Tensor:
        theta, phase, amplitude, centers, scale, coefficients, decay, sensitivities = (
            part.contiguous() for part in others
        )
        parts = (theta, phase, decay, sensitivities, amplitude)
        weights = _weights(coefficients, sensitivities, len(centers) == 1)
        cosine, sine = wave_weights(*parts)
        total = sum_bumps(x, centers, scale, decay, weights)
        add_planes(x, theta, cosine, sine, total)
        ctx.save_for_backward(x, *parts, centers, scale, coefficients, weights, cosine, sine)
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        x, *parts, centers, scale, coefficients, weights, cosine, sine = ctx.saved_tensors
        theta, _, decay, sensitivities, amplitude = parts
        by_x, by_centers, by_scale, by_decay, by_weights = bumps_backward(
            x, centers, scale, decay, weights, gradient
        )
        by_omega, by_cosine, by_sine = planes_backward(x, theta, cosine, sine, gradient, by_x)
        by_coefficients, by_sensitivities = _by_weights(
            by_weights, coefficients, sensitivities, len(centers) == 1
        )
        by_amplitude = torch.zeros_like(amplitude)
        wave_weights_backward(
            parts, by_cosine, by_sine, (by_omega, by_decay, by_sensitivities, by_amplitude)
        )
        by_waves_and_bumps = (by_amplitude, by_centers, by_scale, by_coefficients)
        return by_x, by_omega, None, *by_waves_and_bumps, by_decay, by_sensitivities


def _weights(coefficients: Tensor, sensitivities: Tensor, together: bool) -> Tensor:
    """Weights of bumps, [S, D, Q2, M]; those of forces with the same bumps are added up."""
    if together and coefficients.shape[1] > 1:
        return torch.matmul(sensitivities, coefficients)[:, :, None]
    return sensitivities[..., None] * coefficients[:, None]


def _by_weights(
    gradient: Tensor, coefficients: Tensor, sensitivities: Tensor, together: bool
) -> tuple[Tensor, Tensor]:
    """Gradients in the coefficients and in the sensitivities."""
    if together:
        gradient = gradient[:, :, 0]
        by_sensitivities = torch.bmm(gradient, coefficients.mT).sum(0)
        return torch.matmul(sensitivities.mT, gradient), by_sensitivities
    by_sensitivities = (gradient * coefficients[:, None]).sum((0, 3))
    return (gradient * sensitivities[..., None]).sum(1), by_sensitivities
