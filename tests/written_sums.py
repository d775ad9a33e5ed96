"""Sums of responses as they are written, in float64: what every fast path must agree with."""

import torch
from torch import Tensor

from deeplfm.responses import wave_response
from deeplfm.responses.bumps import bump_response


def bumps_as_written(
    x: Tensor, centers: Tensor, lengthscale: Tensor, decay: Tensor, coefficients: Tensor
) -> Tensor:
    """First-order responses to bumps, products over inputs."""
    product = torch.ones((), dtype=x.dtype)
    for p in range(x.shape[-1]):
        points, ell = x[:, :, None, None, None, p], lengthscale[:, p, None]  # S N D Q M
        product = product * bump_response(points, centers[..., p], ell, decay[:, p, None, None])
    return (product * coefficients[:, None]).sum((-2, -1))


def fourier_as_written(
    x: Tensor, shared: Tensor, omega: Tensor, decay: Tensor, amplitude: Tensor, weights: Tensor,
    offset: Tensor,
) -> Tensor:  # fmt: skip
    """A first-order Fourier layer from its zero state; before the origin it runs backwards."""
    inputs = torch.cat([x, shared.expand(len(x), -1, -1)], -1)[:, :, None, :, None, None]
    waves = wave_response(  # S N G P Q R
        inputs.abs(), omega.permute(0, 3, 1, 2), decay[..., None, None], "zero"
    )
    real = torch.where(inputs < 0, -waves.real, waves.real)
    parts = torch.stack([real, waves.imag], -2) * amplitude.abs()[..., None, None]
    features = parts.sum(3).flatten(-3) / omega.shape[2] ** 0.5
    features = features.repeat_interleave(len(offset) // len(omega), 2)
    return torch.einsum("sndf,sdf->snd", features, weights) + offset


def wave_weights_as_written(
    theta: Tensor, phase: Tensor, decay: Tensor, sensitivities: Tensor, amplitude: Tensor
) -> Tensor:
    """What first-order ODEs make of waves with these phases: complex, [S, QB, D]."""
    poles = torch.complex(*torch.broadcast_tensors(decay[:, None, None], theta))  # D Q B P
    answer = torch.polar(torch.ones_like(phase), phase) / poles.prod(-1)
    return (sensitivities[..., None] * amplitude[:, None] * answer).flatten(2).mT
