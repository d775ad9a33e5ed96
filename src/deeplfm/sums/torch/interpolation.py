"""Lagrange interpolation on a regular grid, as products with small fixed matrices.

f(x) ≈ Σ_i w_i(u) f(node_i),   u the place of x within its cell, w_i polynomials of it
"""

from functools import lru_cache
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.functional import embedding_bag

_SHORT = 8  # columns up to which nothing is sorted


class Places(NamedTuple):
    """Where points lie on a grid: the first node of each, counted from the grid's, and powers."""

    first: Int[Tensor, "*L"]
    powers: Float[Tensor, "*L C"]

    def rows(self) -> Int[Tensor, "*L C"]:
        """The nodes about each point."""
        return self.first[..., None] + torch.arange(self.powers.shape[-1], device=self.first.device)

    def weights(self) -> Float[Tensor, "*L C"]:
        return self.powers @ lagrange(self.powers.shape[-1], self._kind)[0]

    def slopes(self) -> Float[Tensor, "*L C"]:
        """Derivatives of the weights, per cell."""
        return self.powers @ lagrange(self.powers.shape[-1], self._kind)[1]

    @property
    def _kind(self) -> tuple[torch.dtype, torch.device]:
        return self.powers.dtype, self.powers.device


def places(position: Float[Tensor, "*L"], count: int) -> Places:
    """Places of points at `position`, in cells of the grid, with `count` nodes about each."""
    cell = position.floor()
    powers = position.new_empty(count, *position.shape)  # each power in one piece of memory
    powers[0].fill_(1)
    within = torch.sub(position, cell, out=powers[1]).sub_(0.5)
    for k in range(2, count):
        torch.mul(powers[k - 1], within, out=powers[k])
    return Places(cell.long().sub_(count // 2 - 1), powers.movedim(0, -1))


@lru_cache(maxsize=8)
def lagrange(count: int, kind: tuple[torch.dtype, torch.device]) -> tuple[Tensor, Tensor]:
    """Coefficients of the weights by power of the place, and those of their derivatives."""
    nodes = torch.arange(count, dtype=torch.float64) - (count - 1) / 2
    weights = torch.linalg.inv(nodes[None] ** torch.arange(count)[:, None]).mT
    slopes = torch.zeros_like(weights)
    slopes[:-1] = weights[1:] * torch.arange(1, count)[:, None]
    dtype, device = kind
    return weights.to(device, dtype), slopes.to(device, dtype)


def interpolate(
    table: Float[Tensor, "K B W"], position: Float[Tensor, "B N"], count: int
) -> Float[Tensor, "B N W"]:
    """One table for each batch of points, at positions in cells, with `count` nodes about each."""
    values: Tensor = _Interpolate.apply(table, position, count)
    return values


class _Interpolate(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, table: Tensor, position: Tensor, count: int) -> Tensor:
        found, batch = places(position, count), len(position)
        rows = found.rows()
        if batch > 1:
            rows.mul_(batch).add_(torch.arange(batch, device=rows.device)[:, None, None])
        flat = table.flatten(0, 1)
        ctx.save_for_backward(flat, rows, found.first, found.powers)
        ctx.shape = table.shape
        return bags(rows, found.weights(), flat)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        table, rows, *parts = ctx.saved_tensors
        found, shape = Places(*parts), rows.shape[:2]
        rows, gradient = rows.flatten(0, 1), gradient.flatten(0, 1)
        by_table = by_position = None
        if ctx.needs_input_grad[0]:
            weights = found.weights().flatten(0, 1)
            if gradient.shape[1] <= _SHORT:
                by_table = scattered(rows, weights, gradient.mT, len(table)).mT
            else:
                by_table = _sorted(rows, weights, gradient, len(table))
            by_table = by_table.view(ctx.shape)
        if ctx.needs_input_grad[1]:
            along = bags(rows, found.slopes().flatten(0, 1), table)
            by_position = along.mul_(gradient).sum(-1).view(shape)
        return by_table, by_position, None


def bags(
    rows: Int[Tensor, "*L C"], weights: Float[Tensor, "*L C"], table: Float[Tensor, "K W"]
) -> Float[Tensor, "*L W"]:
    """Weighted sums of rows of a table."""
    flat, shares = (part.reshape(-1, part.shape[-1]) for part in (rows, weights))
    sums: Tensor = embedding_bag(flat, table, per_sample_weights=shares, mode="sum")
    return sums.view(*rows.shape[:-1], -1)


def scattered(
    rows: Int[Tensor, "*L N C"],
    weights: Float[Tensor, "*L N C"],
    columns: Float[Tensor, "W *L2 N"],
    size: int,
) -> Float[Tensor, "W K"]:
    """The transposed interpolation, what points add to the nodes of a table, for few columns."""
    count = rows.shape[-1]
    wide = columns.contiguous().repeat_interleave(count, -1)  # loops over `count` would be short
    parts = (weights.flatten(-2) * wide).flatten(1)
    table = columns.new_zeros(len(columns), size)
    return table.scatter_add_(1, rows.flatten().expand_as(parts), parts)


def _sorted(
    rows: Int[Tensor, "L C"], weights: Float[Tensor, "L C"], values: Float[Tensor, "L W"], size: int
) -> Float[Tensor, "K W"]:
    """The same for many columns: by node, so that rows are read and never added to."""
    flat = rows.flatten()
    order, counts = torch.argsort(flat), torch.bincount(flat, minlength=size)
    return embedding_bag(
        order.div(rows.shape[1], rounding_mode="floor"),
        values,
        counts.cumsum(0) - counts,
        per_sample_weights=weights.flatten().index_select(0, order),
        mode="sum",
    )
