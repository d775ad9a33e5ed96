"""The posterior of the latent forces, through their values v at inducing inputs Z.

    v = L v',  L Lᵀ = Kzz + εI,  q(v') = N(μ, C Cᵀ);   KL(q(v') ‖ N(0, I)) in closed form
    draw:  u(τ) = u_prior(τ) + k(τ, Z) (Kzz + εI)^{-1} (v - u_prior(Z) - √ε η),  η ~ N(0, I)

Owns Z and q(v). Gram matrices and factors are float64 whatever the type of the parameters.
"""

from dataclasses import replace
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor, nn

from deeplfm.errors import InputError
from deeplfm.forces.cholesky import FIRST_JITTER, jittered_cholesky
from deeplfm.forces.path import ForcePath
from deeplfm.forces.prior import SquaredExponential, squared_exponential
from deeplfm.gaussians import FullGaussian
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
        check_finite("inducing_inputs", inducing_inputs, "Remove those rows.")
        if not jitter > 0:
            raise InputError(
                f"jitter must be above 0; got {jitter:g}. Leave it at {FIRST_JITTER:g}."
            )
        self.prior = prior
        self.jitter = jitter
        self.inducing_inputs = nn.Parameter(
            inducing_inputs.detach().to(prior.lengthscale).clone(), requires_grad=learn_inputs
        )
        self.whitened = FullGaussian((num_forces, shape[-2]), like=prior.lengthscale)

    def kl(self) -> Float[Tensor, "Q"]:
        """KL(q(v') ‖ N(0, I)) of each force; exactly 0 at the prior."""
        return self.whitened.kl()

    def moments(
        self, x: Float[Tensor, "N P"]
    ) -> tuple[Float[Tensor, "N Q"], Float[Tensor, "Q N N"]]:
        """Mean and covariance of the forces at `x`, float64, without sampling."""
        z, x = self.inducing_inputs.double(), self.prior.checked("x", x).double()
        ell, variance = self.prior.lengthscale.double(), self.prior.variance.double()
        factor, _ = self._gram_factor()
        Kzx = squared_exponential(z, x, ell, variance)
        projection = torch.linalg.solve_triangular(factor, Kzx, upper=False)
        mean = torch.einsum("qmn,qm->nq", projection, self.whitened.mean.double())
        spread = self.whitened.factor.double().mT @ projection
        Kxx = squared_exponential(x, x, ell, variance)
        return mean, Kxx - projection.mT @ projection + spread.mT @ spread

    def draw(
        self, num_samples: int, num_basis: int, generator: torch.Generator | None = None
    ) -> ForcePath:
        """Functions from the posterior by Matheron's rule, each with its own prior basis."""
        path = self.prior.draw(num_samples, num_basis, generator)
        whitened = self.whitened.draw(num_samples, generator)
        eta = torch.randn(
            whitened.shape, generator=generator, dtype=whitened.dtype, device=whitened.device
        )
        factor, epsilon = self._gram_factor()
        z = self.inducing_inputs.expand(*whitened.shape[1:], -1)
        residual = path.waves_at(z).double() + epsilon.sqrt()[:, None] * eta.double()
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
