"""What ODEs make of drawn forces: waves that carry the prior, bumps that carry the data.

f_sd(x) = Σ_q a_dq (Σ_b w_sqb wave_d(x; θ_qb, β_qb) + Σ_j c_sqj bump_d(x; z_qj, ℓ_q))
wave_d(x; θ, β) = Re e^{jβ} Π_p H_dp(θ_p) e^{jθ_p x_p};   with zero memory its own closed form
"""

from functools import reduce
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from deeplfm.errors import InputError
from deeplfm.greens_functions import Dynamics
from deeplfm.greens_functions.factors import complex_product
from deeplfm.responses import system_wave_response
from deeplfm.shapes import Memory
from deeplfm.sums.backend import Backend
from deeplfm.sums.bump_sum import bump_sum
from deeplfm.sums.candidate import sum_with
from deeplfm.sums.plane_wave_sum import plane_wave_sum


def _one_set_of_bumps_or_one_for_each(
    dynamics: Dynamics, x: Tensor, theta: Tensor, *others: Any, **_: Any
) -> None:
    centers = others[2]
    if len(centers) not in (1, theta.shape[1]):
        raise InputError(
            f"centers of force_response_sum must be one set, or one for each of {theta.shape[1]} "
            f"forces; got {len(centers)}. Expand them."
        )


@sum_with(_one_set_of_bumps_or_one_for_each)
def force_response_sum(
    dynamics: Dynamics,
    x: Float[Tensor, "#S N P"],
    theta: Float[Tensor, "#S Q B P"],
    phase: Float[Tensor, "#S Q B"],
    amplitude: Float[Tensor, "S Q B"],
    centers: Float[Tensor, "K M P"],
    lengthscale: Float[Tensor, "K P"],
    coefficients: Float[Tensor, "S Q M"],
    sensitivities: Float[Tensor, "D Q"],
    memory: Memory,
    *,
    approximate: bool = False,
    backend: Backend = "plain",
) -> Float[Tensor, "S N D"]:
    """K is Q, or 1 where all forces have the same bumps; `approximate` is as for `bump_sum`."""
    weights = sensitivities[..., None] * coefficients[:, None]  # S D Q M
    if len(centers) == 1:
        weights = weights.sum(2, keepdim=True)
    bumps = bump_sum.by(
        backend, dynamics, x, centers, lengthscale, weights, memory, approximate=approximate
    )
    heights = sensitivities[..., None] * amplitude[:, None]  # S D Q B
    if memory == "zero" and dynamics.order > 0:
        return bumps + _waves_from_zero_state(dynamics, x, theta, phase, heights)
    cosine, sine = (part.flatten(2).mT for part in _turned(dynamics, theta, phase, heights))
    return bumps + plane_wave_sum.by(backend, x, theta.flatten(1, 2), cosine, sine)


def _turned(
    dynamics: Dynamics, theta: Tensor, phase: Tensor, heights: Tensor
) -> tuple[Tensor, Tensor]:
    """Weights of cos and sin, [S, D, Q, B]: the ODE and the phases are in them."""
    real, imag = torch.cos(phase)[:, None], torch.sin(phase)[:, None]  # #S 1 Q B
    answer = dynamics.frequency_response(theta.flatten(1, 2).mT[:, None])  # #S D P QB
    if answer is not None:
        real, imag = real.flatten(2), imag.flatten(2)
        for part in zip(*(part.unbind(2) for part in answer), strict=True):
            real, imag = complex_product((real, imag), part)
        real, imag = (part.unflatten(-1, phase.shape[1:]) for part in (real, imag))
    return heights * real, -heights * imag


def _waves_from_zero_state(
    dynamics: Dynamics, x: Tensor, theta: Tensor, phase: Tensor, heights: Tensor
) -> Tensor:
    """The waves with zero memory; before the origin the ODE runs backwards."""
    turn = torch.polar(torch.ones_like(phase), phase)  # #S Q B
    points = x[:, :, None, :, None, None]
    omega = theta.permute(0, 3, 1, 2)[:, None, None]  # #S 1 1 P Q B
    before = points < 0
    lag, along = torch.where(before, -points, points), torch.where(before, -omega, omega)
    waves = system_wave_response(dynamics, lag, along, "zero", trailing=2)
    if dynamics.order % 2:
        waves = torch.where(before, -waves, waves)
    # The gradient of torch.prod would wait for the device, to look for zeros.
    turned = reduce(torch.mul, waves.unbind(3)) * turn[:, None, None]  # S N D Q B
    turned = turned.real.expand(len(heights), -1, -1, -1, -1)
    return torch.einsum("sndqb,sdqb->snd", turned, heights)


def _first_order(dynamics: Dynamics, sensitivities: Tensor) -> tuple[Tensor, Tensor]:
    """The decays of an ODE of first order, and the sensitivities with its gain."""
    (factor,), gain = dynamics.factors, dynamics.gain()
    if isinstance(gain, Tensor):
        sensitivities = sensitivities * reduce(torch.mul, gain.unbind(-1))[:, None]
    return factor[0], sensitivities


def _is_first_order(dynamics: Dynamics, x: Tensor, theta: Tensor, *others: Any, **_: Any) -> bool:
    """One ODE of first order along each input, with the same waves for all samples."""
    fits = len(theta) == 1 and others[6] == "infinite" and x.numel() > 0 and dynamics.order == 1
    return fits and dynamics.factors[0][0].shape == (len(others[5]), x.shape[-1])


def _by_c(dynamics: Dynamics, x: Tensor, *others: Any, **_: Any) -> Tensor:
    from deeplfm.sums.c.force_response import first_order_response

    arguments: Any = (*others[:6], *_first_order(dynamics, others[6]))
    return first_order_response(x, *arguments)


def _by_triton(
    dynamics: Dynamics, x: Tensor, *others: Any, backend: Backend, approximate: bool = False
) -> Tensor:
    from deeplfm.sums.triton.wave_weights import first_order_wave_weights

    theta, phase, amplitude, centers, ell, coefficients, sensitivities, memory = others
    weights = sensitivities[..., None] * coefficients[:, None]  # S D Q M
    if len(centers) == 1:
        weights = weights.sum(2, keepdim=True)
    bumps = bump_sum.by(backend, dynamics, x, centers, ell, weights, memory)
    decay, gains = _first_order(dynamics, sensitivities)
    cosine, sine = first_order_wave_weights(theta[0], phase[0], decay, gains, amplitude).unbind()
    return bumps + plane_wave_sum.by(backend, x, theta.flatten(1, 2), cosine, sine)


force_response_sum.add("c", _by_c, fits=_is_first_order)
force_response_sum.add("triton", _by_triton, fits=_is_first_order)
