"""Sums of bumps over one input as Fourier series: to a wave an ODE is only a factor H.

    Σ_j c_j h(x - z_j) = Re Σ_k H(jω_k) b(ω_k) e^{jω_k x} Σ_j c_j e^{-jω_k z_j},   ω_k = 2πk/T
    b(ω) = (2 - δ_k0) √(2π) ℓ/T e^{-ω²ℓ²/2},   a bump's own

Left out are the frequencies of which a bump has none, and added the bumps one period away: T is so
long that they are yet to come, or forgotten.
"""

import math
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from deeplfm.greens_functions import FixedDynamics
from deeplfm.sums.torch.bump_lags import TOLERANCE, ends

_MOST = 2**11  # frequencies
_LARGEST = 2**25  # waves of all points
# A response may be smaller than the waves it is made of, an ODE that resonates makes more of its
# own frequency than of others, and a slope in ℓ has (x - z)²/ℓ² of a bump.
_MARGIN = 1e3


class Series(NamedTuple):
    """Waves about the middle of the points: their frequencies, and the weights of cos and sin."""

    middle: float
    frequency: Float[Tensor, " K"]
    cosine: Float[Tensor, "S K D"]
    sine: Float[Tensor, "S K D"]


def series_of(
    dynamics: FixedDynamics,
    x: Float[Tensor, "#S N 1"],
    centers: Float[Tensor, "Q M 1"],
    lengthscale: Float[Tensor, "Q 1"],
    coefficients: Float[Tensor, "S D Q M"],
) -> Series | None:
    """The series at `x`; none where the ODE remembers too long, or nothing is to be gained."""
    if 0 in centers.shape or dynamics.order == 0:
        return None
    scale = lengthscale.detach()
    slowest = dynamics.poles().detach().real.amin().to(scale)
    limits = torch.stack([*ends(x), *ends(centers), scale.amin(0), scale.amax(0), slowest[None]])
    low, high, z_low, z_high, shortest, longest, rate = limits[:, 0].tolist()
    if not (bool(limits.isfinite().all()) and min(shortest, rate) > 0):
        return None
    tolerance = TOLERANCE[x.dtype]
    widths = math.sqrt(2 * math.log(_MARGIN / tolerance))  # of a bump, and of its spectrum
    # Repeated poles forget more slowly: ten times for each is more than their powers of time.
    memory = math.log(10**dynamics.order / tolerance) / rate
    period = max(high - z_low, z_high - low + memory) + widths * longest
    count = widths / shortest * period / (2 * math.pi) + 2
    if not (count <= _MOST and count * x.shape[0] * x.shape[1] <= _LARGEST):
        return None
    omega = 2 * math.pi / period * torch.arange(int(count), dtype=torch.float64)
    middle = (low + high) / 2
    cosine, sine = _weights(dynamics, omega, period, centers - middle, lengthscale, coefficients)
    columns = (part.to(x.dtype).mT.contiguous() for part in (cosine, sine))  # S K D
    return Series(middle, omega.to(x.dtype), *columns)


def _weights(
    dynamics: FixedDynamics,
    omega: Float[Tensor, " K"],
    period: float,
    centers: Float[Tensor, "Q M 1"],
    lengthscale: Float[Tensor, "Q 1"],
    coefficients: Float[Tensor, "S D Q M"],
) -> tuple[Float[Tensor, "S D K"], Float[Tensor, "S D K"]]:
    """Weights of cos and sin of each frequency, float64: coefficients of bumps cancel."""
    phases = centers.double() * omega  # Q M K
    own = coefficients.double().permute(2, 0, 1, 3).flatten(1, 2)  # Q SD M
    size = lengthscale.double() * (2 * math.sqrt(2 * math.pi) / period)
    size = size * torch.exp((lengthscale.double() * omega).square() * -0.5)  # Q K
    size = torch.cat([size[:, :1] / 2, size[:, 1:]], dim=-1)[:, None]
    even, odd = (
        (own @ part * size).sum(0).unflatten(0, coefficients.shape[:2])
        for part in (torch.cos(phases), torch.sin(phases))
    )
    answer = dynamics.frequency_response(omega)
    if answer is None:
        return even, odd
    real, imag = (part[:, 0] for part in answer)  # D K
    return real * even + imag * odd, real * odd - imag * even
