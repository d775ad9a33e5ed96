"""Sums of many waves, in real numbers, without keeping any wave.

    sum(x) = Σ_r (1 - cos ω_r·x) a_r + sin(ω_r·x) b_r

The ODE is in the weights a and b (`layers.fourier_paths`), what it leaves of its start in
`transients`. Waves exist for a piece of the points at a time, and again when gradients need them;
over one input each, tables do with far fewer of them (`rest_sums`).
"""

from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from deeplfm.sums.backends import by_kernels
from deeplfm.sums.torch.pieces import pieces

_PIECE, _PIECE_ON_DEVICE = 2**17, 2**24  # waves that exist at a time


def input_sums(
    x: Float[Tensor, "S3 N P"],
    omega: Float[Tensor, "S2 G P R"],
    even: Float[Tensor, "C S D P R"],
    odd: Float[Tensor, "C S D P R"],
) -> Float[Tensor, "S N D"]:
    """Σ_p Σ_r (cos ω_{pr} x_p - 1) even_{pr} + sin(ω_{pr} x_p) odd_{pr}: sums over one input each.

    With two sides C the weights of the second hold where x < 0. S2 and S3 are 1 or S.
    """
    if len(omega) == 1 and by_kernels(x):
        from deeplfm.sums.triton.fourier import fourier_sums

        return fourier_sums(x, omega[0], even, odd).sum(-1)
    sides, samples, outputs, inputs, count = even.shape
    batch, groups = max(len(x), len(omega)), omega.shape[1]
    # Outputs that have the same frequencies, and samples that have the same inputs and
    # frequencies, are columns of one product.
    split = (sides, batch, samples // batch, groups, outputs // groups, inputs, count)

    def columns(weights: Tensor) -> Tensor:
        return weights.reshape(split).permute(1, 3, 5, 6, 0, 2, 4).flatten(-3)

    total = wave_sum(x.mT[:, None, :, :, None], omega[..., None], -columns(even), columns(odd))
    total = total.unflatten(-1, (sides, samples // batch, outputs // groups))
    total = total.permute(4, 0, 5, 3, 1, 6, 2).reshape(sides, samples, -1, outputs, inputs)
    return at_side(x, total).sum(-1)


def at_side(x: Float[Tensor, "S3 N P"], values: Float[Tensor, "C S N2 D P"]) -> Tensor:
    """Of each point the values of its side of the origin, [S, N, D, P]."""
    if len(values) == 1:
        return values[0]
    return torch.where((x < 0)[:, :, None], values[1], values[0])


def wave_sum(
    x: Float[Tensor, "*A N K"],
    frequency: Float[Tensor, "*B R K"],
    versine: Float[Tensor, "*C R C"],
    sine: Float[Tensor, "*C R C"],
) -> Float[Tensor, "*D N C"]:
    """Σ_r (1 - cos ω_r·x) versine_r + sin(ω_r·x) sine_r, for C sums over the same waves.

    The batch of `versine` and `sine` is the broadcast one of `x` and `frequency`.
    """
    if x.ndim == 3 and len(x) > 1 and len(frequency) == 1 and by_kernels(x):
        from deeplfm.sums.triton.planes import plane_wave_sums

        return plane_wave_sums(x, frequency[0], versine, sine)
    # NumPy's: that of torch imports symbolic algebra first, for a second.
    batch = np.broadcast_shapes(x.shape[:-2], frequency.shape[:-2])
    flat = [
        part.expand(*batch, *part.shape[-2:]).reshape(-1, *part.shape[-2:])
        for part in (x, frequency, versine, sine)
    ]
    total: Tensor = _WaveSum.apply(*flat)
    return total.reshape(*batch, *total.shape[-2:])


class _WaveSum(torch.autograd.Function):
    """Waves exist for a piece of the points at a time, small enough for the cache; again, back."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, frequency: Tensor, versine: Tensor, sine: Tensor) -> Tensor:
        ctx.save_for_backward(x, frequency, versine, sine)
        total = versine.new_empty(*x.shape[:2], versine.shape[-1])
        for b, n in _pieces(x, frequency):
            versines, waves = _waves(x[b, n], frequency[b])
            piece = torch.bmm(versines, versine[b])
            total[b, n] = piece.baddbmm_(waves, sine[b])
        return total

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        (gradient,) = gradients
        x, frequency, versine, sine = ctx.saved_tensors
        if torch.is_grad_enabled():  # derivatives of derivatives, as it is written
            phase = x @ frequency.mT
            versines, waves = 1 - torch.cos(phase), torch.sin(phase)
            by_phase = (gradient @ versine.mT) * waves + (gradient @ sine.mT) * torch.cos(phase)
            by_weights = versines.mT @ gradient, waves.mT @ gradient
            return by_phase @ frequency, by_phase.mT @ x, *by_weights
        by_x = torch.empty_like(x)
        by_frequency, by_versine, by_sine = map(torch.zeros_like, (frequency, versine, sine))
        for b, n in _pieces(x, frequency):
            versines, waves = _waves(x[b, n], frequency[b])
            piece = gradient[b, n]
            by_versine[b] += versines.mT @ piece
            by_sine[b] += waves.mT @ piece
            by_wave = piece @ sine[b].mT
            by_phase = (piece @ versine[b].mT).mul_(waves).add_(by_wave)
            by_phase.sub_(by_wave.mul_(versines))  # cos = 1 - versine
            by_x[b, n] = by_phase @ frequency[b]
            by_frequency[b] += by_phase.mT @ x[b, n]
        return by_x, by_frequency, by_versine, by_sine


def _pieces(x: Tensor, frequency: Tensor) -> list[tuple[slice, slice]]:
    size = _PIECE if x.device.type == "cpu" else _PIECE_ON_DEVICE
    return pieces(x.shape[0], x.shape[1], frequency.shape[1], size).slices


def _waves(x: Tensor, frequency: Tensor) -> tuple[Tensor, Tensor]:
    """1 - cos and sin of the phases."""
    halves = frequency.mT / 2
    half = x * halves if x.shape[-1] == 1 else x @ halves
    sines = torch.sin(half)
    waves = half.cos_().mul_(sines).mul_(2)  # sin = 2 sin(½) cos(½)
    return sines.mul_(sines).mul_(2), waves  # 1 - cos = 2 sin²(½)
