"""Sums of products of bumps, each bump a polynomial along its input, none of them kept.

    f_sd(x) = Σ_j c_sdj Π_p F_p(x_p)_{dj},   F_p(x)_{dj} = Σ_m T_m(u) C_pdmj,   u in (-1, 1)

Along a stretch of a few lengthscales a response is a polynomial of low degree, so all bumps of all
points are matrix products with few columns. They exist for a piece of the points at a time, in
buffers that are used again, and again in the backward pass.
"""

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from deeplfm.responses.fused.pieces import pieces

MOST = 512  # coefficients of a polynomial
_PIECE = 2**18  # bumps of one input and output that exist at a time
_MARGIN = 1.02  # of the stretch beyond the points: slopes are awkward at its very ends


class Stretch(NamedTuple):
    """Where a polynomial of `size` coefficients stands for a bump."""

    middle: float
    half: float
    size: int

    def nodes(self) -> Float[Tensor, " r"]:
        """Where the bump must be known, float64."""
        angles = math.pi * (torch.arange(self.size, dtype=torch.float64) + 0.5) / self.size
        return self.middle + self.half * torch.cos(angles)


def stretch(low: float, high: float, scale: float, tolerance: float) -> Stretch | None:
    """From `low` to `high`, for bumps that change within `scale`; none where it is too long."""
    half = max(_MARGIN * (high - low) / 2, 1e-3 * scale)
    width = half / scale
    if not width < MOST:
        return None
    count = coefficients_needed(math.ceil(4 * width) / 4, tolerance)
    return None if count is None else Stretch((low + high) / 2, half, count)


@lru_cache(maxsize=1024)
def coefficients_needed(width: float, tolerance: float) -> int | None:
    """For a bump of scale 1 on (-width, width): from its growth on Bernstein ellipses.

    The error is at most 4M ρ^{-r} / (ρ - 1), with |e^{-z²/2}| ≤ M = e^{b²/2} on an ellipse of
    half-height b = width (ρ - 1/ρ)/2; an oscillating pole of two radians per scale adds e^{2b}.
    """
    rho = 1 + np.geomspace(1e-2, 1e2, 200)
    height = width * (rho - 1 / rho) / 2
    growth = height**2 / 2 + 2 * np.minimum(height, 1) + np.log(4 / (rho - 1))
    counts = np.arange(4, MOST + 1)
    errors = (growth[:, None] - counts * np.log(rho)[:, None]).min(0)
    enough = np.flatnonzero(errors <= math.log(tolerance))
    return int(counts[enough[0]]) if len(enough) else None


def polynomials(values: Float[Tensor, "G r J"]) -> Float[Tensor, "G r J"]:
    """Coefficients C of bumps whose values at the nodes are known."""
    return _transform(values.shape[1]).to(values) @ values


@lru_cache(maxsize=64)
def _transform(count: int) -> Tensor:
    angles = math.pi * (torch.arange(count, dtype=torch.float64) + 0.5) / count
    matrix = torch.cos(torch.arange(count)[:, None] * angles) * (2 / count)
    matrix[0] /= 2
    return matrix


