"""Sums of products of bumps, each bump from a table over one input, none of them kept.

    f_sd(x) = Σ_j c_sdj Π_p T_p(x_p)_{dj},   T_p(x) ≈ Σ_i w_i(x) T_p[node_i]

Bumps exist for a piece of the samples, or of their points, at a time, and again in the backward
pass. Over one input the sum itself is a table, and there is no product to be made.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.functional import embedding_bag

from deeplfm.responses.fused.interpolation import Transposed, interpolate, places

_NODES = 4  # of an interpolation
_PIECE = 2**19  # bumps of one input and output that exist at a time


class Axis(NamedTuple):
    """Where the rows of a table over one input lie."""

    first: float
    spacing: float


def bump_grid_sum(
    x: Float[Tensor, "S3 N P"],
    coefficients: Float[Tensor, "S D J"],
    tables: Sequence[Float[Tensor, "G _ J"]],
    axes: Sequence[Axis],
) -> Float[Tensor, "S N D"]:
    """f at `x`; G is 1 where all outputs have the same bumps, else D."""
    samples, outputs, _ = coefficients.shape
    batch, groups = len(x), len(tables[0])
    split = coefficients.reshape(batch, samples // batch, groups, outputs // groups, -1)
    if len(tables) == 1:
        return _one_input(x, split, tables[0], axes[0])
    columns = split.permute(2, 0, 4, 1, 3).flatten(-2)  # G batch J columns
    total: Tensor = _BumpGridSum.apply(x, columns, axes, *tables)
    total = total.unflatten(-1, (samples // batch, outputs // groups))  # G batch N S' D'
    values: Tensor = total.permute(1, 3, 2, 0, 4).reshape(samples, -1, outputs)
    return values


def _one_input(
    x: Float[Tensor, "B N 1"],
    coefficients: Float[Tensor, "B S2 G D2 J"],
    table: Float[Tensor, "G K J"],
    axis: Axis,
) -> Float[Tensor, "S N D"]:
    """The table of the sum, then its interpolation."""
    sums = torch.einsum("gkj,bsgdj->kbsgd", table, coefficients)
    position = (x[..., 0] - axis.first) / axis.spacing
    values = interpolate(sums.flatten(2), position, _NODES)
    split: Tensor = values.unflatten(-1, (coefficients.shape[1], -1)).transpose(1, 2)
    return split.flatten(0, 1)


class _BumpGridSum(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, columns: Tensor, axes: Sequence[Axis], *tables: Tensor
    ) -> Tensor:
        ctx.save_for_backward(x, columns, *tables)
        ctx.axes = axes
        groups, batch, width, count = columns.shape
        total = x.new_empty(groups, batch, x.shape[1], count)
        for piece in _pieces(x, axes, width):
            for g in range(groups):
                product = piece.bumps(0, tables[0][g])
                for p in range(1, len(axes)):
                    product.mul_(piece.bumps(p, tables[p][g]))
                by_sample = product.view(piece.samples, -1, width)
                total[g, piece.b, piece.n] = by_sample @ columns[g, piece.b]
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Any, ...]:
        # Detached: a lookup of what wants no gradient takes the shorter way.
        x, columns, *tables = (saved.detach() for saved in ctx.saved_tensors)
        by_columns = torch.zeros_like(columns)
        by_tables = [torch.zeros_like(table) for table in tables]
        by_x = torch.zeros_like(x) if ctx.needs_input_grad[0] else None
        last = len(tables) - 1
        for piece in _pieces(x, ctx.axes, columns.shape[2]):
            nodes = [piece.transposed(p, table.shape[1]) for p, table in enumerate(tables)]
            slopes = piece.slopes() if by_x is not None else []
            for g, own in enumerate(gradient):
                bumps = [piece.bumps(p, table[g]) for p, table in enumerate(tables)]
                later = _later(bumps)
                product = (bumps[0] * later[0]).view(piece.samples, -1, columns.shape[2])
                along = own[piece.b, piece.n]  # samples n columns
                by_columns[g, piece.b] += product.mT @ along
                before = _outer(along, columns[g, piece.b])
                for p, table in enumerate(tables):
                    by_bump = (
                        before
                        if p == last
                        else torch.mul(before, later[p].view_as(before), out=product)
                    )
                    by_bump = by_bump.view(-1, columns.shape[2])
                    by_tables[p][g] += nodes[p](by_bump)
                    if by_x is not None:
                        steep = embedding_bag(
                            piece.rows[p], table[g], per_sample_weights=slopes[p], mode="sum"
                        )
                        by_x[piece.b, piece.n, p] += (
                            steep.mul_(by_bump).sum(-1).view(along.shape[:2])
                        )
                    if p < last:
                        before.mul_(bumps[p].view_as(before))
        return by_x, by_columns, None, *by_tables


def _outer(
    along: Float[Tensor, "B N C"], columns: Float[Tensor, "B J C"]
) -> Float[Tensor, "B N J"]:
    """Σ_c along · column."""
    return along * columns.mT if along.shape[-1] == 1 else along @ columns.mT


class _Piece:
    """Some samples, or some points of one: bumps are [points, J]."""

    def __init__(self, x: Tensor, axes: Sequence[Axis], b: slice, n: slice) -> None:
        self.b, self.n, self.axes = b, n, axes
        own = x[b, n]
        self.samples = len(own)
        columns = zip(own.flatten(0, 1).unbind(-1), axes, strict=True)
        self.places = [places((x - axis.first) / axis.spacing, _NODES) for x, axis in columns]
        self.rows = [found.rows() for found in self.places]
        self.weights = [found.weights() for found in self.places]

    def bumps(self, p: int, table: Tensor) -> Tensor:
        return embedding_bag(self.rows[p], table, per_sample_weights=self.weights[p], mode="sum")

    def slopes(self) -> list[Tensor]:
        """Weights of the derivatives in x."""
        both = zip(self.places, self.axes, strict=True)
        return [found.slopes().div_(axis.spacing) for found, axis in both]

    def transposed(self, p: int, size: int) -> Transposed:
        return Transposed(self.rows[p], self.weights[p], size)


def _pieces(x: Tensor, axes: Sequence[Axis], width: int) -> Iterator[_Piece]:
    """Parts of equal size: several samples, or one in parts where it is too large."""
    batch, points, _ = x.shape
    parts = math.ceil(points * width / _PIECE)
    rows = math.ceil(points / parts)
    most = max(1, _PIECE // max(1, rows * width))
    together = math.ceil(batch / math.ceil(batch / most))
    for b in range(0, batch, together):
        for n in range(0, points, rows):
            yield _Piece(x, axes, slice(b, b + together), slice(n, n + rows))


def _later(bumps: list[Tensor]) -> list[Tensor]:
    """The product of the bumps of all inputs after each, but the last, which has none after it."""
    found = [bumps[-1]]
    for bump in bumps[-2:0:-1]:
        found.insert(0, bump * found[0])
    return found
