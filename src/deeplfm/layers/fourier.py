"""The Fourier layer of DLFM-RFF: random waves through an ODE, weighted.  [paper, section 3.1]

    φ_{qr}(x) = Σ_m |S_{qm}|/√R · wave(x_m; s_m, ω_{qmr}),   f = [Re φ, Im φ] W + c

Before the origin of zero memory the ODE runs backwards from rest: response(x) = (-1)^n times the
conjugate of response(|x|), n the order of the ODE. It joins smoothly at 0 and stays bounded, where
the exact continuation would grow like e^{|sx|}.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias, final

import torch
from jaxtyping import Float
from torch import Tensor, nn

from deeplfm.errors import InputError
from deeplfm.forces import SMOOTH, ForceKernel
from deeplfm.greens_functions import GreensFunction
from deeplfm.layers.base import Layer
from deeplfm.layers.fourier_paths import FourierPath, FourierWaves, LocalDraw
from deeplfm.layers.frequencies import Frequencies, Treatment
from deeplfm.shapes import Memory, check_above_zero, check_choice
from deeplfm.sums import Backend
from deeplfm.variational.gaussians import DiagonalGaussian, FullGaussian, VariationalGaussian
from deeplfm.variational.parameters import Quantity

Combine: TypeAlias = Literal["sum", "product"]
Weights: TypeAlias = Literal["diagonal", "full"]


@final
class FourierLayer(Layer):
    """A layer of D outputs over P inputs, driven by Q forces of R features each.

    greens_function: a template, copied; its parameters are per input, and per output too with
                     `per_output` (the last layer), as are Ω and the sensitivities then.
    inputs:          "sum" (the paper) or "product" over the inputs; NoDynamics is a plane wave.
    shared_forces:   one W per force with sensitivities [D, Q]: the classical latent force model.
    input_weights, random_phases: weights α_m on the inputs of a sum; a uniform phase per (m, r),
                     which removes the cross terms of a sum from its covariance.
    force:           the kind of covariance that the forces have.
    """

    def __init__(
        self,
        num_inputs: int,
        num_outputs: int,
        *,
        greens_function: GreensFunction,
        num_forces: int = 1,
        num_features: int = 100,
        lengthscale: Tensor | float = 1.0,
        memory: Memory = "zero",
        inputs: Combine = "sum",
        frequencies: Treatment = "fixed_noise",
        weights: Weights = "diagonal",
        weight_scale: float = 1.0,
        per_output: bool = False,
        shared_forces: bool = False,
        input_weights: bool = False,
        random_phases: bool = False,
        force: ForceKernel = SMOOTH,
        generator: torch.Generator | None = None,
    ) -> None:
        check_choice("inputs", inputs, Combine)
        check_choice("frequencies", frequencies, Treatment)
        check_choice("weights", weights, Weights)
        check_above_zero("weight_scale", weight_scale)
        greens_function.check_memory(memory)
        groups = num_outputs if per_output else 1
        super().__init__(num_inputs, num_outputs, greens_function.tiled(groups, num_inputs))
        self.memory: Memory = memory
        self.plane_wave = inputs == "product" or greens_function.order == 0
        if self.plane_wave and (input_weights or random_phases):
            raise InputError(
                "input_weights and random_phases belong to a sum over inputs; got "
                f"inputs={inputs!r} with {type(greens_function).__name__}. Leave them out."
            )
        # A force that several outputs share has one set of frequencies.
        sets = 1 if shared_forces else groups
        ell = Quantity("lengthscale", lengthscale).tiled(sets, num_forces, num_inputs)
        self.frequencies = Frequencies(
            ell, num_features, frequencies, generator, force=force, over_all_inputs=self.plane_wave
        )
        like = self.frequencies.noise
        self.sensitivities = nn.Parameter(torch.ones_like(like[:, :, 0]))
        self.output_sensitivities = (
            nn.Parameter(like.new_ones(num_outputs, num_forces)) if shared_forces else None
        )
        self.input_weights = nn.Parameter(like.new_ones(num_inputs)) if input_weights else None
        phases = torch.rand(like.shape, generator=generator, dtype=torch.float64).to(like)
        self.phases: Tensor | None
        self.register_buffer("phases", 2 * math.pi * phases if random_phases else None)
        size = 2 * num_features
        shape = (num_forces, size) if shared_forces else (num_outputs, num_forces * size)
        family = FullGaussian if weights == "full" else DiagonalGaussian
        self.weights: VariationalGaussian = family(shape, like=like, scale=weight_scale)
        self.offset = nn.Parameter(like.new_zeros(num_outputs))

    def draw(
        self,
        num_samples: int,
        generator: torch.Generator | None = None,
        backend: Backend = "auto",
    ) -> FourierPath:
        waves = self.waves(self.frequencies.draw(num_samples, generator))
        weights = self.weights.draw(num_samples, generator)
        sensitivities = _copied(self.output_sensitivities)
        return FourierPath(waves, weights, sensitivities, self.offset.clone(), backend)

    def draw_for_training(
        self,
        num_samples: int,
        generator: torch.Generator | None = None,
        backend: Backend = "auto",
        *,
        local: bool = False,
    ) -> FourierPath | LocalDraw:
        """One resampled Ω for all samples; `local`: f at the data instead of W, with less noise."""
        waves = self.waves(self.frequencies.draw(1, generator), copy=False)
        weights = self.weights
        if not local:
            drawn = weights.draw(num_samples, generator)
            return FourierPath(waves, drawn, self.output_sensitivities, self.offset, backend)
        if not isinstance(weights, DiagonalGaussian) or self.output_sensitivities is not None:
            raise InputError(
                "local reparameterisation needs weights='diagonal' without shared_forces; got "
                "others. Draw functions instead."
            )
        return LocalDraw(waves, weights.mean, weights.std, self.offset, num_samples, generator)

    def kl(self, backend: Backend = "auto") -> Float[Tensor, ""]:
        return self.weights.kl().sum() + self.frequencies.kl(backend)

    def waves(self, omega: Float[Tensor, "S2 G Q R P"], *, copy: bool = True) -> FourierWaves:
        """The waves of this layer for frequencies Ω, as numbers.

        A copy stays as it is when parameters move; what is evaluated at once needs none.
        """
        sensitivities = self.sensitivities.permute(0, 2, 1)
        return FourierWaves(
            self.greens_function.fixed(copy=copy),
            omega.clone() if copy else omega,
            sensitivities.clone() if copy else sensitivities,
            _copied(self.input_weights) if copy else self.input_weights,
            _copied(self.phases) if copy else self.phases,
            self.memory,
            self.plane_wave,
        )

    def lengthscales(self) -> Float[Tensor, " P"]:
        lengthscales: Tensor = self.frequencies.lengthscale().detach()
        return lengthscales.flatten(0, -2).amin(0)

    def features(
        self, x: Float[Tensor, "S N P"], omega: Float[Tensor, "S2 G Q R P"]
    ) -> Float[Tensor, "S3 N G2 Q F"]:
        """Φ: real and imaginary parts of the waves, with their amplitudes."""
        return self.waves(omega).features(x)

    def forces(self, tau: Float[Tensor, "S3 N P"], path: FourierPath) -> Float[Tensor, "S N F"]:
        """The forces of each output that the same weights drive: u_dqp at `tau`.

        With shared forces those of D = 1; a plane wave has one force over all inputs, P = 1.
        """
        return path.forces(tau)

    def force_names(self, functions: Sequence[str], inputs: Sequence[str]) -> tuple[str, ...]:
        """Each function has forces of its own, unless they are shared; along each of its inputs."""
        owners = (
            [""] if self.output_sensitivities is not None else [f"{one}, " for one in functions]
        )
        along = [""] if self.plane_wave else [f" along {one}" for one in inputs]
        forces = range(self.sensitivities.shape[1])
        return tuple(f"{one}force {q}{way}" for one in owners for q in forces for way in along)

    def parameter_groups(self) -> Mapping[str, list[nn.Parameter]]:
        weights = [*self.weights.parameters(), self.offset]
        frequencies = self.frequencies.own_parameters()
        known = {id(parameter) for parameter in (*weights, *frequencies)}
        rest = [parameter for parameter in self.parameters() if id(parameter) not in known]
        return {"weights": weights, "frequencies": frequencies, "hyperparameters": rest}

    @property
    def elements(self) -> int:
        if self.plane_wave and self.memory == "zero" and self.greens_function.order > 0:
            features = self.frequencies.noise[0, ..., 0].numel()
            return self.num_inputs * self.num_outputs * features
        return self.num_inputs * (32 + self.num_outputs)  # an interpolation; waves come in pieces


def _copied(values: Tensor | None) -> Tensor | None:
    return None if values is None else values.clone()
