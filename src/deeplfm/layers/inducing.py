"""The inducing layer of DLFM-VIP: forces with inducing points, through an ODE.  [section 3.2]

    f_d(x) = Σ_q a_{dq} ∫ G_d(x - τ) u_q(τ) dτ + (x W)_d,   G_d(x) = Π_p G_{dp}(x_p)

A draw of u is waves that carry the prior and bumps that carry the data (`forces`); the layer maps
both through the ODE in closed form. W is a fixed mean function, if there is one.
"""

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, final

import torch
from jaxtyping import Float
from torch import Tensor, nn

from deeplfm.forces import SMOOTH, ForceKernel, ForcePath, ForcePrior, InducingPosterior
from deeplfm.forces.numbers import random_numbers
from deeplfm.greens_functions import FixedDynamics, GreensFunction
from deeplfm.layers.base import Layer, join
from deeplfm.responses.covariances import output_covariance
from deeplfm.shapes import Memory, check_count, check_shape
from deeplfm.sums import Backend, bump_sum, bumps_at, force_response_sum, matheron_draw


@final
class InducingLayer(Layer):
    """A layer of D outputs over P inputs, driven by Q forces that all of them share.

    greens_function: a template, copied; its parameters are per output and input.
    inducing_inputs: Z [M, P], shared by the forces, or [Q, M, P]; `learn_inputs=False` fixes them.
    num_basis:       waves of a draw of the prior.
    shared_lengthscale: one for all forces, [1, P]; else each has its own, [Q, P]. With shared
                     inducing inputs too, the bumps of all forces are the same, and made once.
    mean_weights:    W [P, D], or none.
    force:           the kind of covariance that the forces have.
    """

    mean_weights: Tensor | None

    def __init__(
        self,
        num_inputs: int,
        num_outputs: int,
        *,
        greens_function: GreensFunction,
        inducing_inputs: Float[Tensor, "*Q M P"],
        num_forces: int = 1,
        num_basis: int = 100,
        lengthscale: Tensor | float = 1.0,
        shared_lengthscale: bool = True,
        memory: Memory = "infinite",
        learn_inputs: bool = True,
        mean_weights: Float[Tensor, "P D"] | None = None,
        force: ForceKernel = SMOOTH,
        jitter: float = 1e-6,  # less, and a sum of bumps in float32 would lose what it gains
        generator: torch.Generator | None = None,
    ) -> None:
        greens_function.check_memory(memory)
        check_count("num_basis", num_basis)
        super().__init__(num_inputs, num_outputs, greens_function.tiled(num_outputs, num_inputs))
        self.num_basis, self.memory = num_basis, memory
        prior = ForcePrior(
            lengthscale,
            num_forces=num_forces,
            num_inputs=num_inputs,
            kernel=force,
            shared_lengthscale=shared_lengthscale,
            learn=("lengthscale",),  # the amplitude of a force is in the sensitivities
        )
        self.one_kernel = shared_lengthscale and inducing_inputs.ndim == 2
        self.posterior = InducingPosterior(
            prior, inducing_inputs, learn_inputs=learn_inputs, jitter=jitter
        )
        like = prior.lengthscale
        mixing = torch.ones(num_outputs, num_forces, dtype=torch.float64)
        if num_forces > 1:  # equal ones would make the forces one and the same
            mixing = torch.randn(num_outputs, num_forces, generator=generator, dtype=torch.float64)
        self.sensitivities = nn.Parameter(mixing.to(like))
        if mean_weights is not None:
            check_shape("mean_weights", mean_weights, (num_inputs, num_outputs), "Transpose them.")
            mean_weights = mean_weights.detach().to(like).clone()
        self.register_buffer("mean_weights", mean_weights)

    def draw(
        self,
        num_samples: int,
        generator: torch.Generator | None = None,
        backend: Backend = "auto",
    ) -> "InducingPath":
        """Where no gradient is asked for, in float64: the bumps of a draw cancel each other."""
        if torch.is_grad_enabled() or self.sensitivities.dtype == torch.float64:
            force = self.posterior.draw(num_samples, self.num_basis, generator)
            force = replace(force, centers=force.centers.clone())
            return self._path(force, backend, approximate=force.theta.dtype == torch.float32)
        twin = copy.deepcopy(self).double()
        force = twin.posterior.draw(num_samples, self.num_basis, generator)
        return twin._path(force, backend, approximate=True)

    def draw_for_training(
        self,
        num_samples: int,
        generator: torch.Generator | None = None,
        backend: Backend = "auto",
        *,
        local: bool = False,
    ) -> "InducingPath":
        """One prior basis for all samples, bumps may be approximate; `local` changes nothing.

        Nothing waits for the device: a Gram matrix that is not positive definite makes NaN, which
        the loop finds later.
        """
        posterior, prior = self.posterior, self.posterior.prior
        z, whitened, variance = posterior.inducing_inputs, posterior.whitened, prior.variance
        numbers = random_numbers(
            num_samples, self.num_basis, whitened.shift, z.shape[-1], prior.kernel, generator
        )
        ell = prior.lengthscale_rows
        rows = z if z.ndim == 3 else z[None]
        theta, coefficients = matheron_draw.by(
            backend,
            *(prior.kernel, rows, ell, variance),
            *(*whitened.parts(), posterior.relative_jitter, *numbers),
        )
        force = ForcePath(
            theta=theta,
            phase=numbers.phase,
            amplitude=(variance * (2 / self.num_basis)).sqrt()[:, None] * numbers.weights,
            centers=posterior.centers(),
            lengthscale=ell if len(ell) == len(variance) else ell.expand(len(variance), -1),
            coefficients=coefficients,
            mixture=prior.kernel.mixture(),
        )
        return self._path(force, backend, approximate=True, copy=False)

    def kl(self, backend: Backend = "auto") -> Float[Tensor, ""]:
        return self.posterior.kl().sum()

    def lengthscales(self) -> Float[Tensor, " P"]:
        return self.posterior.prior.lengthscale.detach().amin(0)

    def mean(self, x: Float[Tensor, "*S N P"]) -> Float[Tensor, "*S N D"] | float:
        """The mean function."""
        return 0.0 if self.mean_weights is None else x @ self.mean_weights

    def features(self, x: Float[Tensor, "N P"]) -> Float[Tensor, "N D Q M"]:
        """A with f = A v' + what no v' can reach: a_{dq} cov(f_d, u_q(Z)) L^{-T}; float64."""
        posterior, prior = self.posterior, self.posterior.prior
        factor, _ = posterior.gram_factor()
        distinct = slice(0, 1 if self.one_kernel else None)
        centers, ell = posterior.centers()[distinct], prior.lengthscale[distinct]
        bumps = torch.zeros((), dtype=ell.dtype, device=ell.device)
        for weight, s in prior.kernel.mixture():
            made = bumps_at.by("plain", self.greens_function, x, centers, s * ell, self.memory)
            bumps = bumps + weight * made
        scale = self.sensitivities * prior.variance
        covariance = (bumps * scale[..., None]).double().permute(2, 3, 0, 1)  # Q M N D
        solved = torch.linalg.solve_triangular(factor, covariance.flatten(2), upper=False)
        features: Tensor = solved.unflatten(-1, covariance.shape[2:]).permute(2, 3, 0, 1)
        return features

    def prior_variance(self, x: Float[Tensor, "N P"]) -> Float[Tensor, "N D"]:
        """Variance of f at x, without the mean function; with infinite memory it is constant."""
        prior, g = self.posterior.prior, self.greens_function
        # Before the origin of zero memory the ODE runs backwards: the variance is that of |x|.
        rows = x[:1] if self.memory == "infinite" else x.abs()
        by_row = []
        for row in rows[:, None]:
            unit = torch.zeros((), dtype=row.dtype, device=row.device)
            for weight, s in prior.kernel.mixture():
                ell = s * prior.lengthscale
                unit = unit + weight * output_covariance(g, g, row, row, ell, self.memory)
            by_row.append(unit[..., 0])
        unit = torch.cat(by_row, dim=-1)  # D D Q N
        own = unit.expand(self.num_outputs, self.num_outputs, -1, -1).diagonal(dim1=0, dim2=1)
        variance = torch.einsum("qnd,dq,q->nd", own, self.sensitivities.square(), prior.variance)
        return variance.expand(len(x), -1)

    def moments(self, x: Float[Tensor, "N P"]) -> "Moments":
        """Mean and variance of f at each point, exact."""
        a = self.features(x)
        whitened = self.posterior.whitened
        mean = torch.einsum("ndqm,qm->nd", a, whitened.mean.to(a))
        spread = torch.einsum("ndqm,qmk->ndqk", a, whitened.factor.to(a)).square().sum((-2, -1))
        known = a.square().sum((-2, -1))
        prior = self.prior_variance(x).to(a)
        return Moments(mean + self.mean(x), prior - known + spread)

    def forces(self, tau: Float[Tensor, "S3 N P"], path: "InducingPath") -> Float[Tensor, "S N Q"]:
        return path.forces(tau)

    def force_names(self, functions: Sequence[str], inputs: Sequence[str]) -> tuple[str, ...]:
        return tuple(f"force {q}" for q in range(self.sensitivities.shape[1]))

    @property
    def elements(self) -> int:
        if self.memory == "zero":
            return self.num_outputs * self.posterior.inducing_inputs.numel()
        return 64 * self.num_inputs + self.num_outputs  # polynomials; waves and bumps in pieces

    def recover(self) -> bool:
        return self.posterior.raise_jitter()

    def _path(
        self, force: ForcePath, backend: Backend, *, approximate: bool, copy: bool = True
    ) -> "InducingPath":
        sensitivities, mean_weights = self.sensitivities, self.mean_weights
        if copy and mean_weights is not None:
            mean_weights = mean_weights.clone()
        return InducingPath(
            self.greens_function.fixed(copy=copy),
            force,
            sensitivities.clone() if copy else sensitivities,
            mean_weights,
            self.memory,
            self.one_kernel,
            approximate,
            backend,
        )


