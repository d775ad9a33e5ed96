"""Bump responses by their lag: how smooth they are, and all of them at some lags.

    bump(x; z) = h(x - z)  with infinite memory, as smooth as its bump and its poles are slow

All are made in float64, whatever the type of the parameters, with gradients to them as they are.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from deeplfm.greens_functions import FixedDynamics
from deeplfm.responses.systems import system_bump_response
from deeplfm.sums.torch.first_order_bump import first_order_bump

TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-11}  # of a form, relative to a bump


def scales(dynamics: FixedDynamics, lengthscale: Float[Tensor, "Q P"]) -> Float[Tensor, " P"]:
    """How far one may go along each input before a response changes."""
    shortest = lengthscale.detach().amin(0)
    if dynamics.order > 1:
        turning = dynamics.poles().detach().imag.abs().amax(-1).expand(-1, len(shortest)).amax(0)
        shortest = torch.minimum(shortest, 2 / turning.clamp(min=1e-30).to(shortest))
    return shortest


def ends(x: Float[Tensor, "A B P"]) -> tuple[Tensor, Tensor]:
    """The least and the largest of each input."""
    return x.detach().amin((0, 1)), x.detach().amax((0, 1))


def responses_of_one_pole(
    dynamics: FixedDynamics, lags: Tensor, lengthscale: Tensor, rate: Tensor
) -> Tensor:
    """The response of a first-order ODE, whose integral is 1/rate; arguments broadcast."""
    response = first_order_bump(lags, lengthscale, rate)
    return rate * response if dynamics.normalised else response


def responses_at_lags(
    dynamics: FixedDynamics, lags: Tensor, lengthscale: Tensor, trailing: int
) -> Tensor:
    """h at the lags for any ODE; `trailing` is as for `system_bump_response`."""
    center = torch.zeros_like(lags)
    double = dynamics.to(torch.float64)
    return system_bump_response(double, lags, center, lengthscale, "infinite", trailing=trailing)
