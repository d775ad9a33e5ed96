"""Noise that is added to the functions: y = f + σ ε, one σ per output.

Targets are standardised, and functions with them; σ² starts at what the closed-form start leaves.
"""

from abc import ABC
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from deeplfm.data import Scaling
from deeplfm.likelihoods.base import Likelihood
from deeplfm.variational.parameters import Bounds, Quantity

Values = NDArray[np.float64]


class AdditiveNoise(Likelihood, ABC):
    """y = f + sqrt(noise_variance) · ε, in standardised units.

    noise_variance: σ², one for all outputs or [D]; learn: False fixes it; bounds: (low, high) that
    it stays between.
    """

    def __init__(self, noise_variance: Tensor | float, learn: bool, bounds: Bounds | None) -> None:
        super().__init__()
        self.noise = Quantity("noise_variance", noise_variance, learn=learn, bounds=bounds)

    @property
    def noise_variance(self) -> Tensor:
        """σ² [D]."""
        value: Tensor = self.noise()
        return value

    def mean(self, f: Tensor) -> Tensor:
        return f

    def start_noise(self, variance: Tensor) -> None:
        """Move a noise that is learnt to `variance` [D], as far as its bounds allow."""
        if self.noise.raw is None:
            return
        variance = variance.to(self.noise.start)
        if self.noise.bounds is not None:
            low, high = self.noise.bounds.unbind()
            inside = (high / low) ** 0.01
            variance = variance.clamp(min=low * inside, max=high / inside)
        self.noise.set(variance)

    def learnt(self, scaling: Scaling) -> Mapping[str, Values]:
        return {"standard deviation": self._scale(scaling)}

    def arguments(self) -> dict[str, Any]:
        bounds = self.noise.bounds
        return {
            "noise_variance": self.noise_variance.detach(),
            "learn": self.noise.raw is not None,
            "bounds": None if bounds is None else tuple(bounds.tolist()),
        }

    def _scale(self, scaling: Scaling) -> Values:
        """σ [D] in the user's units."""
        std: Values = self.noise_variance.sqrt().detach().double().cpu().numpy()
        return scaling.spread(std)
