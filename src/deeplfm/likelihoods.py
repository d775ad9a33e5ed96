"""p(y | f): how noisy observations meet the functions. Missing targets contribute nothing.

    Gaussian:  y = f + σ ε        StudentT:  y = f + σ t_ν, heavy tails for outliers

Owns the noise, one per output, and the mask. A likelihood given to a recipe is a template:
`tiled(D)` is an independent copy with D noises.
"""

import math
from abc import ABC, abstractmethod
from typing import Any, final

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from deeplfm.errors import InputError
from deeplfm.parameters import Bounds, Quantity
from deeplfm.randomness import normal, uniform


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


@final
class StudentT(Likelihood):
    """y = f + sqrt(noise_variance) · t_ν; `degrees` ν > 2 is fixed, its scale is learnt."""

    def __init__(
        self,
        noise_variance: Tensor | float = 0.01,
        *,
        degrees: float = 4.0,
        learn: bool = True,
        bounds: Bounds | None = None,
    ) -> None:
        super().__init__(Quantity("noise_variance", noise_variance, learn=learn, bounds=bounds))
        if not degrees > 2:
            raise InputError(
                f"degrees must be above 2 (the variance is infinite otherwise); got {degrees:g}. "
                "Use 3 or more."
            )
        self.degrees = degrees

    def log_density(self, y: Tensor, f: Tensor) -> Tensor:
        nu, variance = self.degrees, self.noise_variance
        constant = math.lgamma((nu + 1) / 2) - math.lgamma(nu / 2) - math.log(nu * math.pi) / 2
        ratio = (y - f).square() / (nu * variance)
        return constant - torch.log(variance) / 2 - (nu + 1) / 2 * torch.log1p(ratio)

    def arguments(self) -> dict[str, Any]:
        return super().arguments() | {"degrees": self.degrees}

    def sample(self, f: Tensor, generator: torch.Generator | None = None) -> Tensor:
        # A chi-square of ν degrees as ν squared normals would need an integer ν; gamma has no
        # generator argument, so it is drawn through the inverse of its distribution function.
        from scipy.special import gammaincinv

        numerator = normal(f.shape, generator, f)
        share = uniform(f.shape, generator, f).clamp(min=1e-7).double().cpu().numpy()
        chi = 2 * gammaincinv(self.degrees / 2, share)
        scale = torch.sqrt(self.degrees / torch.as_tensor(chi)).to(f)
        return f + self.noise_variance.sqrt() * numerator * scale

    def tiled(self, num_outputs: int) -> "StudentT":
        twin = StudentT(degrees=self.degrees)
        twin.noise = self.noise.tiled(num_outputs)
        return twin


def gaussian_log_density(
    f: Float[Tensor, "S N D"],
    y: Float[Tensor, "N D"],
    observed: Bool[Tensor, "N D"],
    variance: Float[Tensor, "*D2"],
    scale: float,
) -> Float[Tensor, ""]:
    """scale · Σ_{nd} mean_s log N(y; f, σ²) over what was observed, as one node of the graph."""
    if variance.shape != y.shape[-1:]:  # one for all outputs
        variance = variance.expand(y.shape[-1])
    total: Tensor = _LogDensity.apply(f, y, observed, variance, scale)
    return total


class _LogDensity(torch.autograd.Function):
    """-½ scale/S Σ_d ratio_d + S count_d log 2πσ_d²,  ratio_d = Σ_{sn} (y - f)²/σ_d²."""

    @staticmethod
    def forward(
        ctx: Any, f: Tensor, y: Tensor, observed: Tensor, variance: Tensor, scale: float
    ) -> Tensor:
        rest = y - f
        if not observed.all():
            rest = torch.where(observed, rest, 0.0)
        count = observed.sum(0, dtype=rest.dtype)
        ratio = (rest * rest).sum((0, 1)).div_(variance)
        ctx.save_for_backward(rest, variance, ratio, count)
        ctx.half = scale / len(f) / 2
        logs = torch.log(variance * (2 * math.pi))
        return torch.addcmul(ratio, count, logs, value=len(f)).sum().mul_(-ctx.half)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        rest, variance, ratio, count = ctx.saved_tensors
        slope = gradient * ctx.half / variance
        by_variance = torch.sub(ratio, count, alpha=len(rest)).mul_(slope)
        return rest * (slope + slope), None, None, by_variance, None
