"""Tables of bump responses, where there are far more of them than there are to know.

    bump(x; z) = h(x - z):  one table of h over lags makes those over x, of all centers

With infinite memory a response depends on the lag alone, and is as smooth as its bump and its poles
are slow. Six-point Lagrange over lags, on a table made in float64, is good to rounding in float32;
over points four nodes do (1e-5), since there one sum of all bumps is interpolated, not each alone.
"""

from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.func import functional_call

from deeplfm.greens_functions import GreensFunction
from deeplfm.responses.fused.bump_grids import Axis
from deeplfm.responses.fused.bump_polynomials import Stretch, polynomials, stretch
from deeplfm.responses.fused.first_order import first_order_bump
from deeplfm.responses.fused.interpolation import Places, interpolate, places
from deeplfm.responses.systems import system_bump_response

_LAGS, _POINTS = 6, 4  # nodes of an interpolation
# Nodes over points per lengthscale, or per two radians of an oscillating pole where that is less;
# and nodes over lags for each of them.
_PER_SCALE = 10
_LAGS_PER_POINT = {torch.float32: 1, torch.float64: 3}
_TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-11}  # of polynomials, relative to a bump
_OSCILLATING = 20  # how much longer a bump takes with complex poles
_LARGEST = 2**24  # entries of the tables of one layer
_WINDOWS = 2**20  # entries of windows at a time


class Polynomials(NamedTuple):
    """All bumps along each input as polynomials, [D, r, J] with J = Q·M; D is 1 for G = δ."""

    bumps: list[Tensor]
    stretches: list[Stretch]


def polynomials_of(
    g: GreensFunction,
    x: Float[Tensor, "S N P"],
    centers: Float[Tensor, "Q M P"],
    lengthscale: Float[Tensor, "Q P"],
) -> Polynomials | None:
    """Polynomials along the stretches of `x`, or none where it is too long for them."""
    ends = torch.stack([*_ends(x), _scales(g, lengthscale)]).double()
    if 0 in centers.shape or not bool(ends.isfinite().all()):
        return None
    columns = zip(*(row.tolist() for row in ends), strict=True)
    found = [stretch(low, high, scale, _TOLERANCE[x.dtype]) for low, high, scale in columns]
    stretches = [one for one in found if one is not None]
    if len(stretches) < len(found):
        return None
    count = sum(one.size for one in stretches) * (1 if g.order < 2 else _OSCILLATING)
    if 2 * count > x.shape[0] * x.shape[1]:
        return None
    z, ell = (part.double() for part in (centers.flatten(0, 1), lengthscale))
    ell = ell.repeat_interleave(centers.shape[1], dim=0)  # J P
    bumps = []
    for p, one in enumerate(stretches):
        lags = one.nodes()[:, None] - z[:, p]  # r J
        values = _single_input(g, lags, ell[:, p], p)
        bumps.append(polynomials(values).to(x.dtype))
    return Polynomials(bumps, stretches)


def _single_input(g: GreensFunction, lags: Tensor, ell: Tensor, p: int) -> Float[Tensor, "D r J"]:
    """h of one input at the lags, float64, with gradients to lags, ℓ and the ODE."""
    if g.order == 1:
        (factor,) = g.factors
        rate = factor[0][:, p].double()[:, None, None]
        response = first_order_bump(lags, ell, rate)
        return rate * response if g.normalised else response
    whole = _respond(g, lags[None], ell)  # D P r J, all inputs at the lags of this one
    return whole[:, p] if whole.ndim == 4 else whole


class Tables(NamedTuple):
    """All bumps over a grid of each input, [D, K, J] with J = Q·M; D is 1 for G = δ."""

    values: list[Tensor]
    axes: list[Axis]


def tables(
    g: GreensFunction,
    x: Float[Tensor, "S N P"],
    centers: Float[Tensor, "Q M P"],
    lengthscale: Float[Tensor, "Q P"],
) -> Tables | None:
    """Tables that cover `x`, or none where there is little to gain."""
    if 0 in centers.shape or 0 in x.shape:
        return None
    ends = torch.stack([*_ends(x), *_ends(centers), _scales(g, lengthscale)]).double()
    if not bool(ends.isfinite().all()):
        return None
    low, high, z_low, z_high, scale = ends
    spacing = scale / _PER_SCALE
    sizes = ((high - low) / spacing).ceil() + _POINTS + 1
    ratio = _LAGS_PER_POINT[x.dtype]
    fine = spacing / ratio
    count = float(((sizes - 1) * ratio + ((z_high - z_low) / fine).ceil()).max()) + 2 * _LAGS
    outputs = _outputs(g)
    pairs = x.shape[0] * x.shape[1] * centers[..., 0].numel()
    bumps = float(sizes.sum()) * centers[..., 0].numel() * outputs
    if 8 * count * len(lengthscale) > pairs or bumps > _LARGEST:
        return None
    first = low - _POINTS / 2 * spacing
    nearest = first - z_high - _LAGS * fine
    lags = nearest[:, None] + fine[:, None] * torch.arange(int(count), dtype=torch.float64)
    forces = [_exact(g, lags, ell, x.dtype) for ell in lengthscale]  # P L D each
    values = []
    for p, (begin, step, size) in enumerate(
        zip(*(v.tolist() for v in (first, fine, sizes)), strict=True)
    ):
        own = [
            _Windows.apply(force[p], (begin - float(nearest[p]) - z[:, p]) / step, int(size), ratio)
            for force, z in zip(forces, centers, strict=True)
        ]
        values.append(own[0] if len(own) == 1 else torch.cat(own, dim=-1))
    axes = [Axis(*both) for both in zip(first.tolist(), spacing.tolist(), strict=True)]
    return Tables(values, axes)


