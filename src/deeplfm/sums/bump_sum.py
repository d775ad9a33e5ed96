"""Sums of what an ODE makes of many bumps.

    sum_sd(x) = Σ_qj c_sdqj Π_p bump_dp(x_p; z_qjp, ℓ_qp)

There is one bump per sample, point, output, input and center: the largest tensor of the library. It
is made in chunks of points, and made again when gradients ask for it.
"""

from functools import reduce
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from deeplfm.greens_functions import Dynamics
from deeplfm.responses import system_bump_response
from deeplfm.shapes import Memory
from deeplfm.sums.backend import Backend
from deeplfm.sums.candidate import sum_of
from deeplfm.sums.plane_wave_sum import plane_wave_sum

_BUMPS = 2**20  # that exist at a time


@sum_of
def bump_sum(
    dynamics: Dynamics,
    x: Float[Tensor, "#S N P"],
    centers: Float[Tensor, "Q M P"],
    lengthscale: Float[Tensor, "Q P"],
    coefficients: Float[Tensor, "S D Q M"],
    memory: Memory,
    *,
    approximate: bool = False,
) -> Float[Tensor, "S N D"]:
    """The responses of D outputs to weighted bumps; the ODE has factors [D, P].

    With zero memory the ODE runs backwards from its zero state before the origin. `approximate`
    allows polynomials and series, good to 1e-5 of a bump in float32 and 1e-11 in float64.
    """
    samples, outputs = coefficients.shape[:2]
    if x.shape[1] == 0:
        return x.new_zeros(samples, 0, outputs)

    def weighted(points: Tensor) -> Tensor:
        bumps = bumps_of(dynamics, points, centers, lengthscale, memory)
        return _weighted(bumps, coefficients)

    rows = max(1, _BUMPS // max(1, len(x) * outputs * centers.numel()))
    again = torch.is_grad_enabled()
    parts = [
        checkpoint(weighted, points, use_reentrant=False, preserve_rng_state=False)
        if again
        else weighted(points)
        for points in x.split(rows, dim=1)
    ]
    return torch.cat(parts, dim=1)


def bumps_of(
    dynamics: Dynamics,
    x: Float[Tensor, "S3 N P"],
    centers: Float[Tensor, "Q M P"],
    lengthscale: Float[Tensor, "Q P"],
    memory: Memory,
) -> Float[Tensor, "S3 N D Q M"]:
    """Π_p bump_dp(x_p; z_qjp, ℓ_qp); D is 1 where all outputs are the same."""
    points = x[:, :, None, :, None, None]  # dimensions: S N D P Q M
    z, order = centers.permute(2, 0, 1), dynamics.order
    if memory == "zero" and order > 0:
        # Before the origin: the mirrored bump, and the sign of the n-th derivative.
        before = points < 0
        points, z = torch.where(before, -points, points), torch.where(before, -z, z)
    ell = lengthscale.mT[:, :, None]
    bumps = system_bump_response(dynamics, points, z, ell, memory, trailing=2)
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


def _first_order(
    dynamics: Dynamics, x: Tensor, centers: Tensor, ell: Tensor, coefficients: Tensor
) -> tuple[Tensor, ...]:
    """The arguments of the kernels for an ODE of first order, whose gain is in the weights."""
    (factor,), gain = dynamics.factors, dynamics.gain()
    if isinstance(gain, Tensor):  # one per output and input, of each factor of the product
        coefficients = coefficients * reduce(torch.mul, gain.unbind(-1))[:, None, None]
    return x, centers, ell, factor[0], coefficients


def _is_first_order(dynamics: Dynamics, x: Tensor, *others: Any, **_: Any) -> bool:
    """One ODE of first order for each output and input."""
    fits = others[3] == "infinite" and dynamics.order == 1 and x.numel() > 0
    return fits and dynamics.factors[0][0].shape == (others[2].shape[1], x.shape[-1])


def _is_smooth(dynamics: Dynamics, x: Tensor, *others: Any, approximate: bool = False) -> bool:
    return others[3] == "infinite" and approximate and x.numel() > 0


def _is_smooth_over_one_input(dynamics: Dynamics, x: Tensor, *others: Any, **options: Any) -> bool:
    return x.shape[-1] == 1 and _is_smooth(dynamics, x, *others, **options)


def _by_c(dynamics: Dynamics, x: Tensor, *others: Any, **_: Any) -> Tensor:
    from deeplfm.sums.c.bumps import first_order_bump_sums

    return first_order_bump_sums(*_first_order(dynamics, x, *others[:3]))


def _by_triton(dynamics: Dynamics, x: Tensor, *others: Any, **_: Any) -> Tensor:
    from deeplfm.sums.triton.bumps import first_order_bump_sums

    return first_order_bump_sums(*_first_order(dynamics, x, *others[:3]))


def _by_series(
    dynamics: Dynamics, x: Tensor, *others: Any, backend: Backend, **_: Any
) -> Tensor | None:
    from deeplfm.sums.torch.bump_series import series_of

    series = series_of(dynamics.fixed(), x, *others[:3])
    if series is None:
        return None
    frequency = series.frequency[None, :, None]
    return plane_wave_sum.by(backend, x - series.middle, frequency, series.cosine, series.sine)


def _by_polynomials(dynamics: Dynamics, x: Tensor, *others: Any, **_: Any) -> Tensor | None:
    from deeplfm.sums.torch.bump_polynomials import polynomial_sum

    return polynomial_sum(dynamics.fixed(), x, *others[:3])


bump_sum.add("c", _by_c, fits=_is_first_order)
bump_sum.add("triton", _by_triton, fits=_is_first_order)
bump_sum.add("torch", _by_series, fits=_is_smooth_over_one_input)
bump_sum.add("torch", _by_polynomials, fits=_is_smooth)
