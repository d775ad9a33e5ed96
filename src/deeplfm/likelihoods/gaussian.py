"""Gaussian noise: y = f + σ ε."""

import math
from typing import final

import torch
from torch import Tensor

from deeplfm.likelihoods.base import Likelihood
from deeplfm.randomness import normal
from deeplfm.registry import register
from deeplfm.variational.parameters import Bounds, Quantity


@register
@final
class Gaussian(Likelihood):
    """y ~ N(f, noise_variance), in standardised units."""

    def __init__(
        self,
        noise_variance: Tensor | float = 0.01,
        *,
        learn: bool = True,
        bounds: Bounds | None = None,
    ) -> None:
        super().__init__(Quantity("noise_variance", noise_variance, learn=learn, bounds=bounds))

    def log_density(self, y: Tensor, f: Tensor) -> Tensor:
        variance = self.noise_variance
        constant = torch.log(2 * math.pi * variance) * -0.5
        return torch.addcmul(constant, (y - f).square(), -0.5 / variance)

    def sample(self, f: Tensor, generator: torch.Generator | None = None) -> Tensor:
        return f + self.noise_variance.sqrt() * normal(f.shape, generator, f)

    def tiled(self, num_outputs: int) -> "Gaussian":
        twin = Gaussian()
        twin.noise = self.noise.tiled(num_outputs)
        return twin
