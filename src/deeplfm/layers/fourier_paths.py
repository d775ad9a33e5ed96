"""What is drawn from a Fourier layer: functions, or values at the data for training alone.

A path holds numbers, and the ODE is folded into its weights: no feature is formed where f is a sum
of waves along each input (`sums.fourier_sum`) or along all at once (`sums.plane_wave_sum`). Waves
over all inputs that start from a zero state have no such sum, and go through the features.
"""

import math
from dataclasses import dataclass
from functools import reduce
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from deeplfm.greens_functions import FixedDynamics
from deeplfm.greens_functions.factors import complex_product
from deeplfm.layers.base import join
from deeplfm.randomness import normal
from deeplfm.responses import system_wave_response
from deeplfm.shapes import Memory
from deeplfm.sums import Backend, fourier_sum, plane_wave_sum


@final
@dataclass(frozen=True, eq=False)
class FourierWaves:
    """The waves of a Fourier layer as numbers: the ODE, Ω, and the amplitudes S with any sign."""

    dynamics: FixedDynamics
    omega: Float[Tensor, "#S G Q R P"]
    sensitivities: Float[Tensor, "G P Q"]
    input_weights: Float[Tensor, " P"] | None
    phases: Float[Tensor, "G Q R P"] | None
    memory: Memory
    plane_wave: bool

    @property
    def from_zero_state(self) -> bool:
        """Whether the ODE starts at the origin, from a state of zero."""
        return self.memory == "zero" and self.dynamics.order > 0

    def amplitudes(self) -> Float[Tensor, "G P Q"]:
        """|S|, with the input weights."""
        amplitude = self.sensitivities.abs()
        return amplitude if self.input_weights is None else amplitude * self.input_weights[:, None]

    def features(self, x: Float[Tensor, "S N P"]) -> Float[Tensor, "S3 N G2 Q F"]:
        """Φ: real and imaginary parts of the waves, with their amplitudes, as it is written."""
        omega = self.omega.permute(0, 1, 4, 2, 3)[:, None]  # S2 1 G P Q R
        points, order = x[:, :, None, :, None, None], self.dynamics.order
        lags = torch.where(points < 0, -points, points) if self.from_zero_state else points
        waves = system_wave_response(self.dynamics, lags, omega, self.memory, trailing=2)
        if self.from_zero_state:
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

    def of_forces(self, tau: Float[Tensor, "S3 N P"]) -> Float[Tensor, "S4 N G P2 Q F"]:
        """cos and sin of the forces themselves; P2 is 1 where a force is over all inputs."""
        omega = self.omega.permute(0, 1, 4, 2, 3)[:, None]
        phase = omega * tau[:, :, None, :, None, None]
        amplitude = self.amplitudes()[..., None] / math.sqrt(omega.shape[-1])
        if self.plane_wave:
            phase, amplitude = phase.sum(3, keepdim=True), amplitude.prod(1, keepdim=True)
        elif self.phases is not None:
            phase = phase + self.phases.permute(0, 3, 1, 2)
        return torch.cat([torch.cos(phase), torch.sin(phase)], dim=-1) * amplitude

    def response(self) -> tuple[Float[Tensor, "#S G W"], Float[Tensor, "#S G W"]]:
        """Re and Im of what the ODE makes of waves over all inputs, with amplitudes; W = QR."""
        count = self.omega.shape[3]
        omega = self.omega.permute(0, 1, 4, 2, 3).flatten(-2)  # #S G P QR
        scale = self.amplitudes()[..., None].expand(-1, -1, -1, count).flatten(-2)
        answer = self.dynamics.frequency_response(omega)
        # Not torch.prod: its gradient would wait for the device, to look for zeros.
        size = reduce(torch.mul, scale.unbind(-2)) / math.sqrt(count)
        if answer is None:
            return size[None], torch.zeros_like(size)[None]
        inputs = zip(*(part.unbind(-2) for part in answer), strict=True)
        real, imag = reduce(complex_product, inputs)
        return size * real, size * imag


