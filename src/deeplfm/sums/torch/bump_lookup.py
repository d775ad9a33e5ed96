"""Every bump at every point, from tables of the response over lags: one for each force and input.

Six-point Lagrange over lags, on a table made in float64, is good to rounding in float32.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from deeplfm.greens_functions import FixedDynamics
from deeplfm.sums.torch.bump_lags import ends, responses_at_lags, responses_of_one_pole, scales
from deeplfm.sums.torch.interpolation import interpolate

_NODES = 6  # of an interpolation
_PER_SCALE = 48  # lags per scale of the response


def bumps_by_lookup(
    dynamics: FixedDynamics,
    x: Float[Tensor, "N P"],
    centers: Float[Tensor, "Q M P"],
    lengthscale: Float[Tensor, "Q P"],
) -> Float[Tensor, "N D Q M"] | None:
    """Every bump at every point; none where there are too few of them to gain anything."""
    low, high = ends(x[None])
    z_low, z_high = ends(centers)
    spacing = scales(dynamics, lengthscale) / _PER_SCALE
    first = low - z_high - _NODES * spacing
    count = ((high - z_low - first) / spacing).max() + 2 * _NODES
    if not 8 * float(count) < len(x) * centers.shape[1]:
        return None
    lags = (first[:, None] + spacing[:, None] * torch.arange(int(count))).double()
    forces = []
    for ell, z in zip(lengthscale, centers, strict=True):
        product: Tensor | None = None
        for p, table in enumerate(_tables(dynamics, lags, ell, x.dtype)):
            position = (x[:, None, p] - z[:, p] - first[p]) / spacing[p]  # N M
            bumps = interpolate(table[:, None], position.view(1, -1), _NODES)
            bumps = bumps.view(*position.shape, -1)
            product = bumps if product is None else product * bumps
        forces.append(product)
    return torch.stack([one for one in forces if one is not None]).permute(1, 3, 0, 2)


def _tables(
    dynamics: FixedDynamics,
    lags: Float[Tensor, "P K"],
    lengthscale: Float[Tensor, " P"],
    dtype: torch.dtype,
) -> Float[Tensor, "P K D"]:
    """h at the lags of each input."""
    if dynamics.order == 1:
        (factor,) = dynamics.factors
        ell, rate = lengthscale.double()[:, None, None], factor[0].double().mT[:, None]
        return responses_of_one_pole(dynamics, lags[..., None], ell, rate).to(dtype)
    whole = responses_at_lags(dynamics, lags, lengthscale.double()[:, None], trailing=1)
    response = whole if whole.ndim == 3 else whole[None]  # D P K; G = δ has one output
    return response.permute(1, 2, 0).to(dtype)
