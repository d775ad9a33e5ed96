"""The inducing layer of DLFM-VIP: forces with inducing points, through an ODE.  [section 3.2]

    f_d(x) = Σ_q a_{dq} ∫ G_d(x - τ) u_q(τ) dτ + (x W)_d,   G_d(x) = Π_p G_{dp}(x_p)

A draw of u is waves that carry the prior and bumps that carry the data (`forces`); the layer maps
both through the ODE in closed form. W is a fixed mean function, if there is one.
"""

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import NamedTuple, final

import torch
from jaxtyping import Float
from torch import Tensor, nn

from deeplfm.forces import ForcePath, InducingPosterior, SquaredExponential
from deeplfm.greens_functions import GreensFunction
from deeplfm.greens_functions.base import complex_product
from deeplfm.layers.base import Layer, join
from deeplfm.responses import system_wave_response
from deeplfm.responses.covariances import output_covariance
from deeplfm.shapes import Memory, check_count, check_shape
from deeplfm.sums.backends import by_kernels, by_tables, natively
from deeplfm.sums.bump_sum import bump_sum, bumps_of
from deeplfm.sums.c import matheron as native_matheron
from deeplfm.sums.c.inducing import first_order_answer
from deeplfm.sums.torch.matheron import matheron_draw
from deeplfm.sums.torch.plane_waves import plane_sum
from deeplfm.sums.wave_sum import wave_sum


