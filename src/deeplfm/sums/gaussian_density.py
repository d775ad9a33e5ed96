"""The expected log density of Gaussian noise, over samples, points and outputs.

total = rows/N Σ_nd mean_s log N(y_nd; f_snd, σ_d²), over what was observed
"""

import math
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from deeplfm.sums.candidate import sum_of


@sum_of
def gaussian_density(
    f: Float[Tensor, "S N D"],
    y: Float[Tensor, "N D"],
    observed: Bool[Tensor, "N D"],
    variance: Float[Tensor, " D"],
    rows: int,
) -> Float[Tensor, ""]:
    """A batch of N points stands for `rows`; `y` is not read where nothing was observed."""
    constant = torch.log(2 * math.pi * variance) * -0.5
    known = torch.where(observed, y, torch.zeros_like(y))
    densities = torch.addcmul(constant, (known - f).square(), -0.5 / variance)
    total = torch.where(observed, densities, torch.zeros_like(densities)).sum()
    return total * (rows / len(y) / len(f))


def _by_torch(f: Tensor, y: Tensor, observed: Tensor, variance: Tensor, rows: int) -> Tensor:
    from deeplfm.sums.torch.gaussian_density import gaussian_log_density

    return gaussian_log_density(f, y, observed, variance, rows / len(y))


def _by_triton(*arguments: Any) -> Tensor:
    from deeplfm.sums.triton.gaussian import gaussian_log_density

    return gaussian_log_density(*arguments)


def _has_points(f: Tensor, *_: Any) -> bool:
    return f.numel() > 0


gaussian_density.add("triton", _by_triton, fits=_has_points)
gaussian_density.add("torch", _by_torch, fits=_has_points)
