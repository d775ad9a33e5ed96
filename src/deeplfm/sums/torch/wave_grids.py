"""Sums of waves over one input each, from tables: far fewer sines than points times waves.

    f_sd(x) = Σ_p g_sdp(x_p),   g_sdp(x) = Σ_r (cos ω_r x - 1) even_r + sin(ω_r x) odd_r

g is a function of one number, and no faster than its fastest wave: a table of it is one matrix
product of the waves at the nodes, shared by all samples, with the weights. Nodes are multiples of
a spacing that the frequencies alone decide, so g is the same function wherever it is evaluated.
Six-point Lagrange on eighteen nodes per shortest period is good to 9e-6 of the fastest wave.
"""

from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable

from deeplfm.sums.torch.interpolation import bags, places, scattered

NODES = 6  # of an interpolation
PHASE = 0.35  # radians of the fastest wave between two nodes
LARGEST = 2**22  # waves at nodes that a table may be made of


class Grid(NamedTuple):
    """Nodes (first + 0, 1, … size - 1) · spacing of each side of the origin and each input."""

    first: Int[Tensor, "C P"]
    spacing: Float[Tensor, " P"]
    size: int

    def nodes(self) -> Float[Tensor, "C P K"]:
        steps = self.first[..., None] + torch.arange(self.size)
        return steps * self.spacing[:, None]


