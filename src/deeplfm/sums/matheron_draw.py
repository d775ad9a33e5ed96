"""A draw of inducing values in training by Matheron's rule: its frequencies, weights of bumps.

    c = σ c',  c' = L^{-T} (v' - L^{-1} r),   r = √(2/B) Σ_i w_i cos(ξ_iᵀs + β_i) + √ε η
    L Lᵀ = K + εI,  K_ij = k(|s_i - s_j|),  s = Z/ℓ,  θ = ξ/ℓ,  v' = μ0 + C0 (u a + B ε')

What has L in it is float64, whatever the type of the parameters; nothing waits for the device.
"""

import math
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from deeplfm.forces import ForceKernel, SquaredExponential
from deeplfm.forces.numbers import Numbers
from deeplfm.sums.candidate import sum_of
from deeplfm.variational.gaussian_formulas import full_draw


@sum_of
def matheron_draw(
    kernel: ForceKernel,
    z: Float[Tensor, "#Q M P"],
    lengthscale: Float[Tensor, "#Q P"],
    variance: Float[Tensor, "Q"],
    shift: Float[Tensor, "Q M"],
    log_diagonal: Float[Tensor, "Q M"],
    below_diagonal: Float[Tensor, "Q M M"],
    center: Float[Tensor, "Q M"],
    frame: Float[Tensor, "Q M M"],
    unit: Float[Tensor, ""],
    jitter: Float[Tensor, ""],
    phase: Float[Tensor, "1 Q B"],
    xi: Float[Tensor, "1 Q B P"],
    weights: Float[Tensor, "S Q B"],
    noise: Float[Tensor, "Q M S"],
    eta: Float[Tensor, "Q M S"],
) -> tuple[Float[Tensor, "1 Q B P"], Float[Tensor, "S Q M"]]:
    """θ and c; c is NaN where K + εI is not positive definite. The jitter has no gradient."""
    scaled = (z.double() / lengthscale[:, None].double()).expand(len(variance), -1, -1)
    squared = (scaled[:, :, None] - scaled[:, None]).square().sum(-1)
    identity = torch.eye(z.shape[1], dtype=torch.float64, device=z.device)
    gram = kernel.correlation(squared) + jitter.detach() * identity
    factor, info = torch.linalg.cholesky_ex(gram)
    waves = torch.cos(scaled @ xi[0].double().mT + phase[0, :, None])
    known = torch.einsum("qmb,sqb->qms", waves, math.sqrt(2 / xi.shape[2]) * weights.double())
    known = known + jitter.detach().sqrt() * eta
    values, _ = full_draw(noise, shift, log_diagonal, below_diagonal, center, frame, unit)
    missing = values - torch.linalg.solve_triangular(factor, known, upper=False)
    unscaled = torch.linalg.solve_triangular(factor.mT, missing, upper=True)
    std = variance.sqrt()[:, None, None].masked_fill(info.bool()[:, None, None], torch.nan)
    return xi / lengthscale[:, None], (std * unscaled).permute(2, 0, 1).to(xi.dtype)


def _is_smooth(kernel: ForceKernel, *_: Any) -> bool:
    return isinstance(kernel, SquaredExponential)


def _is_small(kernel: ForceKernel, z: Tensor, *_: Any) -> bool:
    from deeplfm.sums.c.matheron import MOST

    return z.shape[-2] <= MOST and _is_smooth(kernel)


def _by_c(_: ForceKernel, *arguments: Tensor) -> tuple[Tensor, Tensor]:
    from deeplfm.sums.c.matheron import matheron_draw as compiled

    z, ell, variance, *others = arguments
    return compiled(z, ell, variance, others[:6], others[6], Numbers(*others[7:]))


def _by_torch(_: ForceKernel, *arguments: Tensor) -> tuple[Tensor, Tensor]:
    from deeplfm.sums.torch.matheron import matheron_draw as one_node

    z, ell, variance, *others = arguments
    return one_node(z, ell, variance, others[:6], others[6], Numbers(*others[7:]))


matheron_draw.add("c", _by_c, fits=_is_small)
matheron_draw.add("torch", _by_torch, fits=_is_smooth, anywhere=True)
