"""Sums of bumps over one input from a table of the sum, for stretches too long for polynomials.

    f_sd(x) = Σ_j c_sdj h_d(x - z_j),   one table of h over lags makes those over x, of all centers

Six-point Lagrange over lags, on a table made in float64, is good to rounding in float32; over
points four nodes do (1e-5), since there the sum of all bumps is interpolated, not each alone.
"""

import math
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from deeplfm.greens_functions import GreensFunction
from deeplfm.sums.torch.bump_lags import LAGS, at_lags, ends, scales
from deeplfm.sums.torch.interpolation import Places, interpolate, places

_POINTS = 4  # nodes of an interpolation over points
# Nodes over points per lengthscale, or per two radians of an oscillating pole where that is less;
# and nodes over lags for each of them.
_PER_SCALE = 10
_LAGS_PER_POINT = {torch.float32: 1, torch.float64: 3}
_LARGEST = 2**24  # entries of a table
_WINDOWS = 2**20  # entries of windows at a time


class BumpTable(NamedTuple):
    """All bumps over a grid, [D, K, J] with J = Q·M; D is 1 for G = δ."""

    values: Tensor
    first: float
    spacing: float

    def sum(
        self, x: Float[Tensor, "S3 N 1"], coefficients: Float[Tensor, "S D J"]
    ) -> Float[Tensor, "S N D"]:
        """The table of the sum, then its interpolation."""
        samples, outputs, _ = coefficients.shape
        batch, groups = len(x), len(self.values)
        split = coefficients.reshape(batch, samples // batch, groups, outputs // groups, -1)
        sums = torch.einsum("gkj,bsgdj->kbsgd", self.values, split)
        position = (x[..., 0] - self.first) / self.spacing
        values = interpolate(sums.flatten(2), position, _POINTS)
        by_sample: Tensor = values.unflatten(-1, (samples // batch, outputs)).transpose(1, 2)
        return by_sample.flatten(0, 1)


def bump_table(
    g: GreensFunction,
    x: Float[Tensor, "S N 1"],
    centers: Float[Tensor, "Q M 1"],
    lengthscale: Float[Tensor, "Q 1"],
) -> BumpTable | None:
    """A table that covers `x`, or none where there is little to gain."""
    if 0 in centers.shape or 0 in x.shape:
        return None
    limits = torch.cat([*ends(x), *ends(centers), scales(g, lengthscale)]).double()
    if not bool(limits.isfinite().all()):
        return None
    low, high, z_low, z_high, scale = limits.tolist()
    spacing, ratio = scale / _PER_SCALE, _LAGS_PER_POINT[x.dtype]
    size, fine = math.ceil((high - low) / spacing) + _POINTS + 1, spacing / ratio
    count = (size - 1) * ratio + math.ceil((z_high - z_low) / fine) + 2 * LAGS
    pairs = x.shape[0] * x.shape[1] * centers.shape[1]
    if 8 * count > pairs or size * centers.numel() > _LARGEST:
        return None
    first = low - _POINTS / 2 * spacing
    nearest = first - z_high - LAGS * fine
    lags = nearest + fine * torch.arange(count, dtype=torch.float64)
    forces = []
    for ell, z in zip(lengthscale, centers[..., 0], strict=True):
        (table,) = at_lags(g, lags[None], ell, x.dtype)
        forces.append(_Windows.apply(table, (first - nearest - z) / fine, size, ratio))
    return BumpTable(torch.cat(forces, dim=-1), first, spacing)


class _Windows(torch.autograd.Function):
    """Stretches of one table, each begun at its own place between two nodes: [D, K, M].

    Nodes over points are `ratio` nodes over lags apart, so a center has one set of weights.
    """

    @staticmethod
    def forward(ctx: Any, table: Tensor, position: Tensor, size: int, ratio: int) -> Tensor:
        found = places(position, LAGS)
        ctx.save_for_backward(table, found.first, found.powers)
        ctx.size, ctx.ratio = size, ratio
        weights, windows = found.weights()[:, None], _windows(table, size, ratio)
        values = table.new_empty(table.shape[1], size, len(position))
        for d, own in enumerate(windows):
            for m in _parts(len(position), size):
                values[d, :, m] = (weights[m] @ own[found.rows()[m]])[:, 0].mT
        return values

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None, None]:
        table, *parts = ctx.saved_tensors
        found = Places(*parts)
        weights, slopes, rows = found.weights(), found.slopes(), found.rows()
        by_table, by_position = torch.zeros_like(table.mT), torch.zeros_like(slopes[:, 0])
        steps = ctx.ratio * torch.arange(ctx.size)
        for d, own in enumerate(_windows(table, ctx.size, ctx.ratio)):
            for m in _parts(len(rows), ctx.size):
                along = gradient[d, :, m].mT  # M K
                by_weights = (own[rows[m]] @ along[..., None])[..., 0]
                by_position[m] += (by_weights * slopes[m]).sum(-1)
                places_of = (rows[m][..., None] + steps).flatten()
                by_table[d].scatter_add_(
                    0, places_of, (weights[m][..., None] * along[:, None]).flatten()
                )
        return by_table.mT, by_position, None, None


def _windows(table: Float[Tensor, "L D"], size: int, ratio: int) -> Float[Tensor, "D L2 K"]:
    """Every stretch of `size` nodes, `ratio` apart; nothing is copied but the transpose."""
    wide = table.mT.contiguous()
    starts = len(table) - (size - 1) * ratio
    return wide.as_strided((len(wide), starts, size), (len(table), 1, ratio))


def _parts(count: int, size: int) -> list[slice]:
    some = max(1, _WINDOWS // (LAGS * size))
    return [slice(m, m + some) for m in range(0, count, some)]
