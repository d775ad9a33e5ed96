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
    """Gaussian noise: y ~ N(f, σ²), with one σ² per output.

    Args:
        noise_variance: where σ² starts, one number or [D]. Targets are standardised: 0.01 is a
            noise of a tenth of their standard deviation. A closed-form start moves it.
        learn: False keeps σ² at that value.
        bounds: (low, high), which σ² stays between.

    Example:
        >>> import deeplfm as dlfm
        >>> recipe = dlfm.FourierDLFM(likelihood=dlfm.Gaussian(0.05, bounds=(1e-4, 1.0)))
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