@final
@dataclass(frozen=True, eq=False)
class FourierPath:
    """Functions drawn from a Fourier layer: waves, and their weights W.

    weights: [S, D, 2QR]; or [S, Q, 2R] of forces that outputs share, with their sensitivities.
    """

    waves: FourierWaves
    weights: Float[Tensor, "S ..."]
    output_sensitivities: Float[Tensor, "D Q"] | None
    offset: Float[Tensor, " D"]
    backend: Backend = "auto"

    def __call__(
        self, x: Float[Tensor, "S3 N P"], shared: Float[Tensor, "N P2"] | None = None
    ) -> Float[Tensor, "S N D"]:
        waves = self.waves
        if waves.plane_wave:
            x = join(x, shared)
            return self.by_features(x) if waves.from_zero_state else self._by_plane_waves(x)
        return fourier_sum.by(
            self.backend,
            x,
            shared,
            waves.dynamics,
            waves.omega,
            waves.sensitivities,
            waves.input_weights,
            waves.phases,
            self._output_weights(),
            self.offset,
            waves.memory,
        )

    def by_features(self, x: Float[Tensor, "S3 N P"]) -> Float[Tensor, "S N D"]:
        """Φ W + c, as it is written."""
        features, weights = self.waves.features(x), self.weights
        features = features.expand(len(weights), *features.shape[1:])
        if self.output_sensitivities is not None:
            per_force = torch.einsum("sngqf,sqf->sngq", features, weights)
            return (per_force * self.output_sensitivities).sum(-1) + self.offset
        flat = features.flatten(-2).expand(-1, -1, len(self.offset), -1)
        return torch.einsum("sndf,sdf->snd", flat, weights) + self.offset

    def forces(self, tau: Float[Tensor, "S3 N P"]) -> Float[Tensor, "S N F"]:
        """The forces that the same weights drive: u_dqp at `tau`, or u_qp where they are shared."""
        waves, weights = self.waves.of_forces(tau), self.weights
        waves = waves.expand(len(weights), *waves.shape[1:])
        if self.output_sensitivities is not None:
            return torch.einsum("sngpqf,sqf->sngqp", waves, weights).flatten(2)
        weights = weights.unflatten(-1, waves.shape[-2:])
        groups = waves.expand(-1, -1, weights.shape[1], -1, -1, -1)
        return torch.einsum("sndpqf,sdqf->sndqp", groups, weights).flatten(2)

    def _output_weights(self) -> Float[Tensor, "S D F"]:
        """The weights of each output, also where outputs share their forces."""
        if self.output_sensitivities is None:
            return self.weights
        return (self.output_sensitivities[..., None] * self.weights[:, None]).flatten(2)

    def _by_plane_waves(self, x: Tensor) -> Tensor:
        """Waves over all inputs, with infinite memory or without dynamics."""
        omega = self.waves.omega.flatten(2, 3)  # #S G QR P
        forces, count = self.waves.omega.shape[2:4]
        split = self._output_weights().unflatten(-1, (forces, 2, count))
        first, second = (part.flatten(-2) for part in split.unbind(-2))  # of Re and Im: S D QR
        real, imag = self.waves.response()
        cosine, sine = real * first + imag * second, real * second - imag * first
        each = len(self.offset) // omega.shape[1]
        sums = [
            plane_wave_sum.by(self.backend, x, omega[:, g], even.mT, odd.mT)
            for g, (even, odd) in enumerate(
                zip(cosine.split(each, dim=1), sine.split(each, dim=1), strict=True)
            )
        ]
        return torch.cat(sums, dim=-1) + self.offset


@final
@dataclass(frozen=True, eq=False)
class LocalDraw:
    """f ~ N(Φμ, Φ²σ²) at each point on its own: for training only."""

    waves: FourierWaves
    mean: Float[Tensor, "D F"]
    std: Float[Tensor, "D F"]
    offset: Float[Tensor, " D"]
    num_samples: int
    generator: torch.Generator | None

    def __call__(
        self, x: Float[Tensor, "S3 N P"], shared: Float[Tensor, "N P2"] | None = None
    ) -> Float[Tensor, "S N D"]:
        flat = self.waves.features(join(x, shared)).flatten(-2)
        flat = flat.expand(self.num_samples, -1, len(self.offset), -1)
        mean = torch.einsum("sndf,df->snd", flat, self.mean) + self.offset
        variance = torch.einsum("sndf,df->snd", flat.square(), self.std.square())
        noise = normal(mean.shape, self.generator, mean)
        return mean + torch.sqrt(variance + torch.finfo(variance.dtype).tiny) * noise


def _before_origin(waves: Tensor, before: Tensor, order: int) -> Tensor:
    """(-1)^n times the conjugate where x < 0: the ODE run backwards from its zero state."""
    sign = -1.0 if order % 2 else 1.0
    real = torch.where(before, sign * waves.real, waves.real)
    imag = torch.where(before, -sign * waves.imag, waves.imag)
    return torch.complex(real, imag)
