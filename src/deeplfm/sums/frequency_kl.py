"""The KL of normal frequencies from their prior N(0, 1/ℓ²).

KL = ½ Σ (ℓm)² + e^{2a} - 1 - 2a,   a = log(sℓ),   m = location - s·noise, or the location
"""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from deeplfm.sums.candidate import sum_of


@sum_of
def frequency_kl(
    location: Float[Tensor, "G Q R P"],
    log_std: Float[Tensor, "G Q R P"],
    noise: Float[Tensor, "G Q R P"] | None,
    lengthscale: Float[Tensor, "G Q P"],
) -> Float[Tensor, ""]:
    """With `noise` the location is m + s·noise; nothing cancels where q is near the prior."""
    ell = lengthscale.unsqueeze(2)
    mean = location if noise is None else location - torch.exp(log_std) * noise
    twice = 2 * (log_std + torch.log(ell))
    return 0.5 * ((ell * mean).square() + torch.expm1(twice) - twice).sum()


def _by_torch(*arguments: Any) -> Tensor:
    from deeplfm.sums.torch.frequency_kl import frequency_divergence

    return frequency_divergence(*arguments)


def _by_triton(*arguments: Any) -> Tensor:
    from deeplfm.sums.triton.frequencies import frequency_kl

    return frequency_kl(*arguments)


frequency_kl.add("triton", _by_triton)
frequency_kl.add("torch", _by_torch)
