"""What is drawn from a Fourier layer: functions, or values at the data for training alone.

A path folds the ODE into its weights: f is a sum of sines and cosines of the inputs plus one
transient per input and order, so no feature is ever formed (`responses.wave_sums`). Plane waves
that start at rest have no such sum, and go through the features.
"""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import torch
from jaxtyping import Float
from torch import Tensor

from deeplfm.gaussians import DiagonalGaussian
from deeplfm.randomness import normal
from deeplfm.responses.wave_sums import separate, wave_sum

if TYPE_CHECKING:
    from deeplfm.layers.fourier import FourierLayer


@final
@dataclass(frozen=True, eq=False)
class FourierPath:
    """Functions drawn from a Fourier layer: its Ω and W are these numbers."""

    layer: "FourierLayer"
    omega: Float[Tensor, "S2 G Q R P"]
    weights: Float[Tensor, "S ..."]

    def __call__(self, x: Float[Tensor, "S3 N P"]) -> Float[Tensor, "S N D"]:
        layer = self.layer
        plain = layer.plane_wave and layer.memory == "zero" and layer.greens_function.order > 0
        return self.by_features(x) if plain else self.by_sums(x)

    def by_features(self, x: Float[Tensor, "S3 N P"]) -> Float[Tensor, "S N D"]:
        """Φ W + c, as it is written."""
        features, layer = self.layer.features(x, self.omega), self.layer
        if layer.output_sensitivities is not None:
            per_force = torch.einsum("sngqf,sqf->sngq", *_same_samples(features, self.weights))
            return (per_force * layer.output_sensitivities).sum(-1) + layer.offset
        flat = features.flatten(-2).expand(-1, -1, layer.num_outputs, -1)
        return torch.einsum("sndf,sdf->snd", *_same_samples(flat, self.weights)) + layer.offset

    def by_sums(self, x: Float[Tensor, "S3 N P"]) -> Float[Tensor, "S N D"]:
        """The same through sums of waves, with the ODE in their weights."""
        layer = self.layer
        omega = self.omega.permute(0, 1, 4, 2, 3).flatten(-2)  # S2 G P QR
        separated = separate(layer.greens_function, omega, layer.memory)
        sides = [separated.transfer]
        if separated.before is not None:
            sides.append(separated.before)
        folded = [self._folded(self._scaled(side)) for side in sides]
        even, odd = (torch.stack(parts) for parts in zip(*folded, strict=True))
        if layer.plane_wave:
            points, waves = x[:, None, None], omega.movedim(2, -1)[:, :, None]
        else:
            points, waves = x.mT[:, None, :, :, None], omega[..., None]
        total = _per_input(points, waves, even, odd)  # [1 or 2, S, N, D, P]
        rise, others = separated.transients(x)
        total = total + rise * even.sum(-1)[:, :, None]
        for k, motion in enumerate(others, start=1):
            # Re of (jω)^k H: the weights of cos and sin take turns.
            sign, part = (1, -1)[k // 2 % 2], (even, odd)[k % 2]
            total = total - motion * (sign * omega**k * part).sum(-1)[:, :, None]
        if separated.before is not None:
            total = torch.where((x < 0)[:, :, None], total[1], total[0])[None]
        return total[0].sum(-1) + layer.offset

    def _scaled(self, response: Tensor) -> Tensor:
        """The response with amplitudes and phases, over √R; one input is left of a plane wave."""
        layer, count = self.layer, self.omega.shape[3]
        scale = layer.amplitudes()[..., None].expand(-1, -1, -1, count).flatten(-2)
        response = response * scale
        if layer.phases is not None:
            phases = layer.phases.permute(0, 3, 1, 2).flatten(-2)
            response = response * torch.complex(torch.cos(phases), torch.sin(phases))
        if layer.plane_wave:
            response = response.prod(2, keepdim=True)
        return response / math.sqrt(count)

    def _folded(self, response: Tensor) -> tuple[Tensor, Tensor]:
        """Weights of cos and sin [S, D, P, QR]: Re φ·W + Im φ·W' of φ = response · e^{jωx}."""
        layer, (forces, count) = self.layer, self.omega.shape[2:4]
        weights = self.weights
        if layer.output_sensitivities is not None:
            weights = layer.output_sensitivities[..., None] * weights[:, None]
        weights = weights.reshape(len(weights), layer.num_outputs, 1, forces, 2, count)
        real, imag = (part.flatten(-2) for part in weights.unbind(-2))
        return (
            response.real * real + response.imag * imag,
            response.real * imag - response.imag * real,
        )


def _per_input(points: Tensor, waves: Tensor, even: Tensor, odd: Tensor) -> Tensor:
    """Σ_r (cos - 1)·even + sin·odd, [C, S, N, D, P] for weights [C, S, D, P, QR].

    Outputs that have the same frequencies, and samples that have the same inputs and frequencies,
    are columns of one product.
    """
    sides, samples, outputs, inputs, count = even.shape
    batch = max(len(points), len(waves))
    groups = waves.shape[1]
    split = (sides, batch, samples // batch, groups, outputs // groups, inputs, count)

    def columns(weights: Tensor) -> Tensor:
        return weights.reshape(split).permute(1, 3, 5, 6, 0, 2, 4).flatten(-3)

    total: Tensor = wave_sum(points, waves, -columns(even), columns(odd))
    total = total.unflatten(-1, (sides, samples // batch, outputs // groups))
    return total.permute(4, 0, 5, 3, 1, 6, 2).reshape(sides, samples, -1, outputs, inputs)


def _same_samples(features: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """Features of all samples, where one set served them all."""
    return features.expand(len(weights), *features.shape[1:]), weights


@final
@dataclass(frozen=True, eq=False)
class LocalDraw:
    """f ~ N(Φμ, Φ²σ²) at each point on its own: for training only."""

    layer: "FourierLayer"
    omega: Float[Tensor, "S2 G Q R P"]
    weights: DiagonalGaussian
    num_samples: int
    generator: torch.Generator | None

    def __call__(self, x: Float[Tensor, "S3 N P"]) -> Float[Tensor, "S N D"]:
        flat = self.layer.features(x, self.omega).flatten(-2)
        flat = flat.expand(self.num_samples, -1, self.layer.num_outputs, -1)
        weights = self.weights
        mean = torch.einsum("sndf,df->snd", flat, weights.mean) + self.layer.offset
        variance = torch.einsum("sndf,df->snd", flat.square(), weights.std.square())
        noise = normal(mean.shape, self.generator, mean)
        return mean + torch.sqrt(variance + torch.finfo(variance.dtype).tiny) * noise
