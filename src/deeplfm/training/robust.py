"""Heavy tails as Gaussian noise whose size differs from entry to entry.

    t_ν noise is N(0, σ²/w), w ~ Gamma(ν/2, ν/2);   E[w] = (ν + 1) / (ν + r²/σ²)

r² is what the smoother leaves: the squared error of its mean, and its variance.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from deeplfm.likelihoods import StudentT
from deeplfm.models.markov_model import MarkovModel
from deeplfm.statespace.record import Cut, Record

_ROUNDS = 8


def noise_scale(
    model: MarkovModel,
    record: Record,
    cut: Cut,
    start: Float[Tensor, "B N D"] | None = None,
    rounds: int = _ROUNDS,
) -> Float[Tensor, "B N D"] | None:
    """1/E[w] of every entry, from a few rounds; None where the noise is Gaussian."""
    likelihood = model.likelihood
    if not isinstance(likelihood, StudentT):
        return None
    scale = torch.ones_like(cut.targets) if start is None else start
    with torch.no_grad():
        system = model.system()
        for _ in range(rounds):
            rows = model.observations(record, cut, scale=scale)
            found = system.smooth(rows, system.loadings, rows.design)
            squared = (cut.targets - found.mean).square() + found.variance
            ratio = squared / system.noise
            scale = (likelihood.degrees + ratio) / (likelihood.degrees + 1)
            scale = torch.where(cut.observed, scale, 1.0)
    return scale
