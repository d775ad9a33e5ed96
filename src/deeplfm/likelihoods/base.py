"""p(y | f): how noisy observations meet the functions. Missing targets contribute nothing.

Owns the noise, one per output, and the mask. A likelihood given to a recipe is a template:
`tiled(D)` is an independent copy with D noises.
"""

from abc import ABC, abstractmethod
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from deeplfm.variational.parameters import Quantity


class Likelihood(nn.Module, ABC):
    """The density of targets given function values."""

    def __init__(self, noise: Quantity) -> None:
        super().__init__()
        self.noise = noise

    @property
    def noise_variance(self) -> Tensor:
        """σ² [D]."""
        value: Tensor = self.noise()
        return value

    def log_prob(
        self,
        y: Float[Tensor, "N D"],
        f: Float[Tensor, "S N D"],
        observed: Bool[Tensor, "N D"],
    ) -> Float[Tensor, "S N D"]:
        """log p(y | f), 0 where nothing was observed: what `y` holds there is not read."""
        density = self.log_density(torch.where(observed, y, torch.zeros_like(y)), f)
        return torch.where(observed, density, torch.zeros_like(density))

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

    def arguments(self) -> dict[str, Any]:
        """The arguments that make it again, as it is now."""
        bounds = self.noise.bounds
        return {
            "noise_variance": self.noise_variance.detach(),
            "learn": self.noise.raw is not None,
            "bounds": None if bounds is None else tuple(bounds.tolist()),
        }

    @abstractmethod
    def log_density(self, y: Tensor, f: Tensor) -> Tensor:
        """log p(y | f) of every entry."""

    @abstractmethod
    def sample(self, f: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Targets for function values."""

    @abstractmethod
    def tiled(self, num_outputs: int) -> "Likelihood":
        """An independent copy with one noise per output."""
