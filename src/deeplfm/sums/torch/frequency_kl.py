"""The KL of normal frequencies from their prior, as one node of the graph with few operations."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


def frequency_divergence(
    location: Tensor, log_std: Tensor, noise: Tensor | None, lengthscale: Tensor
) -> Tensor:
    """The divergence; shapes are as in `sums.frequency_kl`."""
    divergence: Tensor = _Divergence.apply(location, log_std, noise, lengthscale.unsqueeze(2))
    return divergence


class _Divergence(torch.autograd.Function):
    """Σ ½ (ℓm)² + ½ (e^{2a} - 1) - a with a = log(sℓ), m = location - sε: in few operations.

    A Python number in a product is a tensor of another type, which is converted first: as `alpha`
    or `value` it is not.
    """

    @staticmethod
    def forward(
        ctx: Any, location: Tensor, log_std: Tensor, noise: Tensor | None, ell: Tensor
    ) -> Tensor:
        moved = None if noise is None else torch.exp(log_std).mul_(noise)
        scaled = (location if moved is None else location - moved) * ell
        log = log_std + torch.log(ell)
        growth = torch.expm1(log + log)
        ctx.save_for_backward(ell, moved, scaled, growth)
        negative = log.sub_(growth, alpha=0.5).addcmul_(scaled, scaled, value=-0.5)
        return negative.sum().neg_()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        ell, moved, scaled, growth = ctx.saved_tensors
        by_mean, by_log = scaled * (ell * gradient), growth * gradient
        by_ell = torch.addcmul(growth, scaled, scaled).sum(2, keepdim=True).mul_(gradient / ell)
        if moved is not None:
            by_log.addcmul_(by_mean, moved, value=-1)
        return by_mean, by_log, None, by_ell