def grid_for(
    x: Float[Tensor, "S N P"],
    omega: Float[Tensor, "G P R"],
    sides: int,
    rate: Float[Tensor, " P"] | None = None,
) -> Grid | None:
    """A grid over `x` on each side of the origin, or none where there is little to gain.

    `rate`: of whatever else is in the tables, radians or factors e per unit of each input.
    """
    if x.device.type != "cpu" or x.dtype != torch.float32 or x.numel() == 0:
        return None
    x, fastest = x.detach(), omega.detach().abs().amax((0, 2))
    spacing = PHASE / (fastest if rate is None else torch.maximum(fastest, rate))
    ends = torch.stack([x.amin((0, 1)), x.amax((0, 1))]) / spacing
    if not bool((ends.abs() < 1e6).all()):  # not finite, or too far for a table
        return None
    low, high = ends.floor().long()
    if sides == 2:
        low = torch.stack([low.clamp(min=0), low.clamp(max=-1)])
        high = torch.stack([high.clamp(min=0), high.clamp(max=-1)])
    else:
        low, high = low[None], high[None]
    count = int((high - low).max()) + NODES
    waves = sides * count * omega.numel()
    if waves > LARGEST or 2 * sides * count > x.shape[0] * x.shape[1]:
        return None
    return Grid(low - (NODES // 2 - 1), spacing, count)


def grid_sum(
    x: Float[Tensor, "S N P"],
    omega: Float[Tensor, "G P R"],
    even: Float[Tensor, "C S D P R"],
    odd: Float[Tensor, "C S D P R"],
    grid: Grid,
    more: Float[Tensor, "C P K S D"] | None = None,
) -> Float[Tensor, "S N D"]:
    """f at `x`; weights of the second side, if there is one, are those of x < 0.

    `more` is added to the tables: what else there is of each input, at the nodes of the grid.
    """
    total: Tensor = _GridSum.apply(x, omega, even, odd, more, grid)
    return total


class _GridSum(torch.autograd.Function):
    """Tables in the forward pass; back, the same products with tables of gradients."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        omega: Tensor,
        even: Tensor,
        odd: Tensor,
        more: Tensor | None,
        grid: Grid,
    ) -> Tensor:
        samples, sides, outputs = len(x), len(even), even.shape[2]
        versines, sines = _waves(grid, omega)
        table = sines @ _columns(odd, len(omega)) - versines @ _columns(even, len(omega))
        table = _as_rows(table, samples, outputs)
        if more is not None:
            table += more.reshape(table.shape)
        rows, weights, slopes = _interpolation(x, grid, sides)
        ctx.save_for_backward(omega, even, odd, versines, sines, table, rows, weights, slopes)
        ctx.grid = grid
        return bags(rows.flatten(2), weights.flatten(2), table)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        omega, even, odd, versines, sines, table, rows, weights, slopes = ctx.saved_tensors
        grid: Grid = ctx.grid
        sides, samples, outputs = even.shape[:3]
        groups = len(omega)
        by_x = None
        if ctx.needs_input_grad[0]:
            along = bags(rows, slopes, table).mul_(gradient[:, :, None])
            by_x = along.sum(-1) / grid.spacing
        rows, weights = rows.flatten(2), weights.flatten(2)  # all inputs of a point at once
        by_table = scattered(rows, weights, gradient.permute(2, 0, 1), len(table)).mT
        by_more = None
        if ctx.needs_input_grad[4]:
            by_more = by_table.view(sides, omega.shape[1], grid.size, samples, outputs)
        by_table = _as_columns(by_table, (sides, omega.shape[1], grid.size, samples), groups)
        by_even = _as_weights(versines.mT @ by_table, samples).neg_()
        by_odd = _as_weights(sines.mT @ by_table, samples)
        by_omega = None
        if ctx.needs_input_grad[1]:
            # Of cos ω x - 1 and sin ω x: -sin and cos = 1 - versine, times x.
            by_sine = by_table @ _columns(odd, groups).mT
            by_phase = by_sine - by_sine.mul(versines)
            by_phase -= (by_table @ _columns(even, groups).mT).mul_(sines)
            by_omega = (by_phase * grid.nodes()[:, None, :, :, None]).sum((0, 3))
        return by_x, by_omega, by_even, by_odd, by_more, None


def _waves(grid: Grid, omega: Tensor) -> tuple[Tensor, Tensor]:
    """1 - cos and sin of every wave at every node, [C, G, P, K, R]."""
    half = grid.nodes()[:, None, :, :, None] * (omega[:, :, None] / 2)
    sines = torch.sin(half)
    waves = half.cos_().mul_(sines).mul_(2)  # sin = 2 sin(½) cos(½)
    return sines.mul_(sines).mul_(2), waves  # 1 - cos = 2 sin²(½)


def _interpolation(x: Tensor, grid: Grid, sides: int) -> tuple[Tensor, Tensor, Tensor]:
    """Rows of the tables about each point, their weights and the slopes of those, [S, N, P, 6]."""
    samples, _, inputs = x.shape
    x = x.contiguous()
    found = places(x / grid.spacing, NODES)
    side = (x < 0).long() if sides == 2 else torch.zeros((), dtype=torch.long)
    columns = torch.arange(inputs)
    base = found.first - grid.first[side, columns] + (side * inputs + columns) * grid.size
    base = base * samples + torch.arange(samples)[:, None, None]
    rows = base[..., None] + samples * torch.arange(NODES)
    return rows, found.weights(), found.slopes()


def _columns(weights: Float[Tensor, "C S D P R"], groups: int) -> Float[Tensor, "C G P R W"]:
    """Weights of all samples as columns; outputs that share frequencies too."""
    split = weights.unflatten(2, (groups, -1))  # C S G D' P R
    columns: Tensor = split.permute(0, 2, 4, 5, 1, 3).flatten(-2)
    return columns


def _as_weights(columns: Tensor, samples: int) -> Tensor:
    """What `_columns` took apart, together again."""
    split = columns.unflatten(-1, (samples, -1))  # C G P R S D'
    weights: Tensor = split.permute(0, 4, 1, 5, 2, 3).flatten(2, 3)
    return weights


def _as_rows(table: Float[Tensor, "C G P K W"], samples: int, outputs: int) -> Tensor:
    """One row of D per side, input, node and sample."""
    split = table.unflatten(-1, (samples, -1))  # C G P K S D'
    rows: Tensor = split.permute(0, 2, 3, 4, 1, 5).reshape(-1, outputs)
    return rows


def _as_columns(rows: Tensor, sizes: tuple[int, int, int, int], groups: int) -> Tensor:
    """What `_as_rows` put together, apart again."""
    split = rows.view(*sizes, groups, -1)  # C P K S G D'
    return split.permute(0, 4, 1, 2, 3, 5).flatten(-2)
