"""Stretches of an input along which a bump response is a polynomial, and all bumps at their nodes.

The number of coefficients follows from the growth of a bump on Bernstein ellipses.
"""

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from deeplfm.greens_functions import FixedDynamics
from deeplfm.sums.torch.bump_lags import (
    TOLERANCE,
    ends,
    responses_at_lags,
    responses_of_one_pole,
    scales,
)

MOST = 512  # coefficients of a polynomial
_MARGIN = 1.02  # of the stretch beyond the points: slopes are awkward at its very ends
_OSCILLATING = 20  # how much longer a bump takes with complex poles


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
    """The stretch from `low` to `high`; none where it is too long for bumps of this scale."""
    half = max(_MARGIN * (high - low) / 2, 1e-3 * scale)
    width = half / scale
    if not width < MOST:
        return None
    count = coefficients_needed(math.ceil(4 * width) / 4, tolerance)
    return None if count is None else Stretch((low + high) / 2, half, count)


@lru_cache(maxsize=1024)
def coefficients_needed(width: float, tolerance: float) -> int | None:
    """How many a bump of scale 1 needs on (-width, width), by its growth on Bernstein ellipses.

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


class Bumps(NamedTuple):
    """All bumps at the nodes of each input, [D, r, J], float64; J = Q·M, D is 1 for G = δ."""

    values: list[Tensor]
    stretches: list[Stretch]


def bumps_at_nodes(
    dynamics: FixedDynamics,
    x: Float[Tensor, "#S N P"],
    centers: Float[Tensor, "Q M P"],
    lengthscale: Float[Tensor, "Q P"],
) -> Bumps | None:
    """Bumps for polynomials along the stretches of `x`; none where one is too long for them."""
    limits = torch.stack([*ends(x), scales(dynamics, lengthscale)]).double()
    if 0 in centers.shape or not bool(limits.isfinite().all()):
        return None
    columns = zip(*(row.tolist() for row in limits), strict=True)
    stretches = []
    for low, high, scale in columns:
        along = stretch(low, high, scale, TOLERANCE[x.dtype])
        if along is None:
            return None
        stretches.append(along)
    sizes = [along.size for along in stretches]
    count = sum(sizes) * (1 if dynamics.order < 2 else _OSCILLATING)
    if 2 * count > x.shape[0] * x.shape[1]:
        return None
    z, ell = (part.double().mT for part in (centers.flatten(0, 1), lengthscale))
    ell = ell.repeat_interleave(centers.shape[1], dim=1)  # P J
    lags = [along.nodes()[:, None] - z_p for along, z_p in zip(stretches, z, strict=True)]  # r J
    if dynamics.order == 1:
        (factor,) = dynamics.factors
        input_of_node = torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes))
        rate = factor[0].double()[:, input_of_node, None]  # D, r of all inputs, 1
        values = responses_of_one_pole(dynamics, torch.cat(lags), ell[input_of_node], rate)
        return Bumps(list(values.split(sizes, dim=1)), stretches)
    # All inputs of the ODE at the lags of each, of which one is used.
    whole = [
        responses_at_lags(dynamics, at[None], scale, trailing=2)
        for at, scale in zip(lags, ell, strict=True)
    ]
    return Bumps([one[:, p] if one.ndim == 4 else one for p, one in enumerate(whole)], stretches)
