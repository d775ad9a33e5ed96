"""A Fourier layer of first order from its zero state, summed over its inputs on a CPU.

    f = offset + Σ_p U(|x_p|) ± V(|x_p|),   - where x_p < 0: there the ODE runs backwards
    V = Σ_r Re(H B) cosine_r,  U = Σ_r Im(H B) sine_r,   B = e^{jωx} - e^{-γx},  H = |a|/√R/(γ + jω)

V and U of inputs that each sample has for itself are interpolated in a lookup over |x|; of inputs
that all samples share they are one product. Few operations, there and back: for small models their
number is what a step costs.
"""

import math
from functools import reduce
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.functional import conv1d

from deeplfm.sums.torch.interpolation import bags, places, scattered

NODES = 6  # of an interpolation
PHASE = 0.35  # radians of the fastest wave between two nodes: good to 9e-6 of that wave
LARGEST = 2**22  # waves at nodes that a table may be made of
_BESIDE = 3  # nodes to either side that a slope at a node needs
_PIECE = 2**19  # waves that exist at a time
_KEPT = 2**20  # waves that are kept for the backward pass; more are made again


class _Grid(NamedTuple):
    """Nodes first, first + 1 … times the spacing of each input."""

    spacing: Float[Tensor, " P"]
    size: int
    first: int = 1 - NODES // 2 - _BESIDE

    def nodes(self) -> Float[Tensor, "P K"]:
        return self.spacing[:, None] * torch.arange(self.first, self.first + self.size)


def first_order_fourier_sum(
    own: Float[Tensor, "S N P1"] | None,
    shared: Float[Tensor, "N P2"] | None,
    omega: Float[Tensor, "G Q R P"],
    decay: Float[Tensor, "G P"],
    amplitude: Float[Tensor, "G P Q"],
    weights: Float[Tensor, "S D F"],
    offset: Float[Tensor, " D"],
) -> Float[Tensor, "S N D"] | None:
    """P = P1 + P2, F = 2QR: cosine and sine weights of each force; G divides D.

    The sign of an amplitude does not count. None where a table has little to gain, and for shared
    inputs before the origin or with a gradient.
    """
    if weights.dtype != torch.float32:
        return None
    if shared is not None and (shared.requires_grad or not bool((shared >= 0).all())):
        return None
    frequency, rate = omega.permute(3, 0, 1, 2).flatten(2), decay.mT[..., None]  # P G R, P G 1
    grid, count = None, 0
    if own is not None:
        own, count = own.mT, own.shape[-1]  # points last: loops over them are long
        grid = _grid_for(own.detach(), frequency.detach()[:count], rate.detach()[:count])
        if grid is None:
            return None
    parts = _Folded.apply(frequency, rate, amplitude.transpose(0, 1), weights, count)
    sizes = [count, len(frequency) - count]
    frequencies, rates = frequency.split(sizes), rate.split(sizes)
    total: Tensor = offset
    if own is not None:
        total = total + _AtNodes.apply(own, frequencies[0], rates[0], parts[0], grid)
    if shared is not None:
        total = total + _AtPoints.apply(shared.mT, frequencies[1], rates[1], parts[1])
    return total


def _grid_for(
    x: Float[Tensor, "S P N"], frequency: Float[Tensor, "P G R"], rate: Float[Tensor, "P G 1"]
) -> _Grid | None:
    """A grid over |x|; the spacing is that of the frequencies, wherever x is."""
    spacing = PHASE / torch.maximum(frequency.abs().amax((1, 2)), rate.abs().amax((1, 2)))
    cells = float((x.abs().amax((0, 2)) / spacing).max()) if x.numel() else math.nan
    if not cells < 1e6:  # not finite, or too far for a table
        return None
    size = int(cells) + NODES + 2 * _BESIDE
    few = 2 * size > x.shape[0] * x.shape[2]
    return None if few or size * frequency.numel() > LARGEST else _Grid(spacing, size)