def bumps_by_lag(
    g: GreensFunction,
    x: Float[Tensor, "N P"],
    centers: Float[Tensor, "Q M P"],
    lengthscale: Float[Tensor, "Q P"],
    per_scale: int,
) -> Float[Tensor, "N D Q M"] | None:
    """Every bump at every point, from tables with so many lags per scale; none for too few."""
    low, high = _ends(x[None])
    z_low, z_high = _ends(centers)
    spacing = _scales(g, lengthscale) / per_scale
    first = low - z_high - _LAGS * spacing
    count = ((high - z_low - first) / spacing).max() + 2 * _LAGS
    if not 8 * float(count) < len(x) * centers.shape[1]:
        return None
    lags = (first[:, None] + spacing[:, None] * torch.arange(int(count))).double()
    forces = []
    for ell, z in zip(lengthscale, centers, strict=True):
        product: Tensor | None = None
        for p, table in enumerate(_exact(g, lags, ell, x.dtype)):
            position = (x[:, None, p] - z[:, p] - first[p]) / spacing[p]  # N M
            bumps = interpolate(table[:, None], position.view(1, -1), _LAGS)
            bumps = bumps.view(*position.shape, -1)
            product = bumps if product is None else product * bumps
        forces.append(product)
    return torch.stack([one for one in forces if one is not None]).permute(1, 3, 0, 2)


def _outputs(g: GreensFunction) -> int:
    """How many outputs have responses of their own."""
    return max([len(factor[0]) for factor in g.factors if factor[0].ndim == 2], default=1)


def _scales(g: GreensFunction, lengthscale: Float[Tensor, "Q P"]) -> Float[Tensor, " P"]:
    """How far one may go along each input before a response changes."""
    shortest = lengthscale.detach().amin(0)
    if g.order > 1:
        turning = g.poles().detach().imag.abs().amax(-1).expand(-1, len(shortest)).amax(0)
        shortest = torch.minimum(shortest, 2 / turning.clamp(min=1e-30).to(shortest))
    return shortest


def _ends(x: Float[Tensor, "A B P"]) -> tuple[Tensor, Tensor]:
    return x.detach().amin((0, 1)), x.detach().amax((0, 1))


class _Windows(torch.autograd.Function):
    """Stretches of one table, each begun at its own place between two nodes: [D, K, M].

    Nodes over points are `ratio` nodes over lags apart, so a center has one set of weights.
    """

    @staticmethod
    def forward(ctx: Any, table: Tensor, position: Tensor, size: int, ratio: int) -> Tensor:
        found = places(position, _LAGS)
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
    some = max(1, _WINDOWS // (_LAGS * size))
    return [slice(m, m + some) for m in range(0, count, some)]


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
    whole = _respond(g, lags, lengthscale.double()[:, None], trailing=1)
    response = whole if whole.ndim == 3 else whole[None]  # D P K; G = δ has one output
    return response.permute(1, 2, 0).to(dtype)


def _respond(g: GreensFunction, lags: Tensor, ell: Tensor, trailing: int = 2) -> Tensor:
    """In float64, with gradients to the parameters as they are."""
    module = _Response(g, trailing)
    parts = [*module.named_parameters(), *module.named_buffers()]
    double = {name: value.double() for name, value in parts}
    whole: Tensor = functional_call(module, double, (lags, ell))
    return whole


class _Response(nn.Module):
    """A bump response as a function of parameters, whose type `functional_call` may replace."""

    def __init__(self, g: GreensFunction, trailing: int) -> None:
        super().__init__()
        self.g, self.trailing = g, trailing

    def forward(self, lags: Tensor, lengthscale: Tensor) -> Tensor:
        center = torch.zeros_like(lags)
        return system_bump_response(
            self.g, lags, center, lengthscale, "infinite", trailing=self.trailing
        )
