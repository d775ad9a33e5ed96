"""Likelihoods as users write them, for tests of what every likelihood must do."""

import math
from typing import Any, final

import torch
from torch import Tensor

from deeplfm.evaluation import Support
from deeplfm.likelihoods import AdditiveNoise, Likelihood
from deeplfm.randomness import normal, uniform
from deeplfm.variational.parameters import Quantity


@final
class Laplace(AdditiveNoise):
    """y = f + σ ε with ε double exponential, of variance 1: continuous, without a closed form."""

    def __init__(self, noise_variance: Tensor | float = 0.01) -> None:
        super().__init__(noise_variance, True, None)

    def _distribution(self, f: Tensor) -> Any:
        return torch.distributions.Laplace(f, (self.noise_variance / 2).sqrt())

    def log_density(self, y: Tensor, f: Tensor) -> Tensor:
        density: Tensor = self._distribution(f).log_prob(y)
        return density

    def cdf(self, y: Tensor, f: Tensor) -> Tensor:
        below: Tensor = self._distribution(f).cdf(y)
        return below

    def sample(self, f: Tensor, generator: torch.Generator | None = None) -> Tensor:
        levels = uniform(f.shape, generator, f).clamp(min=1e-12)
        targets: Tensor = self._distribution(f).icdf(levels)
        return targets

    def variance(self, f: Tensor) -> Tensor:
        return self.noise_variance.expand_as(f)


@final
class LogNormal(Likelihood):
    """log y ~ N(f, ¼): positive numbers, whose density has a logarithm of y in it."""

    support = Support(low=0)

    def log_density(self, y: Tensor, f: Tensor) -> Tensor:
        return -2 * (y.log() - f) ** 2 - y.log() - math.log(math.pi / 2) / 2

    def cdf(self, y: Tensor, f: Tensor) -> Tensor:
        share: Tensor = torch.special.ndtr(2 * (y.log() - f))
        return share

    def sample(self, f: Tensor, generator: torch.Generator | None = None) -> Tensor:
        return (f + normal(f.shape, generator, f) / 2).exp()

    def mean(self, f: Tensor) -> Tensor:
        return (f + 1 / 8).exp()

    def variance(self, f: Tensor) -> Tensor:
        return self.mean(f) ** 2 * math.expm1(1 / 4)


@final
class Geometric(Likelihood):
    """Failures before a success, with mean r·e^f; r is learnt, one per output: counts."""

    support = Support(low=0, whole=True)

    def __init__(self, ratio: Tensor | float = 1.0) -> None:
        super().__init__()
        self.ratio = Quantity("ratio", ratio)

    def _failure(self, f: Tensor) -> Tensor:
        return self.mean(f) / (1 + self.mean(f))

    def log_density(self, y: Tensor, f: Tensor) -> Tensor:
        return y * self._failure(f).log() - torch.log1p(self.mean(f))

    def cdf(self, y: Tensor, f: Tensor) -> Tensor:
        return 1 - self._failure(f) ** (y + 1)

    def sample(self, f: Tensor, generator: torch.Generator | None = None) -> Tensor:
        share = uniform(f.shape, generator, f)
        return torch.floor(torch.log1p(-share) / self._failure(f).log())

    def mean(self, f: Tensor) -> Tensor:
        ratio: Tensor = self.ratio()
        return ratio * f.exp()

    def variance(self, f: Tensor) -> Tensor:
        return self.mean(f) * (1 + self.mean(f))

    def arguments(self) -> dict[str, Any]:
        return {"ratio": self.ratio().detach()}