class _Folded(torch.autograd.Function):
    """The ODE in the weights of sin ωx and cos ωx - e^{-γx}: of V and U, and of both together.

    [P1, G, 2, S, D', 2, R] of a sample's own inputs, [P2, G, S, D', 2, R] of shared ones.
    """

    @staticmethod
    def forward(
        ctx: Any, frequency: Tensor, rate: Tensor, amplitude: Tensor, weights: Tensor, count: int
    ) -> tuple[Tensor, Tensor]:
        inputs, groups, waves = frequency.shape
        each = waves // amplitude.shape[-1]
        split = weights.unflatten(1, (groups, -1)).unflatten(-1, (-1, 2, each))  # S G D' Q 2 R'
        parts = split.permute(1, 4, 0, 2, 3, 5).flatten(-2)[None, ..., None, :]
        size = (amplitude.abs() / math.sqrt(each)).repeat_interleave(each, -1)
        answer = torch.complex(rate.expand_as(frequency), -frequency).reciprocal()  # 1/(γ - jω)
        real, imag = torch.view_as_real(answer * size).unbind(-1)
        turn = torch.stack([imag, real, real, -imag], 2).view(inputs, groups, 2, 1, 1, 2, waves)
        ctx.save_for_backward(amplitude, size, answer, turn, parts)
        folded = turn * parts
        return folded[:count], folded[count:].sum(2)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, by_own: Tensor, by_shared: Tensor) -> tuple[Tensor | None, ...]:
        amplitude, size, answer, turn, parts = ctx.saved_tensors
        by_folded = torch.cat([by_own, by_shared[:, :, None].expand(-1, -1, 2, -1, -1, -1, -1)])
        by_parts = (by_folded * turn).sum((0, 5))  # G 2 S D' R
        a, b, c, d = (by_folded * parts).sum((3, 4)).flatten(2, 3).unbind(2)
        along = torch.complex(b + c, d - a).mul_(answer)
        by_size = along.real.unflatten(-1, (amplitude.shape[-1], -1)).sum(-1)
        each = answer.shape[-1] // amplitude.shape[-1]
        by_amplitude = by_size * torch.sign(amplitude) / math.sqrt(each)
        along.mul_(answer).mul_(size)  # the derivative of 1/p is -1/p²
        by_weights = by_parts.unflatten(-1, (-1, each)).permute(2, 0, 3, 4, 1, 5)
        by_weights = by_weights.flatten(3).flatten(1, 2)
        return -along.imag, -along.real.sum(-1, keepdim=True), by_amplitude, by_weights, None


class _AtNodes(torch.autograd.Function):
    """V and U at the nodes of a grid, and from there to the points."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, frequency: Tensor, rate: Tensor, parts: Tensor, grid: _Grid
    ) -> Tensor:
        (samples, inputs, _), nodes = x.shape, grid.nodes()
        groups, each = parts.shape[1], parts.shape[4]
        waves, fading = _waves(nodes, frequency, rate)
        both = (parts.flatten(2, 4).flatten(-2) @ waves.flatten(2, 3)).view(*parts.shape[:5], -1)
        kinds = (both, _slopes(both)) if ctx.needs_input_grad[0] else (both,)
        # A row of all outputs, and their slopes, per side, sample, input and node.
        table = x.new_empty(2, samples, inputs, grid.size, len(kinds), groups, each)
        after_0, before_0 = table.permute(0, 4, 2, 5, 1, 6, 3)
        for kind, (v, u) in enumerate(one.unbind(2) for one in kinds):
            torch.add(u, v, out=after_0[kind])
            torch.sub(u, v, out=before_0[kind])
        table = table.flatten(0, 3).flatten(1)
        before, found = x < 0, places(x.abs() / grid.spacing[:, None], NODES)
        start = torch.arange(samples * inputs).view(samples, inputs, 1) * grid.size - grid.first
        first = (found.first + start).add_(before, alpha=len(table) // 2)
        rows, weights = first[..., None] + torch.arange(NODES), found.weights()
        found_there = bags(rows, weights, table).unflatten(-1, (len(kinds), -1))
        slopes = found_there[..., 1, :] if len(kinds) > 1 else None
        ctx.save_for_backward(parts, waves, fading, nodes, before, rows, weights, slopes)
        ctx.grid = grid
        values: Tensor = found_there[..., 0, :].sum(1)
        return values

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        parts, waves, fading, nodes, before, rows, weights, slopes = ctx.saved_tensors
        inputs, groups, _, samples, each = parts.shape[:5]
        columns = gradient.permute(2, 0, 1).contiguous()[:, :, None]  # D S 1 N
        by_x = None
        if slopes is not None:
            inverse = 1 / ctx.grid.spacing[:, None]
            by_x = torch.where(before, -inverse, inverse) * reduce(
                torch.add, (a * b for a, b in zip(columns, slopes.unbind(-1), strict=True))
            )
        size = 2 * samples * inputs * ctx.grid.size
        by_rows = scattered(rows, weights, columns, size)
        split = by_rows.view(groups, each, 2, samples, inputs, -1).permute(2, 4, 0, 3, 1, 5)
        after_0, before_0 = split.unbind(0)  # P G S D' K
        by_both = torch.stack([after_0 - before_0, after_0 + before_0], 2)
        by = _by_waves(by_both.flatten(2, 4), parts.flatten(2, 4), waves, fading, nodes)
        return by_x, by[0], by[1], by[2].view(parts.shape), None


class _AtPoints(torch.autograd.Function):
    """V + U at points that all samples share."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, frequency: Tensor, rate: Tensor, parts: Tensor) -> Tensor:
        flat, kept = parts.flatten(2, 3).flatten(-2), []
        keep = x.shape[1] * frequency.numel() <= _KEPT and any(ctx.needs_input_grad)
        totals = []
        for piece in _pieces(x, frequency):
            waves, fading = _waves(piece, frequency, rate)
            totals.append((flat @ waves.flatten(2, 3)).sum(0))
            kept += [waves, fading] if keep else []
        ctx.save_for_backward(x, frequency, rate, parts, *kept)
        total = totals[0] if len(totals) == 1 else torch.cat(totals, -1)  # G SD' N
        values: Tensor = total.unflatten(1, parts.shape[2:4]).permute(1, 3, 0, 2).flatten(2)
        return values

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        x, frequency, rate, parts, *kept = ctx.saved_tensors
        columns = gradient.unflatten(-1, (parts.shape[1], -1)).permute(2, 0, 3, 1).flatten(1, 2)
        flat, found, begin = parts.flatten(2, 3), [], 0
        for number, piece in enumerate(_pieces(x, frequency)):
            made = kept[2 * number : 2 * number + 2] or _waves(piece, frequency, rate)
            by_piece = columns[..., begin : begin + piece.shape[1]].expand(len(x), -1, -1, -1)
            found.append(_by_waves(by_piece, flat, made[0], made[1], piece))
            begin += piece.shape[1]
        by = [reduce(torch.add, pieces) for pieces in zip(*found, strict=True)]
        return None, by[0], by[1], by[2].view(parts.shape)


