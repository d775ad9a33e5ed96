"""What is drawn from a Fourier layer: functions, or values at the data for training alone.

A path folds the ODE into its weights: f is a sum of sines and cosines of the inputs plus one
transient per input and order, so no feature is ever formed (`responses.wave_sums`). Plane waves
that start at rest have no such sum, and go through the features.
"""

import math
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, final

import torch
from jaxtyping import Float
from torch import Tensor

from deeplfm.greens_functions.base import complex_product
from deeplfm.layers.base import join
from deeplfm.randomness import normal
from deeplfm.sums.backends import by_kernels, by_tables, natively
from deeplfm.sums.c.rest import first_order_from_rest
from deeplfm.sums.rest_sum import Waves, waves_from_rest
from deeplfm.sums.torch.rest_tables import first_order_tables
from deeplfm.sums.wave_sum import wave_sum
from deeplfm.variational.gaussians import DiagonalGaussian

if TYPE_CHECKING:
    from deeplfm.layers.fourier import FourierLayer


@final
@dataclass(frozen=True, eq=False)
class FourierPath:
    """Functions drawn from a Fourier layer: its Ω and W are these numbers."""

    layer: "FourierLayer"
    omega: Float[Tensor, "S2 G Q R P"]
    weights: Float[Tensor, "S ..."]

    def __call__(
        self, x: Float[Tensor, "S3 N P"], shared: Float[Tensor, "N P2"] | None = None
    ) -> Float[Tensor, "S N D"]:
        layer = self.layer
        plain = layer.memory == "zero" and layer.greens_function.order > 0
        if layer.plane_wave:
            x, shared = join(x, shared), None
            return self.by_features(x) if plain else self.by_sums(x)
        return self.by_sums(x, shared)

    def by_features(self, x: Float[Tensor, "S3 N P"]) -> Float[Tensor, "S N D"]:
        """Φ W + c, as it is written."""
        features, layer = self.layer.features(x, self.omega), self.layer
        if layer.output_sensitivities is not None:
            per_force = torch.einsum("sngqf,sqf->sngq", *_same_samples(features, self.weights))
            return (per_force * layer.output_sensitivities).sum(-1) + layer.offset
        flat = features.flatten(-2).expand(-1, -1, layer.num_outputs, -1)
        return torch.einsum("sndf,sdf->snd", *_same_samples(flat, self.weights)) + layer.offset

    def by_sums(
        self, x: Float[Tensor, "S3 N P"], shared: Float[Tensor, "N P2"] | None = None
    ) -> Float[Tensor, "S N D"]:
        """The same through sums of waves, with the ODE in their weights."""
        layer = self.layer
        g = layer.greens_function
        from_rest = layer.memory == "zero" and g.order > 0
        if from_rest and self._is_simple and x.shape[1] > 0:
            found = self._first_order(x, shared)
            if found is not None:
                return found
        omega = self.omega.permute(0, 1, 4, 2, 3).flatten(-2)  # S2 G P QR
        even, odd = self._folded(self._response(omega), g.order if from_rest else None)
        if layer.plane_wave:
            return self._plane_waves(x, omega, even, odd)
        waves, own, started = Waves(omega, even, odd), x.shape[-1], g if from_rest else None
        total = layer.offset + waves_from_rest(x, waves.of(slice(own)), started, slice(own))
        if shared is not None:
            # What all samples see is evaluated once for all of them.
            rest = slice(own, None)
            total = total + waves_from_rest(shared[None], waves.of(rest), started, rest)
        return total if from_rest else total + even.sum((0, -2, -1))[:, None]

    @property
    def _is_simple(self) -> bool:
        """One ODE of first order along each input, with one Ω for all samples."""
        layer = self.layer
        simple = layer.greens_function.order == 1 and layer.phases is None and not layer.plane_wave
        return simple and layer.input_weights is None and len(self.omega) == 1

    def _first_order(self, x: Tensor, shared: Tensor | None) -> Tensor | None:
        """From rest, without weights per input or transients on their own, where that is fast."""
        if not by_kernels(x) and not by_tables(x):
            return None
        layer, g = self.layer, self.layer.greens_function
        (factor,) = g.factors
        if len(factor[0]) != self.omega.shape[1]:  # forces that several ODEs share
            return None
        own: Tensor | None = x
        weights = self._output_weights()
        if len(x) == 1 and len(weights) > 1:  # nothing is a sample's own
            own, shared = None, join(x, shared)[0]
        amplitude, gain = layer.sensitivities.permute(0, 2, 1), g.gain(trailing=1)
        if isinstance(gain, Tensor):  # positive, as the amplitudes are made there
            amplitude = amplitude * gain
        arguments = (self.omega[0], factor[0], amplitude, weights, layer.offset)
        if natively(x, weights) and g.stable:
            return first_order_from_rest(own, shared, *arguments)
        if by_tables(x):
            return first_order_tables(own, shared, *arguments)
        from deeplfm.sums.triton import rest as triton_rest

        return triton_rest.first_order_from_rest(own, shared, *arguments)

    def _output_weights(self) -> Tensor:
        """[S, D, 2QR], also where outputs share their forces."""
        if self.layer.output_sensitivities is None:
            return self.weights
        return (self.layer.output_sensitivities[..., None] * self.weights[:, None]).flatten(2)

    def _plane_waves(self, x: Tensor, omega: Tensor, even: Tensor, odd: Tensor) -> Tensor:
        """One wave over all inputs; it has no transient."""
        samples, outputs, count = even.shape[1], even.shape[2], even.shape[-1]
        batch, groups = max(len(x), len(omega)), omega.shape[1]
        split = (batch, samples // batch, groups, outputs // groups, count)

        def columns(weights: Tensor) -> Tensor:
            return weights.reshape(split).permute(0, 2, 4, 1, 3).flatten(-2)

        total = wave_sum(x[:, None], omega.mT, -columns(even), columns(odd))
        total = total.unflatten(-1, (samples // batch, outputs // groups))  # batch G N S' D'
        values: Tensor = total.permute(0, 3, 2, 1, 4).reshape(samples, -1, outputs)
        return values + even.sum((0, -2, -1))[:, None] + self.layer.offset

    def _response(self, omega: Tensor) -> tuple[Tensor, Tensor | None]:
        """Re and Im of the ODE's answer with amplitudes, [S2, G, P, QR] over √R.

        One input is left of a plane wave; no imaginary part where nothing turns the phase.
        """
        layer, count = self.layer, self.omega.shape[3]
        scale = layer.amplitudes()[..., None].expand(-1, -1, -1, count).flatten(-2)
        answer = layer.greens_function.turning(omega)
        parts = (scale, None) if answer is None else (scale * answer[0], scale * answer[1])
        real, imag = parts
        root = math.sqrt(count)
        if layer.plane_wave:
            if imag is None:
                # The gradient of torch.prod would wait for the device, to look for zeros.
                return reduce(torch.mul, real.split(1, -2))[None] / root, None
            inputs = zip(real.split(1, -2), imag.split(1, -2), strict=True)
            real, imag = reduce(complex_product, inputs)
        return real / root, None if imag is None else imag / root

    def _folded(
        self, response: tuple[Tensor, Tensor | None], order: int | None
    ) -> tuple[Tensor, Tensor]:
        """Weights of cos and sin [C, S, D, P, QR]: Re φ·W + Im φ·W' of φ = response · e^{jωx}.

        With the order of an ODE that starts at rest there are two sides: before the origin φ is
        (-1)^n times the conjugate.
        """
        layer, (forces, count) = self.layer, self.omega.shape[2:4]
        weights = self._output_weights()
        weights = weights.reshape(len(weights), layer.num_outputs, 1, forces, 2, count)
        cosine, sine = (part.flatten(-2) for part in weights.unbind(-2))
        if layer.phases is not None:
            phases = layer.phases.permute(0, 3, 1, 2).flatten(-2)
            turn = torch.cos(phases), -torch.sin(phases)
            cosine, sine = complex_product((cosine, sine), turn)
        real, imag = response
        if imag is None:
            return (real * cosine)[None], (real * sine)[None]
        even, odd, even_2, odd_2 = real * cosine, real * sine, imag * sine, imag * cosine
        if order is None:
            return (even + even_2)[None], (odd - odd_2)[None]
        before = (even_2 - even, -odd - odd_2) if order % 2 else (even - even_2, odd + odd_2)
        return torch.stack([even + even_2, before[0]]), torch.stack([odd - odd_2, before[1]])


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

    def __call__(
        self, x: Float[Tensor, "S3 N P"], shared: Float[Tensor, "N P2"] | None = None
    ) -> Float[Tensor, "S N D"]:
        flat = self.layer.features(join(x, shared), self.omega).flatten(-2)
        flat = flat.expand(self.num_samples, -1, self.layer.num_outputs, -1)
        weights = self.weights
        mean = torch.einsum("sndf,df->snd", flat, weights.mean) + self.layer.offset
        variance = torch.einsum("sndf,df->snd", flat.square(), weights.std.square())
        noise = normal(mean.shape, self.generator, mean)
        return mean + torch.sqrt(variance + torch.finfo(variance.dtype).tiny) * noise
