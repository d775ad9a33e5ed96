"""Cholesky factors of Gram matrices: float64, with a jitter that grows only if it must.

The jitter is relative to the variance, and what was used is returned, since a draw by Matheron's
rule has to add the same noise. A matrix that stays indefinite is an error, never NaN.
"""

import logging

import torch
from jaxtyping import Float
from torch import Tensor

from deeplfm.errors import NumericalError

logger = logging.getLogger(__name__)

FIRST_JITTER, LAST_JITTER = 1e-8, 1e-2


def jittered_cholesky(
    gram: Float[Tensor, "*batch M M"],
    variance: Float[Tensor, "*batch"],
    jitter: float = FIRST_JITTER,
) -> tuple[Float[Tensor, "*batch M M"], Float[Tensor, "*batch"]]:
    """L and ε, both float64, with L Lᵀ = gram + ε I and ε = jitter · variance.

    Each matrix of the batch that fails is tried again with ten times its jitter, up to 1e-2.
    """
    gram, variance = gram.double(), variance.double()
    if not bool(gram.isfinite().all()):
        raise NumericalError(
            "a Gram matrix must be finite; got NaN or infinity in it. "
            "Look for NaN in the inputs, or for a lengthscale that has collapsed to 0."
        )
    identity = torch.eye(gram.shape[-1], dtype=gram.dtype, device=gram.device)
    relative = torch.full_like(variance, jitter)
    while True:
        noise = relative * variance
        factor, info = torch.linalg.cholesky_ex(gram + noise[..., None, None] * identity)
        failed = info > 0
        if not bool(failed.any()):
            return factor, noise
        if not float(relative[failed].max()) * 10 <= LAST_JITTER * (1 + 1e-9):
            raise NumericalError(
                f"a Gram matrix must be positive definite with jitter {LAST_JITTER:g} at most "
                f"(relative to the variance); {int(failed.sum())} of {failed.numel()} were not. "
                "Remove duplicate inducing inputs or shorten the lengthscale."
            )
        relative = torch.where(failed, (10 * relative).clamp(min=FIRST_JITTER), relative)
        logger.warning(
            "Gram matrix not positive definite: jitter raised to %g for %d of %d matrices",
            float(relative.max()),
            int(failed.sum()),
            failed.numel(),
        )
