"""What is left of the start of an ODE: its motion without force, from a state of zero.

    wave(x; ω) = H(ω) (e^{jωx} - Σ_{k<n} (jω)^k b_k(x)),   H = 1/P(jω)

b_k is the ODE without force, started with its k-th derivative at 1 and the others at 0. No
frequency is in it, so sums over waves (`sums.fourier_sum`) leave it out, and it is added once.
"""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from deeplfm.greens_functions import Dynamics


class Transients(NamedTuple):
    """The motions at some lags, of the shape of those with G for their 1."""

    rise: Tensor  # 1 - b_0
    others: tuple[Tensor, ...]  # b_k of k = 1, 2 …


def transients(dynamics: Dynamics, lag: Float[Tensor, "A N 1 P"]) -> Transients:
    """The motions of an ODE of one order or more; each is smooth through lag 0."""
    if dynamics.order == 1:
        (factor,) = dynamics.factors
        return Transients(-torch.expm1(-factor[0] * lag), ())
    first, *others = _free_motions(dynamics, lag)
    return Transients(1 - first, tuple(others))


def _free_motions(dynamics: Dynamics, lag: Tensor) -> list[Tensor]:
    """b_k = Σ_{j>k} a_j G^{(j-k-1)} for P(p) = Σ_j a_j p^j, with G as a sum of exponentials."""
    nodes, weights = dynamics.exponentials(None if dynamics.stable else float(lag.detach().max()))
    powers = torch.exp(-nodes * lag[..., None])
    coefficients, gain = dynamics.polynomial(), dynamics.gain()
    motions = []
    for k in range(dynamics.order):
        factor = torch.zeros_like(nodes)
        for coefficient in reversed(coefficients[k + 1 :]):  # Horner, in -s
            factor = coefficient[..., None] - nodes * factor
        motions.append(((weights * factor) * powers).sum(-1).real / gain)
    return motions