def _slopes(values: Float[Tensor, "*L K"]) -> Float[Tensor, "*L K"]:
    """Central differences of sixth order, per cell; none of the outermost nodes."""
    taps = values.new_tensor([-1 / 60, 3 / 20, -3 / 4, 0, 3 / 4, -3 / 20, 1 / 60])
    rows = values.reshape(-1, 1, values.shape[-1])
    slopes: Tensor = conv1d(rows, taps[None, None], padding=_BESIDE)
    return slopes.view_as(values)


def _pieces(x: Float[Tensor, "P N"], frequency: Tensor) -> tuple[Tensor, ...]:
    pieces: tuple[Tensor, ...] = x.split(max(1, _PIECE // max(1, frequency.numel())), dim=1)
    return pieces


def _waves(
    lag: Float[Tensor, "P K"], frequency: Float[Tensor, "P G R"], rate: Float[Tensor, "P G 1"]
) -> tuple[Float[Tensor, "P G 2 R K"], Float[Tensor, "P G K"]]:
    """sin ωx and cos ωx - e^{-γx}, and e^{-γx} - 1; nothing cancels where x is small."""
    fading = torch.expm1(-rate * lag[:, None])
    waves = frequency.new_empty(*frequency.shape[:2], 2, frequency.shape[2], lag.shape[1])
    sine, cosine = waves.unbind(2)
    torch.mul(frequency[..., None], lag[:, None, None], out=sine)
    torch.mul(sine, 0.5, out=cosine).sin_()
    cosine.mul_(cosine).mul_(-2).sub_(fading[:, :, None])  # cos - 1 = -2 sin²(½)
    sine.sin_()
    return waves, fading


def _by_waves(
    by_sums: Float[Tensor, "P G C K"],
    parts: Float[Tensor, "P G C 2 R"],
    waves: Float[Tensor, "P G 2 R K"],
    fading: Float[Tensor, "P G K"],
    lag: Float[Tensor, "P K"],
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of the frequencies, the rates and the parts, of sums of parts times waves."""
    by_parts = by_sums @ waves.flatten(2, 3).mT
    by_sine, by_cosine = (parts.flatten(-2).mT @ by_sums).view(waves.shape).unbind(2)
    sine, cosine = waves.unbind(2)
    left = fading + 1  # e^{-γx}
    by_rate = (by_cosine.sum(2) * left) @ lag[..., None]
    by_phase = (cosine + left[:, :, None]).mul_(by_sine).addcmul_(by_cosine, sine, value=-1)
    by_frequency = (by_phase.flatten(1, 2) @ lag[..., None]).view(
        parts.shape[0], parts.shape[1], -1
    )
    return by_frequency, by_rate, by_parts
