"""A Fourier layer of first order that starts from rest, compiled (`rest.c`, `tables.c`).

    f[s,n,d] = offset_d + Σ_{qr} Φ'[n,d,qr]·cosine[s,d,qr] + Φ''[n,d,qr]·sine[s,d,qr]
    Φ = Σ_p |amplitude_{gpq}|/√R · wave(x_p; γ_{gp}, ω_{gqrp})   (`layers.fourier`)

Of inputs that all samples share the waves are made once. Along inputs of its own a sample is a sum
of functions of one number: where points are many, each is interpolated in a table.
"""

from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from deeplfm.sums.c.jobs import Fourier, Lookup, Split
from deeplfm.sums.c.library import call, split_of
from deeplfm.sums.constants import LOOKUP_NODES as NODES

_PHASE = 0.4  # radians of the fastest wave between two nodes: good to 7e-7 of that wave
_FEWEST = 2  # points to a node: fewer gain nothing


def first_order_fourier_sum(
    own: Float[Tensor, "S N P1"] | None,
    shared: Float[Tensor, "N P2"] | None,
    omega: Float[Tensor, "G Q R P"],
    decay: Float[Tensor, "G P"],
    amplitude: Float[Tensor, "G P Q"],
    weights: Float[Tensor, "S D F"],
    offset: Float[Tensor, " D"],
    *,
    tables: bool = True,
) -> Float[Tensor, "S N D"]:
    """P = P1 + P2, F = 2QR: cosine and sine weights of each force; G divides D. float32.

    The sign of an amplitude does not count. Decays are positive. Without `tables` every wave of
    every point is made.
    """
    grid = None
    if own is not None and tables:
        grid = _grid_for(own.detach(), omega.detach(), decay.detach())
    total: Tensor = _FourierSum.apply(own, shared, omega, decay, amplitude, weights, offset, grid)
    return total


