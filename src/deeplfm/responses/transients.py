"""What is left of the start of an ODE: its motion without force, from rest.

    wave(x; ω) = H(ω) (e^{jωx} - Σ_{k<n} (jω)^k b_k(x)),   H = 1/P(jω)

b_k is the ODE without force, started with its k-th derivative at 1 and the others at 0. No
frequency is in it, so sums over waves (`wave_sums`) leave it out, and it is added once.
"""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from deeplfm.greens_functions import GreensFunction
from deeplfm.greens_functions.base import Linear


class Transients(NamedTuple):
    """What is left of the start at a point, [S, N, G, P] each."""

    rise: Tensor  # 1 - b_0(|x|)
    others: tuple[Tensor, ...]  # b_k(|x|) of k = 1, 2 …, with the sign of x^k


def transients(g: GreensFunction, x: Float[Tensor, "S N P"]) -> Transients:
    """Of an ODE of one order or more, at lags |x|."""
    x = x[:, :, None]
    lag = x.abs()
    if g.order == 1:
        (factor,) = g.factors
        return Transients(-torch.expm1(-factor[0] * lag), ())
    first, *rest = _free_motions(g, lag)
    signs = torch.sign(x)
    others = tuple(signs**k * motion for k, motion in enumerate(rest, start=1))
    return Transients(1 - first, others)


def _free_motions(g: GreensFunction, lag: Tensor) -> list[Tensor]:
    """b_k = Σ_{j>k} a_j G^{(j-k-1)} for P(p) = Σ_j a_j p^j, with G as a sum of exponentials."""
    nodes, weights = g.exponentials(None if g.stable else float(lag.detach().max()))
    powers = torch.exp(-nodes * lag[..., None])
    coefficients = _polynomial(g)
    motions = []
    for k in range(g.order):
        factor = torch.zeros_like(nodes)
        for coefficient in reversed(coefficients[k + 1 :]):  # Horner, in -s
            factor = coefficient[..., None] - nodes * factor
        motions.append(((weights * factor) * powers).sum(-1).real / g.gain())
    return motions


def _polynomial(g: GreensFunction) -> list[Tensor]:
    """The coefficients a_0 … a_n of the characteristic polynomial, [G, P] each."""
    product = [torch.ones_like(g.factors[0][0])]
    for factor in g.factors:
        one = torch.ones_like(product[0])
        terms = (
            [factor.rate, one]
            if isinstance(factor, Linear)
            else [factor.product, 2 * factor.damping, one]
        )
        longer = [torch.zeros_like(one) for _ in range(len(product) + len(terms) - 1)]
        for i, left in enumerate(product):
            for j, right in enumerate(terms):
                longer[i + j] = longer[i + j] + left * right
        product = longer
    return product
