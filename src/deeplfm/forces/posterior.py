"""The posterior of the latent forces, through their values v at inducing inputs Z.

    v = L v',  L Lᵀ = Kzz + εI,  q(v') = N(μ, C Cᵀ);   KL(q(v') ‖ N(0, I)) in closed form
    draw:  u(τ) = u_prior(τ) + k(τ, Z) (Kzz + εI)^{-1} (v - u_prior(Z) - √ε η),  η ~ N(0, I)

Owns Z and q(v). Gram matrices and factors are float64 whatever the type of the parameters.
"""

from dataclasses import replace
from typing import Any, final

import torch
from jaxtyping import Float
from torch import Tensor, nn

from deeplfm.errors import InputError
from deeplfm.forces.cholesky import FIRST_JITTER, jittered_cholesky
from deeplfm.forces.path import ForcePath
from deeplfm.forces.prior import SquaredExponential, squared_exponential
from deeplfm.shapes import check_finite


@final
class InducingPosterior(nn.Module):
    """q(v') of Q forces at M inducing inputs; at first it is the prior, μ = 0 and C = I.

    `inducing_inputs` is [M, P], shared by the forces, or [Q, M, P]. `jitter` is ε relative to σ².
    """

    def __init__(
        self,
        prior: SquaredExponential,
        inducing_inputs: Float[Tensor, "*Q M P"],
        *,
        learn_inputs: bool = True,
        jitter: float = FIRST_JITTER,
    ) -> None:
        super().__init__()
        num_forces, num_inputs = prior.lengthscale.shape
        shape = tuple(inducing_inputs.shape)
        if (
            len(shape) not in (2, 3)
            or shape[-1] != num_inputs
            or shape[:-2] not in ((), (num_forces,))
        ):
            raise InputError(
                f"inducing_inputs must be [M, {num_inputs}] or [{num_forces}, M, {num_inputs}]; "
                f"got {shape}. Add the missing dimensions with [:, None]."
            )
        check_finite("inducing_inputs", inducing_inputs)
        self.prior = prior
        self.jitter = jitter
        self.inducing_inputs = nn.Parameter(
            inducing_inputs.detach().to(prior.lengthscale).clone(), requires_grad=learn_inputs
        )
        count = shape[-2]
        self.whitened_mean = nn.Parameter(prior.lengthscale.new_zeros(num_forces, count).detach())
        # The factor C: its diagonal through its logarithm, the rest free below it.
        self.log_diagonal = nn.Parameter(torch.zeros_like(self.whitened_mean))
        self.below_diagonal = nn.Parameter(self.whitened_mean.new_zeros(num_forces, count, count))

    @property
    def whitened_factor(self) -> Float[Tensor, "Q M M"]:
        """C, lower triangular with a positive diagonal."""
        diagonal = torch.diag_embed(torch.exp(self.log_diagonal))
        return torch.tril(self.below_diagonal, diagonal=-1) + diagonal

    def set_whitened(self, mean: Float[Tensor, "Q M"], factor: Float[Tensor, "Q M M"]) -> None:
        """Replace q(v') by N(mean, factor factorᵀ), `factor` lower triangular."""
        diagonal = factor.diagonal(dim1=-2, dim2=-1)
        if not bool((diagonal > 0).all()):
            raise InputError(
                f"factor must have a positive diagonal; got {diagonal.min().item():g}. "
                "Pass a Cholesky factor."
            )
        with torch.no_grad():
            self.whitened_mean.copy_(mean)
            self.log_diagonal.copy_(diagonal.log())
            self.below_diagonal.copy_(torch.tril(factor, diagonal=-1))

    def kl(self) -> Float[Tensor, "Q"]:
        """KL(q(v') ‖ N(0, I)) of each force; exactly 0 at the prior."""
        below = torch.tril(self.below_diagonal, diagonal=-1).square().sum((-2, -1))
        # e^{2a} - 1 - 2a per entry of the diagonal: no cancellation near the prior.
        twice = 2 * self.log_diagonal
        diagonal = (torch.expm1(twice) - twice).sum(-1)
        return (self.whitened_mean.square().sum(-1) + below + diagonal) / 2

    def moments(
        self, x: Float[Tensor, "N P"]
    ) -> tuple[Float[Tensor, "N Q"], Float[Tensor, "Q N N"]]:
        """Mean and covariance of the forces at `x`, float64, without sampling."""
        z, x = self.inducing_inputs.double(), x.double()
        ell, variance = self.prior.lengthscale.double(), self.prior.variance.double()
        factor, _ = self._gram_factor()
        Kzx = squared_exponential(z, x, ell, variance)
        projection = torch.linalg.solve_triangular(factor, Kzx, upper=False)
        mean = torch.einsum("qmn,qm->nq", projection, self.whitened_mean.double())
        spread = self.whitened_factor.double().mT @ projection
        Kxx = squared_exponential(x, x, ell, variance)
        return mean, Kxx - projection.mT @ projection + spread.mT @ spread

    def draw(
        self, num_samples: int, num_basis: int, generator: torch.Generator | None = None
    ) -> ForcePath:
        """Functions from the posterior by Matheron's rule, each with its own prior basis."""
        path = self.prior.draw(num_samples, num_basis, generator)
        num_forces, count = self.whitened_mean.shape
        options: dict[str, Any] = {
            "generator": generator,
            "dtype": self.whitened_mean.dtype,
            "device": self.whitened_mean.device,
        }
        noise = torch.randn(num_samples, num_forces, count, **options)
        eta = torch.randn(num_samples, num_forces, count, **options).double()
        whitened = self.whitened_mean + torch.einsum("qmk,sqk->sqm", self.whitened_factor, noise)
        factor, epsilon = self._gram_factor()
        z = self.inducing_inputs.expand(num_forces, count, -1)
        residual = path.waves_at(z).double() + epsilon.sqrt()[:, None] * eta
        # c = L^{-T} (v' - L^{-1} (Φ_z w + √ε η)), with draws as the columns of each force.
        residual = torch.linalg.solve_triangular(factor, residual.permute(1, 2, 0), upper=False)
        difference = whitened.double().permute(1, 2, 0) - residual
        weights = torch.linalg.solve_triangular(factor.mT, difference, upper=True)
        coefficients = (self.prior.variance.double()[:, None, None] * weights).permute(2, 0, 1)
        return replace(path, centers=z, coefficients=coefficients.to(path.theta.dtype))

    def _gram_factor(self) -> tuple[Float[Tensor, "Q M M"], Float[Tensor, "Q"]]:
        """L and ε of Kzz + εI."""
        z, variance = self.inducing_inputs.double(), self.prior.variance.double()
        gram = squared_exponential(z, z, self.prior.lengthscale.double(), variance)
        return jittered_cholesky(gram, variance, self.jitter)