class _Grid(NamedTuple):
    """Nodes of the tables, as many for each input, on one side of the origin or both."""

    spacing: Float[Tensor, " P1"]
    size: int
    sides: int

    def nodes(self) -> Float[Tensor, "P1 _"]:
        """Lags; some are before the origin, so that every cell has nodes to both sides."""
        steps = torch.arange(self.size, dtype=self.spacing.dtype).sub_(NODES // 2 - 1)
        return (self.spacing[:, None] * steps).repeat(1, self.sides)


def _grid_for(own: Tensor, omega: Tensor, decay: Tensor) -> _Grid | None:
    """A grid whose spacing is that of the frequencies, wherever the points are."""
    inputs = own.shape[2]
    fastest = torch.maximum(omega[..., :inputs].abs().amax((0, 1, 2)), decay[:, :inputs].amax(0))
    spacing = _PHASE / fastest
    low, high = own.flatten(0, 1).aminmax(dim=0)
    cells = float((torch.maximum(high, -low) / spacing).max())
    sides = 2 if float(low.min()) < 0 else 1
    # Not finite, or too far for a table, or no gain.
    if not (cells + NODES) * sides * _FEWEST < own.shape[0] * own.shape[1]:
        return None
    return _Grid(spacing, int(cells) + NODES, sides)


class _Part(NamedTuple):
    """Some of the inputs, from the `first` on: points, or nodes of a table.

    So many nodes are of the side `after` the origin, the rest of the one before.
    """

    x: Float[Tensor, "S3 N P3"]
    first: int
    after: int = 0


class _FourierSum(torch.autograd.Function):
    """Keeps its arguments, what the ODE makes of each frequency, and the tables."""

    @staticmethod
    def forward(ctx: Any, *arguments: Any) -> Tensor:
        own, shared, omega, *rest, offset, grid = arguments
        given = [omega.permute(0, 3, 1, 2).contiguous(), *(part.contiguous() for part in rest)]
        groups, inputs, forces, count = given[0].shape
        table = offset.new_empty(groups, inputs, 4, forces * count)
        points = own[0] if shared is None else shared
        total: Tensor = offset.expand(len(given[-1]), len(points), -1).contiguous()
        outs, at_nodes = _outs(own, shared, grid, total)
        for number, (part, out) in enumerate(zip(_parts(own, shared, grid), outs, strict=True)):
            job, elements = _job(part, table, *given)
            job.fill(out=out)
            if number == 0:
                call("fourier_table", job, 0)
            call("fourier_sums", job, elements)
        if grid is not None:
            interpolation = _interpolation(own, grid, at_nodes)
            interpolation.fill(out=total)
            call("interpolated", interpolation, NODES * total.numel() * own.shape[2])
        ctx.save_for_backward(own, shared, table, at_nodes, *given)
        ctx.grid = grid
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        own, shared, table, at_nodes, *given = ctx.saved_tensors
        grid, weights = ctx.grid, given[-1]
        by = [torch.empty_like(part) for part in given[:3]]
        by_own = None if own is None else own.new_empty(own.shape)
        by_shared = None if shared is None else shared.new_empty(shared.shape)
        along, by_nodes = _outs(own, shared, grid, gradient)
        if grid is not None:
            interpolation = _interpolation(own, grid, at_nodes)
            interpolation.fill(gradient=gradient, by_x=by_own, by_table=by_nodes)
            interpolation.g_s, interpolation.g_n, interpolation.g_d = gradient.stride()
            call("interpolated_backward", interpolation, NODES * gradient.numel() * own.shape[2])
        by_weights = []
        for part, of_part in zip(_parts(own, shared, grid), along, strict=True):
            job, elements = _job(part, table, *given)
            sums = (job.split.tasks, len(table), part.x.shape[2], 3 * table.shape[-1] + 1)
            by_table = table.new_empty(sums)
            by_weights.append(weights.new_empty(job.split.chunks, *weights.shape))
            job.fill(gradient=of_part, by_table=by_table, by_weights=by_weights[-1])
            job.fill(by_omega=by[0], by_decay=by[1], by_amplitude=by[2])
            job.g_s, job.g_n, job.g_d = of_part.stride()
            if not part.after:
                job.fill(by_x=by_own if part.x is own else by_shared)
            call("fourier_sums_backward", job, 2 * elements)
        parameters = (by[0].permute(0, 2, 3, 1), *by[1:], torch.cat(by_weights).sum(0))
        return by_own, by_shared, *parameters, gradient.sum((0, 1)), None


def _parts(own: Tensor | None, shared: Tensor | None, grid: _Grid | None) -> list[_Part]:
    """What is summed on its own: a table of each input, or all at once; shared inputs last."""
    parts = []
    if own is not None and grid is not None:
        nodes = grid.nodes()
        parts += [_Part(one[None, :, None], p, grid.size) for p, one in enumerate(nodes)]
    elif own is not None:
        parts.append(_Part(own, 0))
    if shared is not None:
        parts.append(_Part(shared[None], 0 if own is None else own.shape[2]))
    return parts


def _outs(
    own: Tensor | None, shared: Tensor | None, grid: _Grid | None, total: Tensor
) -> tuple[list[Tensor], Tensor | None]:
    """Where the sums of each part go, or their gradients come from; and all tables, zero yet."""
    if own is None or grid is None:
        return [total for part in (own, shared) if part is not None], None
    samples, _, outputs = total.shape
    nodes = total.new_zeros(own.shape[2], samples, grid.sides * grid.size, outputs)
    return [*nodes.unbind(0), *([] if shared is None else [total])], nodes


def _interpolation(own: Tensor, grid: _Grid, at_nodes: Any) -> Lookup:
    samples, points, inputs = own.shape
    job = Lookup(Split(samples, 1, points, 1), inputs, at_nodes.shape[-1], grid.size)
    job.fill(x=own, spacing=grid.spacing, table=at_nodes)
    job.x_s, job.x_n, job.x_p = own.stride()
    job.sides = grid.sides
    return job


def _job(
    part: _Part, table: Tensor, omega: Tensor, decay: Tensor, amplitude: Tensor, weights: Tensor
) -> tuple[Fourier, int]:
    """What both directions are told, and how many waves there are."""
    groups, inputs, forces, count = omega.shape
    samples, outputs, _ = weights.shape
    last = part.first + part.x.shape[2]
    sizes = (part.first, last, inputs, groups, outputs, forces, count, part.after)
    job = Fourier(split_of(part.x, samples), *sizes)
    job.fill(x=part.x, omega=omega, decay=decay, amplitude=amplitude, weights=weights, table=table)
    job.x_s, job.x_n, job.x_p = part.x.stride()
    return job, part.x.numel() * groups * forces * count
