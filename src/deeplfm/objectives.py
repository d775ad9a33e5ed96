"""What training maximises: functions of a model and a batch, nothing stored.

    elbo          N/|batch| Σ mean_S log p(y|f_s) - Σ KL         a bound, the paper's
    multi_sample  N/|batch| Σ log mean_S p(y|f_s) - Σ KL         tighter, not a bound

Sums run over observed entries. Restarts are compared by the ELBO or held-out density only.
"""

import math
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from deeplfm.likelihoods import Gaussian
from deeplfm.models import DeepLFM
from deeplfm.sums.backends import by_kernels, by_tables
from deeplfm.sums.torch.gaussian_density import gaussian_log_density


class Batch(NamedTuple):
    """Rows of a data set of `total` rows."""

    x: Float[Tensor, "N P"]
    y: Float[Tensor, "N D"]
    observed: Bool[Tensor, "N D"]
    total: int


class Terms(NamedTuple):
    """The two parts of an objective; their difference is maximised."""

    expected_log_likelihood: Float[Tensor, ""]
    kl: Float[Tensor, ""]

    @property
    def objective(self) -> Float[Tensor, ""]:
        return self.expected_log_likelihood - self.kl


Path: TypeAlias = Callable[[Tensor], Tensor]
Objective: TypeAlias = Callable[[DeepLFM, Batch, Path], Terms]


def elbo(model: DeepLFM, batch: Batch, path: Path) -> Terms:
    """The evidence lower bound with the functions of `path`."""
    f, likelihood = path(batch.x), model.likelihood
    if isinstance(likelihood, Gaussian) and f.numel():
        known = (batch.y, batch.observed, likelihood.noise_variance)
        if by_tables(f):
            return Terms(gaussian_log_density(f, *known, _scale(batch)), model.kl())
        if by_kernels(f):
            from deeplfm.sums.triton import gaussian as triton_gaussian

            total = triton_gaussian.gaussian_log_density(f, *known, batch.total)
            return Terms(total, model.kl())
    densities = likelihood.log_prob(batch.y, f, batch.observed)
    return Terms(densities.sum() * (_scale(batch) / len(f)), model.kl())


def multi_sample(model: DeepLFM, batch: Batch, path: Path) -> Terms:
    """The log of the mean density over samples, entry by entry."""
    densities = model.likelihood.log_prob(batch.y, path(batch.x), batch.observed)
    mixture = torch.logsumexp(densities, dim=0) - math.log(len(densities))
    return Terms(_scale(batch) * mixture.sum(), model.kl())


def _scale(batch: Batch) -> float:
    return batch.total / len(batch.x)