@final
class InducingLayer(Layer):
    """A layer of D outputs over P inputs, driven by Q forces that all of them share.

    greens_function: a template, copied; its parameters are per output and input.
    inducing_inputs: Z [M, P], shared by the forces, or [Q, M, P]; `learn_inputs=False` fixes them.
    num_basis:       waves of a draw of the prior.
    shared_lengthscale: one for all forces, [1, P]; else each has its own, [Q, P]. With shared
                     inducing inputs too, the bumps of all forces are the same, and made once.
    mean_weights:    W [P, D], or none.
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
        jitter: float = 1e-6,  # less, and a sum of bumps in float32 would lose what it gains
        generator: torch.Generator | None = None,
    ) -> None:
        greens_function.check_memory(memory)
        check_count("num_basis", num_basis)
        super().__init__(num_inputs, num_outputs, greens_function.tiled(num_outputs, num_inputs))
        self.num_basis, self.memory = num_basis, memory
        prior = SquaredExponential(
            lengthscale,
            num_forces=num_forces,
            num_inputs=num_inputs,
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

    def draw(self, num_samples: int, generator: torch.Generator | None = None) -> "InducingPath":
        """Where no gradient is asked for, in float64: the bumps of a draw cancel each other."""
        if torch.is_grad_enabled() or self.sensitivities.dtype == torch.float64:
            force = self.posterior.draw(num_samples, self.num_basis, generator)
            return InducingPath(self, force, interpolate=force.theta.dtype == torch.float32)
        twin = copy.deepcopy(self).double()
        force = twin.posterior.draw(num_samples, self.num_basis, generator)
        return InducingPath(twin, force, interpolate=True)

    def draw_for_training(
        self, num_samples: int, generator: torch.Generator | None = None, *, local: bool = False
    ) -> "InducingPath":
        """One prior basis for all samples, bumps from tables; `local` changes nothing here."""
        z = self.posterior.inducing_inputs
        compiled = natively(z, z) and z.shape[-2] <= native_matheron.MOST
        rule = native_matheron.matheron_draw if compiled else matheron_draw
        force = self.posterior.draw(
            num_samples, self.num_basis, generator, in_training=True, rule=rule
        )
        return InducingPath(self, force, interpolate=True)

    def kl(self) -> Float[Tensor, ""]:
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
        bumps = bumps_of(self.greens_function, x[None], centers, ell, self.memory)[0]
        scale = self.sensitivities * prior.variance
        covariance = (bumps * scale[..., None]).double().permute(2, 3, 0, 1)  # Q M N D
        solved = torch.linalg.solve_triangular(factor, covariance.flatten(2), upper=False)
        features: Tensor = solved.unflatten(-1, covariance.shape[2:]).permute(2, 3, 0, 1)
        return features

    def prior_variance(self, x: Float[Tensor, "N P"]) -> Float[Tensor, "N D"]:
        """Of f, without the mean function; the same everywhere with infinite memory."""
        prior, g = self.posterior.prior, self.greens_function
        # Before the origin of zero memory the ODE runs backwards: the variance is that of |x|.
        rows = x[:1] if self.memory == "infinite" else x.abs()
        unit = torch.cat(
            [
                output_covariance(g, g, row, row, prior.lengthscale, self.memory)[..., 0]
                for row in rows[:, None]
            ],
            dim=-1,
        )  # D D Q N
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
        return path.force(tau.to(path.force.theta)).to(tau)

    def force_names(self, functions: Sequence[str], inputs: Sequence[str]) -> tuple[str, ...]:
        return tuple(f"force {q}" for q in range(self.sensitivities.shape[1]))

    @property
    def elements(self) -> int:
        if self.memory == "zero":
            return self.num_outputs * self.posterior.inducing_inputs.numel()
        return 64 * self.num_inputs + self.num_outputs  # polynomials; waves and bumps in pieces

    def recover(self) -> bool:
        return self.posterior.raise_jitter()


class Moments(NamedTuple):
    """Of f at each point."""

    mean: Float[Tensor, "N D"]
    variance: Float[Tensor, "N D"]


@final
@dataclass(frozen=True, eq=False)
class InducingPath:
    """Functions drawn from an inducing layer: a drawn force, through its ODE.

    `interpolate`: bumps may come from tables, in either type good to about 1e-5 of the function.
    Points and values may be of another type than the numbers of the path.
    """

    layer: InducingLayer
    force: ForcePath
    interpolate: bool

    def __call__(
        self, x: Float[Tensor, "S3 N P"], shared: Float[Tensor, "N P2"] | None = None
    ) -> Float[Tensor, "S N D"]:
        layer, force, x = self.layer, self.force, join(x, shared)
        wanted, x = x, x.to(force.theta)
        centers, ell = force.centers, force.lengthscale
        if layer.one_kernel and len(centers) > 1:
            centers, ell = centers[:1], ell[:1]
            force = replace(force, centers=centers, lengthscale=ell)
        if self._is_simple and natively(x, force.coefficients):
            answer = first_order_answer(x, force, *self._first_order()).to(wanted)
            return answer if layer.mean_weights is None else answer + layer.mean(wanted)
        coefficients = layer.sensitivities[..., None] * force.coefficients[:, None]  # S D Q M
        if layer.one_kernel:
            coefficients = coefficients.sum(2, keepdim=True)
        bumps = bump_sum(
            layer.greens_function,
            x,
            centers,
            ell,
            coefficients,
            layer.memory,
            interpolate=self.interpolate,
        )
        return (self._waves(x) + bumps + layer.mean(x)).to(wanted)

    def _waves(self, x: Tensor) -> Tensor:
        layer, force = self.layer, self.force
        g = layer.greens_function
        if self._is_simple and by_kernels(x):
            return self._waves_by_kernels(x)
        amplitude = layer.sensitivities[..., None] * force.amplitude[:, None]  # S D Q B
        if layer.memory == "zero" and g.order > 0:
            return _from_rest(layer, x, force, amplitude)
        omega = force.theta.flatten(1, 2)  # S2 QB P
        turn = force.phase.flatten(1)[:, None]
        real, imag = torch.cos(turn), torch.sin(turn)  # S2 1 QB
        answer = g.turning(omega.mT[:, None])  # S2 D P QB
        if answer is not None:
            for one in zip(*(part.unbind(2) for part in answer), strict=True):
                real, imag = complex_product((real, imag), one)
        even, odd = (amplitude.flatten(2) * part for part in (real, imag))  # S D QB
        samples, outputs, _ = even.shape
        shared = len(x) == 1 and len(omega) == 1
        # Samples over the same inputs and waves are columns of one product.
        columns = [part.flatten(0, 1).mT[None] if shared else part.mT for part in (even, odd)]
        if len(omega) == 1 and by_tables(x):
            total = plane_sum(x, omega[0], columns[0], -columns[1])
        else:
            total = columns[0].sum(-2, keepdim=True) - wave_sum(x, omega, *columns)
        return total[0].unflatten(-1, (samples, outputs)).transpose(0, 1) if shared else total

    def _waves_by_kernels(self, x: Tensor) -> Tensor:
        """The same for an ODE of first order, on CUDA."""
        from deeplfm.sums.triton.planes import plane_wave_sums
        from deeplfm.sums.triton.turning import turned_amplitudes

        theta, phase, amplitude = self.force.theta[0], self.force.phase[0], self.force.amplitude
        weights = turned_amplitudes(theta, phase, *self._first_order(), amplitude)
        return plane_wave_sums(x, theta.flatten(0, 1), *weights.unbind(), whole=True)

    @property
    def _is_simple(self) -> bool:
        """One ODE of first order along each input, with the same waves for all samples."""
        layer = self.layer
        first = layer.memory == "infinite" and layer.greens_function.order == 1
        return first and len(self.force.theta) == 1

    def _first_order(self) -> tuple[Tensor, Tensor]:
        """The decays of an ODE of first order, and the sensitivities with its gain."""
        g = self.layer.greens_function
        (factor,), gain = g.factors, g.gain()
        sensitivities: Tensor = self.layer.sensitivities
        if isinstance(gain, Tensor):
            sensitivities = sensitivities * reduce(torch.mul, gain.unbind(-1))[:, None]
        return factor[0], sensitivities


def _from_rest(layer: InducingLayer, x: Tensor, force: ForcePath, amplitude: Tensor) -> Tensor:
    """The waves with zero memory; before the origin the ODE runs backwards from rest."""
    turn = torch.polar(torch.ones_like(force.phase), force.phase)  # S2 Q B
    points, order = x[:, :, None, :, None, None], layer.greens_function.order
    omega = force.theta.permute(0, 3, 1, 2)[:, None, None]  # S2 1 1 P Q B
    before = points < 0
    waves = system_wave_response(
        layer.greens_function,
        torch.where(before, -points, points),
        torch.where(before, -omega, omega),
        layer.memory,
        trailing=2,
    )
    if order % 2:
        waves = torch.where(before, -waves, waves)
    # The gradient of torch.prod would wait for the device, to look for zeros.
    turned = reduce(torch.mul, waves.unbind(3)) * turn[:, None, None]  # S N D Q B
    turned = turned.real.expand(len(amplitude), -1, -1, -1, -1)
    return torch.einsum("sndqb,sdqb->snd", turned, amplitude)
