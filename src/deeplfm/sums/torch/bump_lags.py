"""Bump responses by their lag: how smooth they are, and forms of all of them that are cheap.

    bump(x; z) = h(x - z)  with infinite memory, as smooth as its bump and its poles are slow

All are made in float64, whatever the type of the parameters, with gradients to them as they are.
"""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.func import functional_call

from deeplfm.greens_functions import GreensFunction
from deeplfm.responses.systems import system_bump_response
from deeplfm.sums.torch.bump_polynomials import Stretch, stretch
from deeplfm.sums.torch.first_order import first_order_bump
from deeplfm.sums.torch.interpolation import interpolate

TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-11}  # of a form, relative to a bump
_OSCILLATING = 20  # how much longer a bump takes with complex poles
LAGS = 6  # nodes of an interpolation over lags


class Polynomials(NamedTuple):
    """All bumps at the nodes of each input, [D, r, J], float64; J = Q·M, D is 1 for G = δ."""

    values: list[Tensor]
    stretches: list[Stretch]


def polynomials_of(
    g: GreensFunction,
    x: Float[Tensor, "S N P"],
    centers: Float[Tensor, "Q M P"],
    lengthscale: Float[Tensor, "Q P"],
) -> Polynomials | None:
    """Polynomials along the stretches of `x`, or none where it is too long for them."""
    limits = torch.stack([*ends(x), scales(g, lengthscale)]).double()
    if 0 in centers.shape or not bool(limits.isfinite().all()):
        return None
    columns = zip(*(row.tolist() for row in limits), strict=True)
    found = [stretch(low, high, scale, TOLERANCE[x.dtype]) for low, high, scale in columns]
    stretches = [one for one in found if one is not None]
    if len(stretches) < len(found):
        return None
    count = sum(one.size for one in stretches) * (1 if g.order < 2 else _OSCILLATING)
    if 2 * count > x.shape[0] * x.shape[1]:
        return None
    z, ell = (part.double().mT for part in (centers.flatten(0, 1), lengthscale))
    ell = ell.repeat_interleave(centers.shape[1], dim=1)  # P J
    sizes = [one.size for one in stretches]
    lags = [one.nodes()[:, None] - own for one, own in zip(stretches, z, strict=True)]  # r J
    if g.order == 1:
        (factor,) = g.factors
        of_node = torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes))
        rate = factor[0].double()[:, of_node, None]  # D, r of all inputs, 1
        values = _one_pole(g, torch.cat(lags), ell[of_node], rate).split(sizes, dim=1)
        return Polynomials(list(values), stretches)
    # All inputs of the ODE at the lags of each, of which one is used.
    whole = [_respond(g, own[None], scale) for own, scale in zip(lags, ell, strict=True)]
    return Polynomials(
        [one[:, p] if one.ndim == 4 else one for p, one in enumerate(whole)], stretches
    )


def bumps_by_lag(
    g: GreensFunction,
    x: Float[Tensor, "N P"],
    centers: Float[Tensor, "Q M P"],
    lengthscale: Float[Tensor, "Q P"],
    per_scale: int,
) -> Float[Tensor, "N D Q M"] | None:
    """Every bump at every point, from tables with so many lags per scale; none for too few."""
    low, high = ends(x[None])
    z_low, z_high = ends(centers)
    spacing = scales(g, lengthscale) / per_scale
    first = low - z_high - LAGS * spacing
    count = ((high - z_low - first) / spacing).max() + 2 * LAGS
    if not 8 * float(count) < len(x) * centers.shape[1]:
        return None
    lags = (first[:, None] + spacing[:, None] * torch.arange(int(count))).double()
    forces = []
    for ell, z in zip(lengthscale, centers, strict=True):
        product: Tensor | None = None
        for p, table in enumerate(at_lags(g, lags, ell, x.dtype)):
            position = (x[:, None, p] - z[:, p] - first[p]) / spacing[p]  # N M
            bumps = interpolate(table[:, None], position.view(1, -1), LAGS)
            bumps = bumps.view(*position.shape, -1)
            product = bumps if product is None else product * bumps
        forces.append(product)
    return torch.stack([one for one in forces if one is not None]).permute(1, 3, 0, 2)


def scales(g: GreensFunction, lengthscale: Float[Tensor, "Q P"]) -> Float[Tensor, " P"]:
    """How far one may go along each input before a response changes."""
    shortest = lengthscale.detach().amin(0)
    if g.order > 1:
        turning = g.poles().detach().imag.abs().amax(-1).expand(-1, len(shortest)).amax(0)
        shortest = torch.minimum(shortest, 2 / turning.clamp(min=1e-30).to(shortest))
    return shortest


def ends(x: Float[Tensor, "A B P"]) -> tuple[Tensor, Tensor]:
    """The least and the largest of each input."""
    return x.detach().amin((0, 1)), x.detach().amax((0, 1))


def at_lags(
    g: GreensFunction,
    lags: Float[Tensor, "P K"],
    lengthscale: Float[Tensor, " P"],
    dtype: torch.dtype,
) -> Float[Tensor, "P K D"]:
    """h at the lags, from float64, with gradients to the parameters as they are."""
    if g.order == 1:
        (factor,) = g.factors
        ell, rate = lengthscale.double()[:, None, None], factor[0].double().mT[:, None]
        return _one_pole(g, lags[..., None], ell, rate).to(dtype)
    whole = _respond(g, lags, lengthscale.double()[:, None], trailing=1)
    response = whole if whole.ndim == 3 else whole[None]  # D P K; G = δ has one output
    return response.permute(1, 2, 0).to(dtype)


def _one_pole(g: GreensFunction, lags: Tensor, ell: Tensor, rate: Tensor) -> Tensor:
    """The response of a first-order ODE, whose integral is 1/rate."""
    response = first_order_bump(lags, ell, rate)
    return rate * response if g.normalised else response


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
