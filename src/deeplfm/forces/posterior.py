"""The posterior of the latent forces, through their values v at inducing inputs Z.

    v = L v',  L Lᵀ = Kzz + εI,  q(v') = N(μ, C Cᵀ);   KL(q(v') ‖ N(0, I)) in closed form
    draw:  u(τ) = u_prior(τ) + k(τ, Z) (Kzz + εI)^{-1} (v - u_prior(Z) - √ε η),  η ~ N(0, I)

Owns Z and q(v). Gram matrices and factors are float64 whatever the type of the parameters.
"""

import logging
from dataclasses import replace
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor, nn

from deeplfm.errors import InputError
from deeplfm.forces.cholesky import FIRST_JITTER, LAST_JITTER, jittered_cholesky
from deeplfm.forces.path import ForcePath
from deeplfm.forces.prior import ForcePrior
from deeplfm.randomness import normal
from deeplfm.shapes import check_finite
from deeplfm.variational.gaussians import FullGaussian

logger = logging.getLogger(__name__)


@final
class InducingPosterior(nn.Module):
    """q(v') of Q forces at M inducing inputs; at first it is the prior, μ = 0 and C = I.

    `inducing_inputs` is [M, P], shared by the forces, or [Q, M, P]. `jitter` is ε relative to σ².
    """

    relative_jitter: Tensor

    def __init__(
        self,
        prior: ForcePrior,
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
        self.register_buffer("relative_jitter", prior.lengthscale.new_tensor(jitter))
        self.inducing_inputs = nn.Parameter(
            inducing_inputs.detach().to(prior.lengthscale).clone(), requires_grad=learn_inputs
        )
        self.whitened = FullGaussian((num_forces, shape[-2]), like=prior.lengthscale)

    @property
    def jitter(self) -> float:
        """ε relative to σ²."""
        return float(self.relative_jitter)

    def raise_jitter(self) -> bool:
        """Ten times the jitter, and whether that is still allowed."""
        if self.jitter * 10 > LAST_JITTER * (1 + 1e-6):
            return False
        self.relative_jitter.mul_(10)
        logger.warning("loss not finite: jitter of the Gram matrices raised to %g", self.jitter)
        return True

    def kl(self) -> Float[Tensor, "Q"]:
        """KL(q(v') ‖ N(0, I)) of each force; exactly 0 at the prior."""
        return self.whitened.kl()

    def moments(
        self, x: Float[Tensor, "N P"]
    ) -> tuple[Float[Tensor, "N Q"], Float[Tensor, "Q N N"]]:
        """Mean and covariance of the forces at `x`, float64, without sampling."""
        z, x = self.inducing_inputs.double(), self.prior.checked("x", x).double()
        ell, variance = self.prior.lengthscale.double(), self.prior.variance.double()
        factor, _ = self.gram_factor()
        Kzx = self.prior.covariance_of(z, x, ell, variance)
        projection = torch.linalg.solve_triangular(factor, Kzx, upper=False)
        mean = torch.einsum("qmn,qm->nq", projection, self.whitened.mean.double())
        spread = self.whitened.factor.double().mT @ projection
        Kxx = self.prior.covariance_of(x, x, ell, variance)
        return mean, Kxx - projection.mT @ projection + spread.mT @ spread

    def draw(
        self, num_samples: int, num_basis: int, generator: torch.Generator | None = None
    ) -> ForcePath:
        """Functions from the posterior by Matheron's rule, each with its own prior basis."""
        path = self.prior.draw(num_samples, num_basis, generator)
        whitened = self.whitened.draw(num_samples, generator)
        eta = normal(whitened.shape, generator, whitened)
        z = self.centers()
        # c = σ² L^{-T} (v' - L^{-1} (Φ_z w + √ε η)), with draws as the columns of each force.
        known = path.waves_at(z)
        target, known, noise = (part.double().permute(1, 2, 0) for part in (whitened, known, eta))
        factor, epsilon = self.gram_factor()
        residual = torch.linalg.solve_triangular(
            factor, known + epsilon.sqrt()[:, None, None] * noise, upper=False
        )
        weights = torch.linalg.solve_triangular(factor.mT, target - residual, upper=True)
        weights = self.prior.variance.double()[:, None, None] * weights
        coefficients = weights.permute(2, 0, 1)
        return replace(path, centers=z, coefficients=coefficients.to(path.theta.dtype))

    def centers(self) -> Float[Tensor, "Q M P"]:
        """Z of each force."""
        return self.inducing_inputs.expand(*self.whitened.shift.shape, -1)

    def gram_factor(self) -> tuple[Float[Tensor, "Q M M"], Float[Tensor, "Q"]]:
        """L and ε of Kzz + εI, float64, with more jitter where it must be."""
        return jittered_cholesky(*self._gram(), self.jitter)

    def _gram(self) -> tuple[Float[Tensor, "Q M M"], Float[Tensor, "Q"]]:
        z, variance = self.inducing_inputs.double(), self.prior.variance.double()
        return self.prior.covariance_of(z, z, self.prior.lengthscale.double(), variance), variance
