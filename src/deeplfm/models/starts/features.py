"""The features of a Fourier layer where a start needs them: at the frequencies q begins with."""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from deeplfm.layers import FourierLayer
from deeplfm.responses.transients import transients

_AT_ONCE = 2**17  # waves that exist at a time: a few MB


def features_at(layer: FourierLayer, values: Float[Tensor, "N P"]) -> Float[Tensor, "N G F"]:
    """Φ at the frequencies q starts from."""
    with torch.no_grad():
        omega = layer.frequencies.center()
        if layer.plane_wave or layer.memory == "infinite":
            return layer.features(values[None], omega[None])[0].flatten(-2)
        return _from_zero_state(layer, values, omega)


def _from_zero_state(
    layer: FourierLayer, values: Float[Tensor, "N P"], omega: Float[Tensor, "G2 Q R P"]
) -> Float[Tensor, "N G F"]:
    """Sums over inputs of waves less their transients (`responses`), a few rows at a time.

    The layer's own features hold for every ODE and lag to full relative precision, at a price; a
    regression has no use for that.
    """
    forces, count = omega.shape[1:3]
    amplitudes = layer.waves(omega[None], copy=False).amplitudes()
    omega = omega.permute(0, 3, 1, 2).flatten(-2)  # G P K
    scale = amplitudes[..., None].expand(-1, -1, -1, count) / math.sqrt(count)
    turn = torch.zeros_like(scale) if layer.phases is None else layer.phases.permute(0, 3, 1, 2)
    weights = torch.polar(*torch.broadcast_tensors(scale, turn)).flatten(-2)
    g = layer.greens_function
    response = g.transfer(torch.complex(torch.zeros_like(omega), omega))
    sign = -1.0 if g.order % 2 else 1.0  # before the origin the ODE runs backwards from state zero
    after, before = weights * response, sign * weights * response.conj()
    parts = []
    for x in values.split(max(1, _AT_ONCE // after.numel())):
        rise, others = transients(g, x.abs()[None, :, None])
        half = x[:, None, :, None] * (omega / 2)  # n G P K
        sine = half.sin()
        # e^{jωx} - 1 in a form that does not cancel next to 0, and 1 - b_0.
        waves = torch.complex(-2 * sine.square(), 2 * sine * half.cos_())
        waves = waves + rise[0, ..., None]
        for k, motion in enumerate(others, start=1):
            signed = torch.sign(x)[:, None] ** k * motion[0]
            waves = waves - signed[..., None] * (1j * omega) ** k
        waves = waves * torch.where(x[:, None, :, None] < 0, before, after)
        combined = waves.sum(2).unflatten(-1, (forces, count))
        parts.append(torch.cat([combined.real, combined.imag], -1).flatten(-2))
    return torch.cat(parts)
