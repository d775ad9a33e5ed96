"""Sums of products of bumps, each bump a polynomial along its input, none of them kept.

    f_sd(x) = Σ_j c_sdj Π_p F_p(x_p)_{dj},   F_p(x)_{dj} = Σ_m T_m(u) C_pdmj,   u in (-1, 1)

Along a stretch of a few lengthscales a response is a polynomial of low degree, so all bumps of all
points are matrix products with few columns. They exist for a chunk of the points at a time, in
buffers that are used again, and again in the backward pass.
"""

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from deeplfm.greens_functions import FixedDynamics
from deeplfm.sums.torch.bump_stretches import Stretch, bumps_at_nodes
from deeplfm.sums.torch.chunks import chunks, room

_CHUNK = 2**20  # bumps of one input that exist at a time


def _polynomials(values: Float[Tensor, "*G r J"]) -> Float[Tensor, "*G r J"]:
    """Coefficients C of what has these values at the nodes."""
    return _transform(values.shape[-2]).to(values) @ values


@lru_cache(maxsize=64)
def _transform(count: int) -> Tensor:
    angles = math.pi * (torch.arange(count, dtype=torch.float64) + 0.5) / count
    matrix = torch.cos(torch.arange(count)[:, None] * angles) * (2 / count)
    matrix[0] /= 2
    return matrix


def polynomial_sum(
    dynamics: FixedDynamics,
    x: Float[Tensor, "#S N P"],
    centers: Float[Tensor, "Q M P"],
    lengthscale: Float[Tensor, "Q P"],
    coefficients: Float[Tensor, "S D Q M"],
) -> Float[Tensor, "S N D"] | None:
    """f at `x`; none where a stretch is too long for polynomials, or nothing is to be gained."""
    bumps = bumps_at_nodes(dynamics, x, centers, lengthscale)
    if bumps is None:
        return None
    return sum_of_polynomials(x, coefficients.flatten(2), bumps.values, bumps.stretches)


