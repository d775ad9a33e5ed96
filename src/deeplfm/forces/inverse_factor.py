"""The inverse Cholesky factor of a Gram matrix of unit variance, with its gradient by products.

    L Lᵀ = K + εI,  K_ij = exp(-½ Σ_p (z_ip - z_jp)²/ℓ_p²),   W = L^{-1}
    dW = -Φ(W dK Wᵀ) W, so that the gradient in K is that of -sym(Wᵀ Φ(G Wᵀ) W), G the one in W

Φ takes the lower triangle, with half of the diagonal. A device is good at products of matrices and
bad at triangular solves; nothing waits for it.
"""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor


def inverse_gram_factor(
    z: Float[Tensor, "#Q M P"], lengthscale: Float[Tensor, "#Q P"], jitter: Float[Tensor, ""]
) -> Float[Tensor, "Q M M"]:
    """W, float64; NaN where the matrix is not positive definite. The jitter has no gradient."""
    inverse: Tensor = _InverseFactor.apply(z, lengthscale, jitter)
    return inverse


class _InverseFactor(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, z: Tensor, lengthscale: Tensor, jitter: Tensor) -> Tensor:
        gram = _gram(z, lengthscale)
        noisy = gram.clone()
        noisy.diagonal(dim1=-2, dim2=-1).add_(jitter)
        factor, info = torch.linalg.cholesky_ex(noisy)
        identity = torch.eye(gram.shape[-1], dtype=gram.dtype, device=gram.device)
        inverse: Tensor = torch.linalg.solve_triangular(
            factor, identity.expand_as(gram), upper=False
        )
        inverse.masked_fill_((info > 0)[:, None, None], torch.nan)
        ctx.save_for_backward(z, lengthscale, inverse, gram)
        return inverse

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None]:
        (gradient,), (z, lengthscale, inverse, gram) = gradients, ctx.saved_tensors
        if torch.is_grad_enabled():  # derivatives of derivatives need it as a function
            gram = _gram(z, lengthscale)
        half = torch.tril(gradient @ inverse.mT)
        half.diagonal(dim1=-2, dim2=-1).mul_(0.5)
        by_gram = inverse.mT @ half @ inverse
        # Less twice the symmetric part: each distance is in two entries.
        weights = (by_gram + by_gram.mT) * gram
        scaled = z / lengthscale[:, None]
        push = weights.sum(-1, keepdim=True) * scaled - weights @ scaled
        by_z = (push / lengthscale[:, None]).sum_to_size(z.shape)
        by_lengthscale = -(scaled * push).sum(-2) / lengthscale
        return by_z, by_lengthscale.sum_to_size(lengthscale.shape), None


def _gram(z: Tensor, lengthscale: Tensor) -> Tensor:
    scaled = (z - z.mean(-2, keepdim=True)) / lengthscale[:, None]
    half = scaled.square().sum(-1, keepdim=True) * -0.5
    # A product is faster than all differences; in float64 it loses nothing that counts.
    return torch.exp(torch.baddbmm(half + half.mT, scaled, scaled.mT).clamp(max=0))