class Moments(NamedTuple):
    """The mean and the variance of f at each point."""

    mean: Float[Tensor, "N D"]
    variance: Float[Tensor, "N D"]


@final
@dataclass(frozen=True, eq=False)
class InducingPath:
    """Functions drawn from an inducing layer: a drawn force, through its ODE.

    one_kernel:  all forces have the same bumps.
    approximate: bumps may be polynomials or series, good to about 1e-5 of the function.
    Points and values may be of another type than the numbers of the path.
    """

    dynamics: FixedDynamics
    force: ForcePath
    sensitivities: Float[Tensor, "D Q"]
    mean_weights: Float[Tensor, "P D"] | None
    memory: Memory
    one_kernel: bool
    approximate: bool
    backend: Backend = "auto"

    def __call__(
        self, x: Float[Tensor, "S3 N P"], shared: Float[Tensor, "N P2"] | None = None
    ) -> Float[Tensor, "S N D"]:
        force, x = self.force, join(x, shared)
        wanted, x = x, x.to(force.theta)
        kinds = slice(0, 1 if self.one_kernel else None)
        centers, ell = force.centers[kinds], force.lengthscale[kinds]
        (weight, scale), *others = force.mixture
        coefficients = force.coefficients if weight == 1 else weight * force.coefficients
        total = force_response_sum.by(
            self.backend,
            *(self.dynamics, x, force.theta, force.phase, force.amplitude),
            *(centers, ell if scale == 1 else scale * ell, coefficients),
            *(self.sensitivities, self.memory),
            approximate=self.approximate,
        )
        if others:
            weights = self.sensitivities[..., None] * force.coefficients[:, None]  # S D Q M
            weights = weights.sum(2, keepdim=True) if self.one_kernel else weights
            for weight, scale in others:
                total = total + bump_sum.by(
                    self.backend,
                    *(self.dynamics, x, centers, scale * ell, weight * weights, self.memory),
                    approximate=self.approximate,
                )
        total = total.to(wanted)
        return total if self.mean_weights is None else total + wanted @ self.mean_weights.to(wanted)

    def forces(self, tau: Float[Tensor, "S3 N P"]) -> Float[Tensor, "S N Q"]:
        """The forces at `tau`."""
        return self.force(tau.to(self.force.theta)).to(tau)
