"""Every bump response at every point: what the closed-form starts of inducing layers look at.

bump_ndqj = Π_p bump_dp(x_np; z_qjp, ℓ_qp)
"""

from typing import Any

from jaxtyping import Float
from torch import Tensor

from deeplfm.greens_functions import Dynamics
from deeplfm.shapes import Memory
from deeplfm.sums.bump_sum import bumps_of
from deeplfm.sums.candidate import sum_of


@sum_of
def bumps_at(
    dynamics: Dynamics,
    x: Float[Tensor, "N P"],
    centers: Float[Tensor, "Q M P"],
    lengthscale: Float[Tensor, "Q P"],
    memory: Memory,
    *,
    approximate: bool = False,
) -> Float[Tensor, "N D Q M"]:
    """D is 1 for an ODE without dynamics. `approximate` allows tables, good to 1e-6 of a bump."""
    return bumps_of(dynamics, x[None], centers, lengthscale, memory)[0]


def _by_lookup(dynamics: Dynamics, x: Tensor, *others: Any, **_: Any) -> Tensor | None:
    from deeplfm.sums.torch.bump_lookup import bumps_by_lookup

    return bumps_by_lookup(dynamics.fixed(), x, *others[:2])


def _is_smooth(dynamics: Dynamics, x: Tensor, *others: Any, approximate: bool = False) -> bool:
    return approximate and others[2] == "infinite" and x.numel() > 0


bumps_at.add("torch", _by_lookup, fits=_is_smooth)
