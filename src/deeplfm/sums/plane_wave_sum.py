"""Sums of plane waves, which run along all inputs at once.

    sum_s(x) = Σ_r cos(ω_r·x) cosine_sr + sin(ω_r·x) sine_sr

No wave is kept for the backward pass: waves exist for a chunk of the points at a time, small enough
for the cache, and again when gradients ask for them.
"""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from deeplfm.sums.candidate import sum_of
from deeplfm.sums.torch.chunks import chunks

_WAVES = {"cpu": 2**17, "cuda": 2**24}  # waves that exist at a time


@sum_of
def plane_wave_sum(
    x: Float[Tensor, "#S N P"],
    frequency: Float[Tensor, "#S R P"],
    cosine: Float[Tensor, "S R C"],
    sine: Float[Tensor, "S R C"],
) -> Float[Tensor, "S N C"]:
    """C sums over the same waves, for each of S samples."""
    samples, _, columns = cosine.shape
    batch = max(len(x), len(frequency))
    if batch == 1:  # samples over the same points and waves are columns of one product
        cosine, sine = (part.transpose(0, 1).flatten(1)[None] for part in (cosine, sine))
    x, frequency = x.expand(batch, -1, -1), frequency.expand(batch, -1, -1)
    total: Tensor = _PlaneWaves.apply(x, frequency, cosine, sine)
    return total[0].unflatten(-1, (samples, columns)).transpose(0, 1) if batch == 1 else total


class _PlaneWaves(torch.autograd.Function):
    """The sums of each set of points, [B, N, P] by [B, R, P]."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, frequency: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
        ctx.save_for_backward(x, frequency, cosine, sine)
        total = cosine.new_empty(*x.shape[:2], cosine.shape[-1])
        for b, n in _chunks(x, frequency):
            cosines, sines = _waves(x[b, n], frequency[b])
            total[b, n] = torch.baddbmm(cosines @ cosine[b], sines, sine[b])
        return total

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (gradient,) = gradients
        x, frequency, cosine, sine = ctx.saved_tensors
        if torch.is_grad_enabled():  # derivatives of derivatives, as it is written
            cosines, sines = _waves(x, frequency)
            by_phase = (gradient @ sine.mT) * cosines - (gradient @ cosine.mT) * sines
            by_weights = cosines.mT @ gradient, sines.mT @ gradient
            return by_phase @ frequency, by_phase.mT @ x, *by_weights
        by_x, by_frequency, by_cosine, by_sine = map(torch.zeros_like, (x, frequency, cosine, sine))
        moved = any(ctx.needs_input_grad[:2])
        for b, n in _chunks(x, frequency):
            cosines, sines = _waves(x[b, n], frequency[b])
            along = gradient[b, n]
            by_cosine[b] += cosines.mT @ along
            by_sine[b] += sines.mT @ along
            if moved:
                by_phase = (along @ sine[b].mT).mul_(cosines)
                by_phase.sub_((along @ cosine[b].mT).mul_(sines))
                by_x[b, n] = by_phase @ frequency[b]
                by_frequency[b] += by_phase.mT @ x[b, n]
        return by_x, by_frequency, by_cosine, by_sine


def _chunks(x: Tensor, frequency: Tensor) -> list[tuple[slice, slice]]:
    size = _WAVES.get(x.device.type, _WAVES["cuda"])
    return chunks(x.shape[0], x.shape[1], frequency.shape[1], size).slices


def _waves(x: Tensor, frequency: Tensor) -> tuple[Tensor, Tensor]:
    """cos and sin of the phases."""
    phase = x * frequency.mT if x.shape[-1] == 1 else x @ frequency.mT
    return torch.cos(phase), torch.sin(phase)


def _by_c(x: Tensor, frequency: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    from deeplfm.sums.c.planes import plane_sum

    return plane_sum(x, frequency[0], cosine, sine)


def _by_triton(x: Tensor, frequency: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    from deeplfm.sums.triton.planes import plane_wave_sums

    return plane_wave_sums(x, frequency[0], cosine, sine)


def _waves_are_shared(x: Tensor, frequency: Tensor, *_: Tensor) -> bool:
    return len(frequency) == 1 and x.numel() > 0


def _points_differ(x: Tensor, frequency: Tensor, cosine: Tensor, *_: Tensor) -> bool:
    """Points that all samples share are one product, which is as fast."""
    return len(frequency) == 1 and len(x) == len(cosine) and x.numel() > 0


plane_wave_sum.add("c", _by_c, fits=_waves_are_shared)
plane_wave_sum.add("triton", _by_triton, fits=_points_differ)
