"""Bump responses by interpolation, where there are far more of them than there are to know.

    bump(x; z) = h(x - z):  a table of h serves all centers; a table over x serves all points

With infinite memory a response depends on the lag alone, and is as smooth as its bump and its poles
are slow. Six-point Lagrange over lags, on tables made in float64, is good to rounding in float32;
over points four nodes do (1e-5), since there one sum of all bumps is interpolated, not each alone.
"""

import math
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.func import functional_call

from deeplfm.greens_functions import GreensFunction
from deeplfm.responses.fused.bump_grids import Axis
from deeplfm.responses.fused.first_order import first_order_bump
from deeplfm.responses.fused.interpolation import interpolate
from deeplfm.responses.systems import system_bump_response

_LAGS, _POINTS = 6, 4  # nodes of an interpolation
# Nodes per lengthscale, or per two radians of an oscillating pole where that is less.
_LAGS_PER_SCALE = {torch.float32: 8, torch.float64: 24}
_POINTS_PER_SCALE = 10
_BEFORE = 9.0  # lengthscales before a bump at which its response is 0


def scales(g: GreensFunction, lengthscale: Float[Tensor, "Q P"]) -> list[float]:
    """How far one may go along each input before a response changes: [P]."""
    shortest = lengthscale.detach().min(0).values
    if g.order > 0:
        turning = g.poles().detach().imag.abs().amax(-1).expand(-1, len(shortest)).amax(0)
        shortest = torch.minimum(shortest, 2 / turning.clamp(min=1e-30).to(shortest))
    return [float(scale) for scale in shortest]


def worthwhile(x: Float[Tensor, "S N P"], reach: list[float]) -> bool:
    """Whether points crowd so much that a table over each input has fewer rows than they are."""
    low, high = _ends(x)
    span = (high - low).tolist()
    if not all(math.isfinite(width) for width in span):
        return False
    nodes = [_POINTS_PER_SCALE * width / one for width, one in zip(span, reach, strict=True)]
    return 4 * max(nodes, default=0.0) < x.shape[0] * x.shape[1]


def many_lags(
    x: Float[Tensor, "S N P"], centers: Float[Tensor, "Q M P"], reach: list[float]
) -> bool:
    """Whether there are far more pairs of a point and a center than lags in a table."""
    (low, high), (z_low, z_high) = _ends(x), _ends(centers)
    span = ((high - z_low) - (low - z_high)).tolist()
    if not all(math.isfinite(width) for width in span):
        return False
    nodes = [_LAGS_PER_SCALE[x.dtype] * width / one for width, one in zip(span, reach, strict=True)]
    pairs = x.shape[0] * x.shape[1] * centers.shape[1]
    return 8 * max(nodes, default=0.0) < pairs


@final
@dataclass(frozen=True, eq=False)
class LagTables:
    """h over the lags of each input, one table per force; `first` and `spacing` are per input."""

    values: Float[Tensor, "Q P K D"]
    first: list[float]
    spacing: list[float]

    def bumps(
        self, x: Float[Tensor, " N"], centers: Float[Tensor, "Q M"], column: int
    ) -> Float[Tensor, "N D Q M"]:
        """Bumps of one input at every point."""
        forces = []
        for z, table in zip(centers, self.values[:, column], strict=True):
            lags = x[:, None] - z  # N M
            first, spacing = self.first[column], self.spacing[column]
            # Before the table a response is 0, and so are the first rows.
            position = ((lags.flatten() - first) / spacing).clamp(min=_LAGS // 2 - 1)
            values = interpolate(table[:, None], position[None], _LAGS)
            forces.append(values.view(*lags.shape, -1))
        return torch.stack(forces).permute(1, 3, 0, 2)


def lag_tables(
    g: GreensFunction,
    x: Float[Tensor, "S N P"],
    centers: Float[Tensor, "Q M P"],
    lengthscale: Float[Tensor, "Q P"],
    reach: list[float],
) -> LagTables:
    """For all pairs of a point, or of a node of a table over points, and a center."""
    beyond = torch.tensor(reach, dtype=torch.float64) * (1 + _POINTS / _POINTS_PER_SCALE)
    low, high = (part.double().cpu() for part in _ends(x))
    z_low, z_high = (part.double().cpu() for part in _ends(centers))
    spacing = torch.tensor(reach, dtype=torch.float64) / _LAGS_PER_SCALE[x.dtype]
    # Long before its bump a response is 0: e^{-40} of it at nine lengthscales.
    first = torch.maximum(low - z_high - beyond, -_BEFORE * lengthscale.detach().amax(0).double())
    count = max(2 * _LAGS, math.ceil(float(((high - z_low + beyond - first) / spacing).max())) + 1)
    nodes = first[:, None] + spacing[:, None] * torch.arange(count)  # P K
    values = [_exact(g, nodes.to(x.device), ell, x.dtype) for ell in lengthscale]
    return LagTables(torch.stack(values), first.tolist(), spacing.tolist())


@final
@dataclass(frozen=True, eq=False)
class PointTables:
    """All bumps over a grid of each input, [K, D, J] with J = Q·M."""

    values: list[Tensor]
    axes: list[Axis]


def point_tables(
    lags: LagTables, x: Float[Tensor, "S N P"], centers: Float[Tensor, "Q M P"], reach: list[float]
) -> PointTables:
    """Grids that cover `x`."""
    values, axes = [], []
    ends = zip(*(part.tolist() for part in _ends(x)), reach, strict=True)
    for p, (low, high, scale) in enumerate(ends):
        spacing = scale / _POINTS_PER_SCALE
        first = low - _POINTS / 2 * spacing
        count = math.ceil((high - low) / spacing) + _POINTS + 1
        nodes = first + spacing * torch.arange(count, dtype=x.dtype, device=x.device)
        values.append(lags.bumps(nodes, centers[..., p], p).flatten(2))
        axes.append(Axis(first, spacing))
    return PointTables(values, axes)


def _ends(x: Float[Tensor, "A B P"]) -> tuple[Tensor, Tensor]:
    return x.detach().amin((0, 1)), x.detach().amax((0, 1))


def _exact(
    g: GreensFunction,
    lags: Float[Tensor, "P K"],
    lengthscale: Float[Tensor, " P"],
    dtype: torch.dtype,
) -> Float[Tensor, "P K D"]:
    """h at the lags, from float64, with gradients to the parameters as they are."""
    if g.order == 1:
        (factor,) = g.factors
        ell, rate = lengthscale.double()[:, None, None], factor[0].double().mT[:, None]
        response = first_order_bump(lags[..., None], ell, rate)
        if g.normalised:
            response = rate * response
        return response.to(dtype)
    module = _Response(g)
    parts = [*module.named_parameters(), *module.named_buffers()]
    double = {name: value.double() for name, value in parts}
    whole: Tensor = functional_call(module, double, (lags, lengthscale.double()[:, None]))
    response = whole if whole.ndim == 3 else whole[None]  # D P K; G = δ has one output
    return response.permute(1, 2, 0).to(dtype)


class _Response(nn.Module):
    """A bump response as a function of parameters, whose type `functional_call` may replace."""

    def __init__(self, g: GreensFunction) -> None:
        super().__init__()
        self.g = g

    def forward(self, lags: Tensor, lengthscale: Tensor) -> Tensor:
        center = torch.zeros_like(lags)
        return system_bump_response(self.g, lags, center, lengthscale, "infinite", trailing=1)
