"""Sums of many bump responses, without keeping the bumps for the backward pass.

    sum_{sd}(x) = Σ_{qj} c_{sdqj} Π_p bump_{dp}(x_p; z_{qjp}, ℓ_{qp})

There is one bump per sample, point, output, input and center: the largest tensor of the library. It
is made in chunks of points, and made again when gradients ask for it.
"""

import torch
from jaxtyping import Float
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from deeplfm.greens_functions import GreensFunction
from deeplfm.responses.systems import system_bump_response
from deeplfm.shapes import Memory

_CHUNK = 2**20  # bumps that exist at a time


def bump_sum(
    greens_function: GreensFunction,
    x: Float[Tensor, "S3 N P"],
    centers: Float[Tensor, "Q M P"],
    lengthscale: Float[Tensor, "Q P"],
    coefficients: Float[Tensor, "S D Q M"],
    memory: Memory,
) -> Float[Tensor, "S N D"]:
    """The responses of D outputs, Green's function parameters [D, P], to weighted bumps.

    With zero memory the ODE runs backwards from rest before its origin (`layers.fourier`).
    """
    samples, outputs = coefficients.shape[:2]
    per_point = len(x) * outputs * centers.numel()
    rows = max(1, _CHUNK // max(1, per_point))
    keep = torch.is_grad_enabled()
    parts = []
    for piece in x.split(rows, dim=1):
        if keep:
            part = checkpoint(
                _chunk,
                greens_function,
                piece,
                centers,
                lengthscale,
                coefficients,
                memory,
                use_reentrant=False,
                preserve_rng_state=False,
            )
        else:
            part = _chunk(greens_function, piece, centers, lengthscale, coefficients, memory)
        parts.append(part)
    return torch.cat(parts, dim=1) if parts else x.new_zeros(samples, 0, outputs)


def bumps_of(
    greens_function: GreensFunction,
    x: Float[Tensor, "S3 N P"],
    centers: Float[Tensor, "Q M P"],
    lengthscale: Float[Tensor, "Q P"],
    memory: Memory,
) -> Float[Tensor, "S3 N D Q M"]:
    """Π_p bump_{dp}(x_p; z_{qjp}, ℓ_{qp}); D is 1 where all outputs are the same."""
    points = x[:, :, None, :, None, None]  # dimensions: S N D P Q M
    z, order = centers.permute(2, 0, 1), greens_function.order
    if memory == "zero" and order > 0:
        # Before the origin: the mirrored bump, and the sign of the n-th derivative.
        before = points < 0
        points, z = torch.where(before, -points, points), torch.where(before, -z, z)
    bumps = system_bump_response(
        greens_function, points, z, lengthscale.mT[:, :, None], memory, trailing=2
    )
    if memory == "zero" and order % 2:
        bumps = torch.where(before, -bumps, bumps)
    return bumps.prod(3)


def _chunk(
    greens_function: GreensFunction,
    x: Tensor,
    centers: Tensor,
    lengthscale: Tensor,
    coefficients: Tensor,
    memory: Memory,
) -> Tensor:
    bumps = bumps_of(greens_function, x, centers, lengthscale, memory).flatten(-2)
    weights = coefficients.flatten(-2)
    shared = "n" if len(x) == 1 else "sn"
    own = "m" if bumps.shape[2] == 1 else "dm"
    index = (slice(None), slice(None), 0) if bumps.shape[2] == 1 else (slice(None),)
    bumps = bumps[index]
    bumps = bumps[0] if len(x) == 1 else bumps
    return torch.einsum(f"{shared}{own},sdm->snd", bumps, weights)