def polynomial_sum(
    x: Float[Tensor, "S3 N P"],
    coefficients: Float[Tensor, "S D J"],
    bumps: Sequence[Float[Tensor, "G _ J"]],
    stretches: Sequence[Stretch],
) -> Float[Tensor, "S N D"]:
    """f at `x`; G is 1 where all outputs have the same bumps, else D."""
    samples, outputs, _ = coefficients.shape
    batch, groups = len(x), len(bumps[0])
    split = coefficients.reshape(batch, samples // batch, groups, outputs // groups, -1)
    columns = split.permute(2, 0, 4, 1, 3).flatten(-2)  # G batch J columns
    total: Tensor = _PolynomialSum.apply(x, columns, stretches, *bumps)
    total = total.unflatten(-1, (samples // batch, outputs // groups))  # G batch N S' D'
    values: Tensor = total.permute(1, 3, 2, 0, 4).reshape(samples, -1, outputs)
    return values


class _PolynomialSum(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, columns: Tensor, stretches: Sequence[Stretch], *bumps: Tensor
    ) -> Tensor:
        ctx.save_for_backward(x, columns, *bumps)
        ctx.stretches = stretches
        groups, batch, width, count = columns.shape
        total = x.new_empty(groups, batch, x.shape[1], count)
        for piece in _pieces(x, stretches, width):
            for g in range(groups):
                product = torch.mm(piece.waves[0], bumps[0][g], out=piece.buffer(0))
                for p in range(1, len(bumps)):
                    product.mul_(torch.mm(piece.waves[p], bumps[p][g], out=piece.buffer(1)))
                by_sample = product.view(piece.samples, -1, width)
                total[g, piece.b, piece.n] = by_sample @ columns[g, piece.b]
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Any, ...]:
        x, columns, *bumps = ctx.saved_tensors
        by_columns = torch.zeros_like(columns)
        by_bumps = [torch.zeros_like(one) for one in bumps]
        by_x = torch.zeros_like(x) if ctx.needs_input_grad[0] else None
        for piece in _pieces(x, ctx.stretches, columns.shape[2]):
            slopes = piece.slopes() if by_x is not None else []
            for g, own in enumerate(gradient):
                along = own[piece.b, piece.n]  # samples n columns
                product = _Product(piece, [one[g] for one in bumps])
                by_sample = product.whole().view(piece.samples, -1, columns.shape[2])
                by_columns[g, piece.b] += by_sample.mT @ along
                for p, by_factor in product.gradients(along, columns[g, piece.b]):
                    by_bumps[p][g].addmm_(piece.waves[p].mT, by_factor)
                    if by_x is not None:
                        steep = (by_factor @ bumps[p][g].mT).mul_(slopes[p]).sum(-1)
                        by_x[piece.b, piece.n, p] += steep.view(along.shape[:2])
        return by_x, by_columns, None, *by_bumps


class _Product:
    """Π_p F_p of one output at the points of a piece, and what each factor has for a gradient."""

    def __init__(self, piece: "_Piece", bumps: list[Tensor]) -> None:
        self.piece, self.count = piece, len(bumps)
        self.factors = [
            torch.mm(piece.waves[p], bump, out=piece.buffer(p)) for p, bump in enumerate(bumps)
        ]
        # The product of all factors after each.
        self.later = [self.factors[-1]]
        for p in range(self.count - 2, 0, -1):
            into = piece.buffer(self.count + 2 + p)
            self.later.insert(0, torch.mul(self.factors[p], self.later[0], out=into))

    def whole(self) -> Tensor:
        if self.count == 1:
            return self.factors[0]
        return torch.mul(self.factors[0], self.later[0], out=self.piece.buffer(self.count))

    def gradients(self, along: Tensor, columns: Tensor) -> Iterator[tuple[int, Tensor]]:
        """∂/∂F_p of Σ along · f, one after the other in the same buffer."""
        before = self.piece.buffer(self.count + 1)
        view = before.view(len(along), -1, before.shape[-1])
        if along.shape[-1] == 1:
            torch.mul(along, columns.mT, out=view)
        else:
            torch.bmm(along, columns.mT, out=view)
        for p in range(self.count - 1):
            yield p, torch.mul(before, self.later[p], out=self.piece.buffer(self.count))
            before.mul_(self.factors[p])
        yield self.count - 1, before


class _Piece:
    """Some samples, or some points of one: T_m(u) [points, r] of each input, and buffers."""

    def __init__(
        self, x: Tensor, stretches: Sequence[Stretch], at: tuple[slice, slice], room: list[Tensor]
    ) -> None:
        self.b, self.n = at
        own = x[self.b, self.n]
        self.samples, self.room, self.stretches = len(own), room, stretches
        columns = zip(own.flatten(0, 1).unbind(-1), stretches, strict=True)
        self.angles = [torch.acos((u - one.middle) / one.half) for u, one in columns]
        self.waves = [
            torch.cos(angle[:, None] * _orders(one.size, x))
            for angle, one in zip(self.angles, stretches, strict=True)
        ]

    def buffer(self, k: int) -> Tensor:
        """The k-th, [points, J]."""
        return self.room[k][: len(self.angles[0])]

    def slopes(self) -> list[Tensor]:
        """dT_m/dx = m sin(mθ) / sin θ / half."""
        found = []
        for angle, one in zip(self.angles, self.stretches, strict=True):
            orders = _orders(one.size, angle)
            sines = torch.sin(angle[:, None] * orders).mul_(orders)
            found.append(sines.div_((torch.sin(angle) * one.half)[:, None]))
        return found


def _orders(count: int, like: Tensor) -> Tensor:
    return torch.arange(count, dtype=like.dtype)


def _pieces(x: Tensor, stretches: Sequence[Stretch], width: int) -> Iterator[_Piece]:
    slices, rows = pieces(x.shape[0], x.shape[1], width, _PIECE)
    room = [x.new_empty(rows, width) for _ in range(2 * x.shape[2] + 2)]
    for at in slices:
        yield _Piece(x, stretches, at, room)
