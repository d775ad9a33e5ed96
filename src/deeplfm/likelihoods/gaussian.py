"""Gaussian noise: y = f + σ ε."""

import math
from typing import final

import numpy as np
import torch
from torch import Tensor

from deeplfm.data import Scaling
from deeplfm.evaluation import NormalComponents
from deeplfm.likelihoods.additive import AdditiveNoise, Values
from deeplfm.randomness import normal
from deeplfm.registry import register
from deeplfm.variational.parameters import Bounds


@register
@final
class Gaussian(AdditiveNoise):
    """Gaussian noise about the functions, y ~ N(f, noise_variance), in standardised units.

    Args:
        noise_variance: σ² > 0 in standardised units (targets have a variance of 1), one number for
            all outputs or a tensor [D].
        learn: False fixes the noise variance.
        bounds: (low, high) between which the noise variance stays.

    Shapes:
        y, f: targets and function values, tensors that broadcast to [..., N, D].
        log_density(y, f), cdf(y, f): [..., N, D], elementwise, as are `sample` and `variance`.

    Example:
        >>> noise = dlfm.Gaussian(0.25, bounds=(0.01, 1.0))
        >>> y, f = torch.zeros(3, 1), torch.zeros(3, 1)
        >>> noise.log_density(y, f).shape
        torch.Size([3, 1])
        >>> recipe = dlfm.FourierDLFM(likelihood=noise)
    """

    def __init__(
        self,
        noise_variance: Tensor | float = 0.01,
        *,
        learn: bool = True,
        bounds: Bounds | None = None,
    ) -> None:
        super().__init__(noise_variance, learn, bounds)

    @property
    def gaussian_variance(self) -> Tensor:
        return self.noise_variance

    def log_density(self, y: Tensor, f: Tensor) -> Tensor:
        variance = self.noise_variance
        constant = torch.log(2 * math.pi * variance) * -0.5
        return torch.addcmul(constant, (y - f).square(), -0.5 / variance)

    def cdf(self, y: Tensor, f: Tensor) -> Tensor:
        share: Tensor = torch.special.ndtr((y - f) / self.noise_variance.sqrt())
        return share

    def sample(self, f: Tensor, generator: torch.Generator | None = None) -> Tensor:
        return f + self.noise_variance.sqrt() * normal(f.shape, generator, f)

    def variance(self, f: Tensor) -> Tensor:
        return self.noise_variance.expand_as(f)

    def components(self, functions: Values, scaling: Scaling) -> NormalComponents:
        std = np.repeat(self._scale(scaling)[None, None], len(functions), 0)
        return NormalComponents(functions, std)
