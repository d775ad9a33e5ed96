"""The Fourier layer of DLFM-RFF: random waves through an ODE, weighted.  [paper, section 3.1]

    φ_{qr}(x) = Σ_m |S_{qm}|/√R · wave(x_m; s_m, ω_{qmr}),   f = [Re φ, Im φ] W + c

Before the origin of zero memory the ODE runs backwards from rest: response(x) = (-1)^n times the
conjugate of response(|x|), n the order of the ODE. It joins smoothly at 0 and stays bounded, where
the exact continuation would grow like e^{|sx|}.
"""

import math
from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Literal, TypeAlias, final

import torch
from jaxtyping import Float
from torch import Tensor, nn

from deeplfm.errors import InputError
from deeplfm.greens_functions import GreensFunction
from deeplfm.layers.base import Layer
from deeplfm.layers.fourier_paths import FourierPath, LocalDraw
from deeplfm.layers.frequencies import Frequencies, Treatment
from deeplfm.responses import system_wave_response
from deeplfm.shapes import Memory, check_above_zero, check_choice
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
        self.frequencies = Frequencies(ell, num_features, frequencies, generator)
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

    def draw(self, num_samples: int, generator: torch.Generator | None = None) -> FourierPath:
        omega = self.frequencies.draw(num_samples, generator)
        return FourierPath(self, omega, self.weights.draw(num_samples, generator))

    def draw_for_training(
        self, num_samples: int, generator: torch.Generator | None = None, *, local: bool = False
    ) -> FourierPath | LocalDraw:
        """One resampled Ω for all samples; `local`: f at the data instead of W, with less noise."""
        if not local:
            omega = self.frequencies.draw(1, generator)
            return FourierPath(self, omega, self.weights.draw(num_samples, generator))
        if not isinstance(self.weights, DiagonalGaussian) or self.output_sensitivities is not None:
            raise InputError(
                "local reparameterisation needs weights='diagonal' without shared_forces; got "
                "others. Draw functions instead."
            )
        return LocalDraw(
            self, self.frequencies.draw(1, generator), self.weights, num_samples, generator
        )

    def kl(self) -> Float[Tensor, ""]:
        return self.weights.kl().sum() + self.frequencies.kl()

    def lengthscales(self) -> Float[Tensor, " P"]:
        lengthscales: Tensor = self.frequencies.lengthscale().detach()
        return lengthscales.flatten(0, -2).amin(0)

    def features(
        self, x: Float[Tensor, "S N P"], omega: Float[Tensor, "S2 G Q R P"]
    ) -> Float[Tensor, "S3 N G2 Q F"]:
        """Φ: real and imaginary parts of the waves, with their amplitudes."""
        omega = omega.permute(0, 1, 4, 2, 3)[:, None]  # S2 1 G P Q R
        points, order = x[:, :, None, :, None, None], self.greens_function.order
        mirrored = self.memory == "zero" and order > 0
        lags = torch.where(points < 0, -points, points) if mirrored else points
        waves = system_wave_response(self.greens_function, lags, omega, self.memory, trailing=2)
        if mirrored:
            waves = _before_origin(waves, points < 0, order)
        waves = waves * self.amplitudes()[..., None]
        if self.phases is not None:
            turn = self.phases.permute(0, 3, 1, 2)
            waves = waves * torch.complex(torch.cos(turn), torch.sin(turn))
        combined = (
            reduce(torch.mul, waves.unbind(3)) if self.plane_wave else waves.sum(3)
        )  # S N G Q R
        combined = combined / math.sqrt(omega.shape[-1])
        return torch.cat([combined.real, combined.imag], dim=-1)

    def forces(self, tau: Float[Tensor, "S3 N P"], path: FourierPath) -> Float[Tensor, "S N F"]:
        """The forces of each output that the same weights drive: u_{d,q,m} at `tau`.

        With shared forces those of D = 1; a plane wave has one force over all inputs, P = 1.
        """
        omega = path.omega.permute(0, 1, 4, 2, 3)[:, None]
        phase = omega * tau[:, :, None, :, None, None]
        amplitude = self.amplitudes()[..., None] / math.sqrt(omega.shape[-1])
        if self.plane_wave:
            phase, amplitude = phase.sum(3, keepdim=True), amplitude.prod(1, keepdim=True)
        elif self.phases is not None:
            phase = phase + self.phases.permute(0, 3, 1, 2)
        waves = torch.cat([torch.cos(phase), torch.sin(phase)], dim=-1) * amplitude
        num_forces, size = waves.shape[-2:]
        weights = path.weights
        if self.output_sensitivities is not None:
            return torch.einsum("sngpqf,sqf->sngqp", waves, weights).flatten(2)
        weights = weights.reshape(*weights.shape[:2], num_forces, size)
        groups = waves.expand(-1, -1, self.num_outputs, -1, -1, -1)
        return torch.einsum("sndpqf,sdqf->sndqp", groups, weights).flatten(2)

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

    def amplitudes(self) -> Float[Tensor, "G P Q"]:
        """|S|, with the input weights."""
        amplitude = self.sensitivities.abs().permute(0, 2, 1)
        return amplitude if self.input_weights is None else amplitude * self.input_weights[:, None]


def _before_origin(waves: Tensor, before: Tensor, order: int) -> Tensor:
    """(-1)^n times the conjugate where x < 0: the ODE run backwards from rest."""
    sign = -1.0 if order % 2 else 1.0
    real = torch.where(before, sign * waves.real, waves.real)
    imag = torch.where(before, -sign * waves.imag, waves.imag)
    return torch.complex(real, imag)
