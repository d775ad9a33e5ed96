"""Sums of many bump responses, without keeping the bumps for the backward pass.

    sum_{sd}(x) = Σ_{qj} c_{sdqj} Π_p bump_{dp}(x_p; z_{qjp}, ℓ_{qp})

There is one bump per sample, point, output, input and center: the largest tensor of the library. It
is made in chunks of points, and made again when gradients ask for it. On a CPU bumps may be
polynomials or series or come from a table (`bump_lags`, `bump_series`, `bump_tables`).
"""

from functools import reduce

import torch
from jaxtyping import Float
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from deeplfm.greens_functions import GreensFunction
from deeplfm.responses.systems import system_bump_response
from deeplfm.shapes import Memory
from deeplfm.sums.backends import by_kernels, by_tables, natively
from deeplfm.sums.c.bumps import first_order_bump_sums
from deeplfm.sums.torch.bump_lags import polynomials_of
from deeplfm.sums.torch.bump_polynomials import polynomial_sum
from deeplfm.sums.torch.bump_series import series_sum
from deeplfm.sums.torch.bump_tables import bump_table

_CHUNK = 2**20  # bumps that exist at a time


def bump_sum(
    greens_function: GreensFunction,
    x: Float[Tensor, "S3 N P"],
    centers: Float[Tensor, "Q M P"],
    lengthscale: Float[Tensor, "Q P"],
    coefficients: Float[Tensor, "S D Q M"],
    memory: Memory,
    *,
    interpolate: bool = False,
) -> Float[Tensor, "S N D"]:
    """The responses of D outputs, Green's function parameters [D, P], to weighted bumps.

    With zero memory the ODE runs backwards from rest before its origin (`layers.fourier`).
    `interpolate` allows tables, where they are less work.
    """
    samples, outputs = coefficients.shape[:2]
    if x.shape[1] == 0:
        return x.new_zeros(samples, 0, outputs)
    if (
        memory == "infinite"
        and greens_function.order == 1
        and (by_kernels(x) or natively(x, coefficients))
    ):
        return _first_order(greens_function, x, centers, lengthscale, coefficients)
    if interpolate and memory == "infinite" and by_tables(x):
        total = _smooth_sum(greens_function, x, centers, lengthscale, coefficients)
        if total is not None:
            return total

    def chunk(piece: Tensor) -> Tensor:
        bumps = bumps_of(greens_function, piece, centers, lengthscale, memory)
        return _weighted(bumps, coefficients)

    rows = max(1, _CHUNK // max(1, len(x) * outputs * centers.numel()))
    again = torch.is_grad_enabled()
    parts = [
        checkpoint(chunk, piece, use_reentrant=False, preserve_rng_state=False)
        if again
        else chunk(piece)
        for piece in x.split(rows, dim=1)
    ]
    return torch.cat(parts, dim=1)


def _first_order(
    g: GreensFunction, x: Tensor, centers: Tensor, lengthscale: Tensor, coefficients: Tensor
) -> Tensor:
    (factor,), gain = g.factors, g.gain()
    if isinstance(gain, Tensor):  # one per output and input, of each factor of the product
        coefficients = coefficients * reduce(torch.mul, gain.unbind(-1))[:, None, None]
    if natively(x, coefficients):
        return first_order_bump_sums(x, centers, lengthscale, factor[0], coefficients)
    from deeplfm.sums.triton import bumps as triton_bumps

    return triton_bumps.first_order_bump_sums(x, centers, lengthscale, factor[0], coefficients)


def _smooth_sum(
    g: GreensFunction, x: Tensor, centers: Tensor, lengthscale: Tensor, coefficients: Tensor
) -> Tensor | None:
    """The sum by what is least work: polynomials need bumps, which complex poles make slow."""
    arguments, over_one = (g, x, centers, lengthscale), x.shape[-1] == 1
    series = series_sum(*arguments, coefficients) if over_one and g.order > 1 else None
    if series is not None:
        return series
    whole = polynomials_of(*arguments)
    if whole is not None:
        return polynomial_sum(x, coefficients.flatten(2), whole.values, whole.stretches)
    series = series_sum(*arguments, coefficients) if over_one and g.order == 1 else None
    if series is not None:
        return series
    table = bump_table(*arguments) if over_one else None
    return None if table is None else table.sum(x, coefficients.flatten(2))


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
    # Not torch.prod: its gradient reads from the device, which no CUDA graph allows.
    return reduce(torch.mul, bumps.unbind(3))


def _weighted(bumps: Tensor, coefficients: Tensor) -> Tensor:
    """[S, N, D]; bumps of one sample serve all, those of one output too."""
    bumps, weights = bumps.flatten(-2), coefficients.flatten(-2)
    samples = "s" if len(bumps) > 1 else ""
    outputs = "d" if bumps.shape[2] > 1 else ""
    bumps = bumps if outputs else bumps[:, :, 0]
    bumps = bumps if samples else bumps[0]
    total: Tensor = torch.einsum(f"{samples}n{outputs}m,sdm->snd", bumps, weights)
    return total
