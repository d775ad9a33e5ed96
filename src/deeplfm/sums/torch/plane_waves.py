"""Sums of plane waves that all samples share, on a CPU, in buffers that are used again.

sum_s(x) = Σ_r cos(ω_r·x) a_sr + sin(ω_r·x) b_sr
"""

from collections.abc import Iterator
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from deeplfm.sums.backends import natively
from deeplfm.sums.c import planes
from deeplfm.sums.torch.pieces import pieces, room

_PIECE = 2**19  # waves that exist at a time


def plane_sum(
    x: Float[Tensor, "S N P"],
    frequency: Float[Tensor, "R P"],
    cosine: Float[Tensor, "S R C"],
    sine: Float[Tensor, "S R C"],
) -> Float[Tensor, "S N C"]:
    """The sums of each sample at its own points."""
    if natively(x, cosine):
        return planes.plane_sum(x, frequency, cosine, sine)
    total: Tensor = _PlaneSum.apply(x, frequency, cosine, sine)
    return total


class _PlaneSum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, frequency: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
        ctx.save_for_backward(x, frequency, cosine, sine)
        total = x.new_empty(*x.shape[:2], cosine.shape[-1])
        for b, n, buffers in _pieces(x, len(frequency), 2):
            cosines, sines = _waves(x[b, n], frequency, *buffers)
            total[b, n] = torch.baddbmm(sines @ sine[b], cosines, cosine[b])
        return total

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (gradient,) = gradients
        x, frequency, cosine, sine = ctx.saved_tensors
        if torch.is_grad_enabled():  # derivatives of derivatives, as it is written
            cosines, sines = torch.cos(x @ frequency.mT), torch.sin(x @ frequency.mT)
            phases = (gradient @ sine.mT) * cosines - (gradient @ cosine.mT) * sines
            by_weights = cosines.mT @ gradient, sines.mT @ gradient
            return phases @ frequency, (phases.mT @ x).sum(0), *by_weights
        by_x, by_frequency = torch.empty_like(x), torch.zeros_like(frequency)
        by_cosine, by_sine = torch.zeros_like(cosine), torch.zeros_like(sine)
        moved = any(ctx.needs_input_grad[:2])
        product = torch.mul if gradient.shape[-1] == 1 else torch.bmm
        for b, n, buffers in _pieces(x, len(frequency), 4):
            cosines, sines = _waves(x[b, n], frequency, *buffers[:2])
            along = gradient[b, n]
            by_cosine[b] += cosines.mT @ along
            by_sine[b] += sines.mT @ along
            if not moved:
                continue
            by_phase, other = (buffer.view_as(cosines) for buffer in buffers[2:])
            product(along, sine[b].mT, out=by_phase).mul_(cosines)
            by_phase.sub_(product(along, cosine[b].mT, out=other).mul_(sines))
            flat = by_phase.flatten(0, 1)
            by_x[b, n] = (flat @ frequency).view_as(by_x[b, n])
            by_frequency.addmm_(flat.mT, x[b, n].flatten(0, 1))
        if not moved:
            return None, None, by_cosine, by_sine
        return by_x, by_frequency, by_cosine, by_sine


def _waves(x: Tensor, frequency: Tensor, first: Tensor, second: Tensor) -> tuple[Tensor, Tensor]:
    """cos and sin of the phases, each in a buffer."""
    phase = torch.mm(x.flatten(0, 1), frequency.mT, out=first)
    sines = torch.sin(phase, out=second)
    shape = (*x.shape[:2], len(frequency))
    return phase.cos_().view(shape), sines.view(shape)


def _pieces(x: Tensor, waves: int, buffers: int) -> Iterator[tuple[slice, slice, list[Tensor]]]:
    """Each with its part of the buffers, [points, waves]."""
    samples, points, _ = x.shape
    slices, rows = pieces(samples, points, waves, _PIECE)
    own = room(x, rows, buffers * [waves])
    for b, n in slices:
        some = len(range(samples)[b]) * len(range(points)[n])
        yield b, n, [one[:some] for one in own]
