"""Heavy tails for outliers: y = f + σ t_ν."""

import math
from collections.abc import Mapping
from typing import Any, final

import numpy as np
import torch
from torch import Tensor

from deeplfm.data import Scaling
from deeplfm.errors import InputError
from deeplfm.evaluation import StudentTComponents
from deeplfm.likelihoods.additive import AdditiveNoise, Values
from deeplfm.randomness import normal, uniform
from deeplfm.registry import register
from deeplfm.variational.parameters import Bounds


@register
@final
class StudentT(AdditiveNoise):
    """Noise with heavy tails for outliers, y = f + sqrt(noise_variance) · t_ν.

    The degrees ν are fixed, and the scale is learnt.

    Args:
        noise_variance: σ² > 0 in standardised units (targets have a variance of 1), one number for
            all outputs or a tensor [D].
        degrees: ν > 2, the degrees of freedom; fewer mean heavier tails.
        learn: False fixes the noise variance.
        bounds: (low, high) between which the noise variance stays.

    Shapes:
        y, f: targets and function values, tensors that broadcast to [..., N, D].
        log_density(y, f), cdf(y, f): [..., N, D], elementwise, as are `sample` and `variance`.

    Example:
        >>> noise = dlfm.StudentT(0.01, degrees=3.0)
        >>> round(noise.variance(torch.zeros(1, 1)).item(), 4)  # ν/(ν - 2) noise_variance
        0.03
        >>> recipe = dlfm.InducingDLFM(likelihood=noise)
    """

    def __init__(
        self,
        noise_variance: Tensor | float = 0.01,
        *,
        degrees: float = 4.0,
        learn: bool = True,
        bounds: Bounds | None = None,
    ) -> None:
        super().__init__(noise_variance, learn, bounds)
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

    def cdf(self, y: Tensor, f: Tensor) -> Tensor:
        from scipy.special import stdtr  # torch has none

        scaled = ((y - f) / self.noise_variance.sqrt()).detach().double().cpu().numpy()
        return torch.as_tensor(stdtr(self.degrees, scaled)).to(f)

    def sample(self, f: Tensor, generator: torch.Generator | None = None) -> Tensor:
        # A chi-square of ν degrees as ν squared normals would need an integer ν; gamma has no
        # generator argument, so it is drawn through the inverse of its distribution function.
        from scipy.special import gammaincinv

        numerator = normal(f.shape, generator, f)
        share = uniform(f.shape, generator, f).clamp(min=1e-7).double().cpu().numpy()
        chi = 2 * gammaincinv(self.degrees / 2, share)
        scale = torch.sqrt(self.degrees / torch.as_tensor(chi)).to(f)
        return f + self.noise_variance.sqrt() * numerator * scale

    def variance(self, f: Tensor) -> Tensor:
        return (self.degrees / (self.degrees - 2) * self.noise_variance).expand_as(f)

    def components(self, functions: Values, scaling: Scaling) -> StudentTComponents:
        scale = np.repeat(self._scale(scaling)[None, None], len(functions), 0)
        return StudentTComponents(functions, scale, self.degrees)

    def learnt(self, scaling: Scaling) -> Mapping[str, Values]:
        return {f"scale (Student-t, {self.degrees:g} degrees)": self._scale(scaling)}

    def arguments(self) -> dict[str, Any]:
        return super().arguments() | {"degrees": self.degrees}
