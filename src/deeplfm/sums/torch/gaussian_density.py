"""The expected log density of Gaussian noise as one node of the graph."""

import math
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.autograd.function import once_differentiable


def gaussian_log_density(
    f: Float[Tensor, "S N D"],
    y: Float[Tensor, "N D"],
    observed: Bool[Tensor, "N D"],
    variance: Float[Tensor, " D"],
    scale: float,
) -> Float[Tensor, ""]:
    """scale · Σ_{nd} mean_s log N(y; f, σ²) over what was observed, as one node of the graph."""
    total: Tensor = _LogDensity.apply(f, y, observed, variance, scale)
    return total


class _LogDensity(torch.autograd.Function):
    """-½ scale/S Σ_d ratio_d + S count_d log 2πσ_d²,  ratio_d = Σ_{sn} (y - f)²/σ_d²."""

    @staticmethod
    def forward(
        ctx: Any, f: Tensor, y: Tensor, observed: Tensor, variance: Tensor, scale: float
    ) -> Tensor:
        rest = y - f
        if not observed.all():
            rest = torch.where(observed, rest, 0.0)
        count = observed.sum(0, dtype=rest.dtype)
        ratio = (rest * rest).sum((0, 1)).div_(variance)
        ctx.save_for_backward(rest, variance, ratio, count)
        ctx.half = scale / len(f) / 2
        logs = torch.log(variance * (2 * math.pi))
        return torch.addcmul(ratio, count, logs, value=len(f)).sum().mul_(-ctx.half)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        rest, variance, ratio, count = ctx.saved_tensors
        slope = gradient * ctx.half / variance
        by_variance = torch.sub(ratio, count, alpha=len(rest)).mul_(slope)
        return rest * (slope + slope), None, None, by_variance, None
