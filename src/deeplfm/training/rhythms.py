"""Whether a series has rhythms at all: oscillators against smooth processes, by their evidence.

    log p(y) ≈ log p(y | ξ) + log p(ξ) - ½ log det(precision of ξ / precision of its prior)

at the most probable ξ of each. Forty oscillators describe forty peaks of a spectrum; in a series
without a rhythm these are peaks of chance, and what they cost is in the last term.
"""

from collections.abc import Mapping
from typing import NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from deeplfm.likelihoods import Gaussian
from deeplfm.models import MarkovDLFM
from deeplfm.models.markov_model import MarkovModel
from deeplfm.statespace.record import Record
from deeplfm.sums import Backend
from deeplfm.training.laplace import Posterior, fit_posterior
from deeplfm.training.settling import Found, settle

_MOST_ROWS = 3000  # all of them are looked at in every step
_MOST_OUTPUTS = 4  # there are as many processes, and the states of all are one dense block


@final
class Smooth(NamedTuple):
    """A model of smooth processes, what is believed of it, and how it was found."""

    model: MarkovModel
    posterior: Posterior
    history: Mapping[str, NDArray[np.float64]]


def without_rhythm(
    recipe: MarkovDLFM, record: Record, bank: Posterior, seed: int, backend: Backend
) -> Smooth | None:
    """Smooth processes, where they explain a record better than its bank of oscillators does."""
    if not may_lack_rhythm(recipe, record) or bank.log_evidence is None:
        return None
    model = recipe.build_smooth(record)
    trace = settle(model, record, backend)
    if max(one.log_evidence + one.log_prior for one in trace) <= bank.log_evidence:
        return None  # parameters that are integrated out can only cost
    posterior = fit_posterior(model, record, seed, backend)
    if posterior.log_evidence is None or not posterior.log_evidence > bank.log_evidence:
        return None
    return Smooth(model, posterior, _history(trace))


def may_lack_rhythm(recipe: MarkovDLFM, record: Record) -> bool:
    """Whether it is a question: nobody said how many oscillators there are, or which."""
    unsaid = recipe.modes == "auto" and not recipe.periods and recipe.greens_function is None
    few = len(record.times) <= _MOST_ROWS and record.num_outputs <= _MOST_OUTPUTS
    return unsaid and few and isinstance(recipe.likelihood, Gaussian)


def _history(trace: list[Found]) -> dict[str, NDArray[np.float64]]:
    """The best that was found until each step, in the columns that other trainings have."""
    evidence, prior, seconds = (np.array(column) for column in zip(*trace, strict=True))
    loss, number = -evidence - prior, np.arange(len(trace))
    best = np.maximum.accumulate(np.where(loss == np.minimum.accumulate(loss), number, 0))
    return {
        "step": number + 1.0,
        "loss": loss[best],
        "log_evidence": evidence[best],
        "log_prior": prior[best],
        "seconds": seconds,
    }
