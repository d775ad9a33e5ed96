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
from deeplfm.greens_functions.factors import Linear


class Transients(NamedTuple):
    """What is left of the start at some lags, of the shape of those with G for their 1."""

    rise: Tensor  # 1 - b_0
    others: tuple[Tensor, ...]  # b_k of k = 1, 2 …


def transients(
    g: GreensFunction, lag: Float[Tensor, "A N 1 P"], inputs: slice = slice(None)
) -> Transients:
    """Of an ODE of one order or more, along some of its inputs; each is smooth through lag 0."""
    if g.order == 1:
        (factor,) = g.factors
        return Transients(-torch.expm1(-factor[0][:, inputs] * lag), ())
    first, *rest = _free_motions(g, lag, inputs)
    return Transients(1 - first, tuple(rest))


def fastest(g: GreensFunction, inputs: slice = slice(None)) -> Float[Tensor, " P"]:
    """How many times per unit of each input a transient changes by a factor e, or by a radian."""
    if g.order == 1:
        (factor,) = g.factors
        return factor[0].detach()[:, inputs].abs().amax(0)
    return g.poles().detach()[:, inputs].abs().amax((0, -1))


def _free_motions(g: GreensFunction, lag: Tensor, inputs: slice) -> list[Tensor]:
    """b_k = Σ_{j>k} a_j G^{(j-k-1)} for P(p) = Σ_j a_j p^j, with G as a sum of exponentials."""
    nodes, weights = g.exponentials(None if g.stable else float(lag.detach().max()))
    nodes, weights = nodes[:, inputs], weights[:, inputs]
    powers = torch.exp(-nodes * lag[..., None])
    coefficients = [one[:, inputs] for one in _polynomial(g)]
    gain = g.gain()
    if isinstance(gain, Tensor):
        gain = gain[:, inputs]
    motions = []
    for k in range(g.order):
        factor = torch.zeros_like(nodes)
        for coefficient in reversed(coefficients[k + 1 :]):  # Horner, in -s
            factor = coefficient[..., None] - nodes * factor
        motions.append(((weights * factor) * powers).sum(-1).real / gain)
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
