"""What training maximises: functions of a model and a batch, nothing stored.

    elbo          N/|batch| Σ mean_S log p(y|f_s) - Σ KL         a bound, the paper's
    multi_sample  N/|batch| Σ log mean_S p(y|f_s) - Σ KL         tighter, not a bound

Sums run over observed entries. Restarts are compared by the ELBO or held-out density only.
"""

import math
from collections.abc import Callable
from typing import NamedTuple, Protocol, TypeAlias

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from deeplfm.models import DeepLFM
from deeplfm.sums import Backend, gaussian_density


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


class Objective(Protocol):
    """A function of a model, a batch and drawn functions; `backend` says how sums are computed."""

    def __call__(
        self, model: DeepLFM, batch: Batch, path: Path, backend: Backend = "auto"
    ) -> Terms: ...


def elbo(model: DeepLFM, batch: Batch, path: Path, backend: Backend = "auto") -> Terms:
    """The evidence lower bound with the functions of `path`."""
    f, likelihood = path(batch.x), model.likelihood
    variance = likelihood.gaussian_variance
    if variance is not None:
        known = (batch.y, batch.observed, variance.expand(batch.y.shape[-1]), batch.total)
        return Terms(gaussian_density.by(backend, f, *known), model.kl(backend))
    densities = likelihood.log_prob(batch.y, f, batch.observed)
    return Terms(densities.sum() * (_scale(batch) / len(f)), model.kl(backend))


def multi_sample(model: DeepLFM, batch: Batch, path: Path, backend: Backend = "auto") -> Terms:
    """The log of the mean density over samples, entry by entry."""
    densities = model.likelihood.log_prob(batch.y, path(batch.x), batch.observed)
    mixture = torch.logsumexp(densities, dim=0) - math.log(len(densities))
    return Terms(_scale(batch) * mixture.sum(), model.kl(backend))


def _scale(batch: Batch) -> float:
    return batch.total / len(batch.x)