def sum_of_polynomials(
    x: Float[Tensor, "S3 N P"],
    coefficients: Float[Tensor, "S D J"],
    values: Sequence[Float[Tensor, "G _ J"]],
    stretches: Sequence[Stretch],
) -> Float[Tensor, "S N D"]:
    """f at `x`, from the bumps at the nodes of each input, float64.

    G is 1 where all outputs have the same bumps, else D.
    """
    samples, outputs, _ = coefficients.shape
    batch, groups = len(x), len(values[0])
    split = coefficients.reshape(batch, samples // batch, groups, outputs // groups, -1)
    columns = split.permute(2, 0, 4, 1, 3).flatten(-2)  # G batch J columns
    if len(values) == 1:  # the sum of polynomials is a polynomial
        sums = _polynomials(values[0][:, None] @ columns.to(values[0])).to(x.dtype)
        total: Tensor = _Polynomial.apply(x, sums, stretches)
    else:
        bumps = [_polynomials(one).to(x.dtype).transpose(0, 1).flatten(1) for one in values]
        total = _PolynomialSum.apply(x, columns, stretches, *bumps)
    total = total.unflatten(-1, (samples // batch, outputs // groups))  # G batch N S' D'
    by_sample: Tensor = total.permute(1, 3, 2, 0, 4).reshape(samples, -1, outputs)
    return by_sample


class _Polynomial(torch.autograd.Function):
    """Σ_m T_m(u) A_m over one input, A [G, batch, r, columns]."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, sums: Tensor, stretches: Sequence[Stretch]) -> Tensor:
        ctx.save_for_backward(x, sums)
        ctx.stretches = stretches
        total = x.new_empty(*sums.shape[:2], x.shape[1], sums.shape[-1])
        for chunk in _chunks(x, stretches, sums.shape[2], 0):
            (waves,) = chunk.waves()
            total[:, chunk.b, chunk.n] = chunk.by_sample(waves) @ sums[:, chunk.b]
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor, None]:
        x, sums = ctx.saved_tensors
        by_sums = torch.zeros_like(sums)
        by_x = torch.empty_like(x) if ctx.needs_input_grad[0] else None
        for chunk in _chunks(x, ctx.stretches, sums.shape[2], 0):
            along, (waves,) = gradient[:, chunk.b, chunk.n], chunk.waves()
            by_sums[:, chunk.b] += chunk.by_sample(waves).mT @ along
            if by_x is not None:
                by_waves = (along @ sums[:, chunk.b].mT).sum(0)
                by_x[chunk.b, chunk.n] = chunk.slopes([by_waves])
        return by_x, by_sums, None


class _PolynomialSum(torch.autograd.Function):
    """Over several inputs: Σ_j c_j Π_p F_pj, bumps of all outputs side by side, [r, G·J]."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, columns: Tensor, stretches: Sequence[Stretch], *bumps: Tensor
    ) -> Tensor:
        ctx.save_for_backward(x, columns, *bumps)
        ctx.stretches = stretches
        groups, batch, _, count = columns.shape
        total = x.new_empty(groups, batch, x.shape[1], count)
        for chunk in _chunks(x, stretches, bumps[0].shape[1], 2):
            own = columns[:, chunk.b]
            waves, (product, other) = chunk.waves(), chunk.buffers
            torch.mm(waves[0], bumps[0], out=product)
            for p in range(1, len(bumps)):
                product.mul_(torch.mm(waves[p], bumps[p], out=other))
            by_output = chunk.by_output(product, groups)
            if count == 1:
                by_output.mul_(own[..., 0].transpose(0, 1)[:, None])
                total[:, chunk.b, chunk.n, 0] = by_output.sum(-1).permute(2, 0, 1)
            else:
                total[:, chunk.b, chunk.n] = by_output.permute(2, 0, 1, 3) @ own
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Any, ...]:
        """The weights of a single column leave the long sums for the short ones."""
        x, columns, *bumps = ctx.saved_tensors
        groups, _, _, count = columns.shape
        by_columns = torch.zeros_like(columns)
        by_bumps = [torch.zeros_like(one) for one in bumps]
        by_x = torch.empty_like(x) if ctx.needs_input_grad[0] else None
        for chunk in _chunks(x, ctx.stretches, bumps[0].shape[1], 2 * len(bumps) - 1):
            along, own = gradient[:, chunk.b, chunk.n], columns[:, chunk.b]
            waves, by_waves = chunk.waves(), []
            factors = [
                torch.mm(waves[p], bump, out=chunk.buffers[p]) for p, bump in enumerate(bumps)
            ]
            later = _later(factors, chunk.buffers)
            if count == 1:
                weights = along.permute(1, 2, 0, 3)  # samples n G 1
                by_bump: Tensor | int = own[..., 0].transpose(0, 1).flatten(1)[:, None]
            else:
                whole = chunk.by_output(factors[0] * later[0], groups)
                by_columns[:, chunk.b] += whole.permute(2, 0, 3, 1) @ along
                weights, by_bump = (along @ own.mT).permute(1, 2, 0, 3), 1
            for weighted in (factors[0], later[0]):
                chunk.by_output(weighted, groups).mul_(weights)
            for p, others in enumerate(_all_but_one(factors, later, chunk.buffers)):
                others = chunk.by_sample(others)
                inner = chunk.by_sample(waves[p]).mT @ others  # samples r G·J
                by_bumps[p] += (inner * by_bump).sum(0)
                if count == 1 and p == 0:
                    by_own = (inner * bumps[0]).sum(1).view(len(inner), groups, -1)
                    by_columns[:, chunk.b] += by_own.transpose(0, 1)[..., None]
                if by_x is not None:
                    by_waves.append(others @ (bumps[p] * by_bump).mT)
            if by_x is not None:
                by_x[chunk.b, chunk.n] = chunk.slopes(by_waves)
        return by_x, by_columns, None, *by_bumps


def _later(factors: list[Tensor], buffers: list[Tensor]) -> list[Tensor]:
    """The product of all factors after each."""
    count = len(factors)
    later = [factors[-1]]
    for p in range(count - 2, 0, -1):
        later.insert(0, torch.mul(factors[p], later[0], out=buffers[count - 1 + p]))
    return later


def _all_but_one(
    factors: list[Tensor], later: list[Tensor], buffers: list[Tensor]
) -> Iterator[Tensor]:
    """Π_{q≠p} F_q for each p, the next one over the last."""
    before = factors[0]
    yield later[0]
    for p in range(1, len(factors) - 1):
        yield torch.mul(before, later[p], out=buffers[-1])
        before.mul_(factors[p])
    yield before


class _Grid(NamedTuple):
    """What all chunks share: θ with cos θ = u at all points [S, N, P], and orders m."""

    angles: Tensor
    half: Tensor  # P
    sizes: tuple[int, ...]
    rows: Tensor  # m of each input in a row of its own, zero where it is another's
    orders: Tensor  # of all inputs side by side


class _Chunk:
    """Some samples, or some points of one; T_m(u) = cos mθ along each input, and buffers."""

    def __init__(self, grid: _Grid, b: slice, n: slice, own: list[Tensor]) -> None:
        self.grid, self.b, self.n = grid, b, n
        self.angles = grid.angles[b, n]
        samples, count, inputs = self.angles.shape
        self.shape = (samples, count)
        self.phases, self.turned, *self.buffers = (one[: samples * count] for one in own)
        torch.mm(self.angles.reshape(-1, inputs), grid.rows, out=self.phases)

    def waves(self) -> Sequence[Tensor]:
        """T_m(u) [points, r] of each input."""
        return torch.split_with_sizes(torch.cos(self.phases, out=self.turned), self.grid.sizes, 1)

    def slopes(self, by_waves: list[Tensor]) -> Tensor:
        """The gradient in x from those in T_m: dT_m/dx = m sin mθ / sin θ / half."""
        steep = torch.sin(self.phases, out=self.turned).mul_(self.grid.orders)
        parts = [
            by.mul_(self.by_sample(own)).sum(-1)
            for by, own in zip(
                by_waves, torch.split_with_sizes(steep, self.grid.sizes, 1), strict=True
            )
        ]
        return torch.stack(parts, dim=-1).div_(torch.sin(self.angles).mul_(self.grid.half))

    def by_sample(self, values: Tensor) -> Tensor:
        """[points, columns] as [samples, n, columns]."""
        return values.view(*self.shape, -1)

    def by_output(self, values: Tensor, groups: int) -> Tensor:
        """[points, G·J] as [samples, n, G, J]."""
        return values.view(*self.shape, groups, -1)


@lru_cache(maxsize=64)
def _orders(sizes: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    orders: Tensor = torch.block_diag(*(torch.arange(size, dtype=dtype) for size in sizes))
    return orders


def _chunks(x: Tensor, stretches: Sequence[Stretch], width: int, buffers: int) -> Iterator[_Chunk]:
    middle, half, sizes = zip(*stretches, strict=True)
    of_inputs, orders = x.new_tensor((middle, half)), _orders(sizes, x.dtype)
    angles = torch.acos((x - of_inputs[0]) / of_inputs[1])
    grid = _Grid(angles, of_inputs[1], sizes, orders, orders.sum(0))
    slices, rows = chunks(x.shape[0], x.shape[1], max(width, len(grid.orders)), _CHUNK)
    own = room(x, rows, 2 * [len(grid.orders)] + buffers * [width])
    for b, n in slices:
        yield _Chunk(grid, b, n, own)
