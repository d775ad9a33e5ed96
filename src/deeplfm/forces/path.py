"""A drawn latent force is a function: waves that carry the prior, bumps that carry the data.

    u_q(τ) = Σ_i a_qi cos(θ_qiᵀτ + β_qi) + Σ_j c_qj k(r_qj),  r² = Σ_p (τ_p - z_qjp)² / ℓ_qp²

The same path evaluated twice, in chunks or on a grid, is the same function. It holds numbers only:
priors and posteriors make it, responses map it through an ODE.
"""

from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from deeplfm.errors import InputError
from deeplfm.forces.kernels import Mixture
from deeplfm.shapes import as_tensors, check_finite


@final
@dataclass(frozen=True, eq=False)
class ForcePath:
    """S draws of Q forces over P inputs; with M = 0 there are no bumps.

    S2 is S, or 1 where all draws share the frequencies and phases of one basis; Q2 is Q, or 1
    where all forces share centers and lengthscale.
    """

    theta: Float[Tensor, "S2 Q B P"]
    phase: Float[Tensor, "S2 Q B"]
    amplitude: Float[Tensor, "S Q B"]
    centers: Float[Tensor, "Q2 M P"]
    lengthscale: Float[Tensor, "Q2 P"]
    coefficients: Float[Tensor, "S Q M"]
    mixture: Mixture = ((1.0, 1.0),)  # of squared exponentials, that a bump is

    @property
    def num_samples(self) -> int:
        """S, the number of draws."""
        return self.amplitude.shape[0]

    @property
    def num_forces(self) -> int:
        """Q, the number of forces."""
        return self.theta.shape[1]

    def __call__(self, x: Float[Tensor, "*S N P"]) -> Float[Tensor, "S N Q"]:
        """The forces at `x`, the same inputs [N, P] for all draws or [S, N, P]."""
        x = self.inputs(x)
        phases = x[:, None] @ self.theta.mT + self.phase[:, :, None, :]
        waves = torch.einsum("sqnb,sqb->snq", torch.cos(phases), self.amplitude)
        if self.centers.shape[1] == 0:
            return waves
        scaled_x = x[:, None] / self.lengthscale[:, None]
        scaled_z = self.centers / self.lengthscale[:, None]
        distance = (scaled_x[..., :, None, :] - scaled_z[:, None, :, :]).square().sum(-1)
        bumps = sum(weight * torch.exp(distance / (-2 * s**2)) for weight, s in self.mixture)
        return waves + torch.einsum("sqnm,sqm->snq", bumps, self.coefficients)

    def waves_at(self, points: Float[Tensor, "Q M P"]) -> Float[Tensor, "S Q M"]:
        """The waves alone, each force at its own points."""
        cosines = torch.cos(points @ self.theta.mT + self.phase[:, :, None, :])
        samples = cosines.expand(self.num_samples, -1, -1, -1)
        return torch.einsum("sqmb,sqb->sqm", samples, self.amplitude)

    def inputs(self, x: Tensor) -> Tensor:
        """`x` as [S, N, P], checked."""
        inputs = self.theta.shape[-1]
        as_tensors({"x": x, "the path": self.theta.new_zeros(())})
        if x.ndim not in (2, 3) or x.shape[-1] != inputs:
            raise InputError(
                f"x must be [N, {inputs}] or [S, N, {inputs}]; got {tuple(x.shape)}. "
                "Add the input dimension with x[:, None]."
            )
        check_finite("x", x, "Remove those rows.")
        x = x if x.ndim == 3 else x[None]
        if x.shape[0] not in (1, self.num_samples):
            raise InputError(
                f"x must be [N, P] or [{self.num_samples}, N, P], one set of inputs per draw; got "
                f"{tuple(x.shape)}. Pass the inputs of all draws, or of none."
            )
        return x.expand(self.num_samples, -1, -1)
