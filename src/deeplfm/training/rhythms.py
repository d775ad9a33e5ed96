"""How many rhythms a series has, many, few or none: models beside the first, by their evidence.

    log p(y) ≈ log p(y | ξ) + log p(ξ) - ½ log det(precision of ξ / precision of its prior)

at the most probable ξ of each. Forty oscillators describe forty peaks of a spectrum; in a series
without as many rhythms these are peaks of chance, and what they cost is in the last term.
"""

import copy
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple, TypeAlias, final

import numpy as np
import torch
from numpy.typing import NDArray

from deeplfm.likelihoods import Gaussian
from deeplfm.models import MarkovDLFM
from deeplfm.models.markov_model import MarkovModel
from deeplfm.statespace.record import Record
from deeplfm.sums import Backend
from deeplfm.training.laplace import Posterior, fit_posterior
from deeplfm.training.settling import Found, settle

History: TypeAlias = Mapping[str, NDArray[np.float64]]
Train: TypeAlias = Callable[[MarkovModel], History | None]  # None where it was interrupted

FEW = 3  # oscillators
_SHORT = 1000  # observed numbers up to which few are always tried: more can tell many apart
_MOST_ROWS = 3000  # all of them are looked at in every step
_MOST_OUTPUTS = 4  # there are as many processes, and the states of all are one dense block


@final
class Simpler(NamedTuple):
    """A model with fewer parameters: where it started, what is believed of it, how it was found."""

    model: MarkovModel
    start: MarkovModel
    posterior: Posterior
    history: History


def simpler(
    recipe: MarkovDLFM,
    record: Record,
    bank: Posterior,
    train: Train,
    seed: int,
    backend: Backend = "auto",
) -> Simpler | None:
    """Smooth processes or few oscillators, where they explain a record better than many do.

    `train` trains oscillators.
    """
    if not may_be_simpler(recipe, record) or bank.log_evidence is None:
        return None

    def found(start: MarkovModel, learn: Train) -> Simpler | None:
        model = copy.deepcopy(start)
        history = learn(model)
        # Parameters that are integrated out can only cost: below it nothing is left to ask.
        if history is None or -history["loss"][-1] <= bank.log_evidence:
            return None
        return Simpler(model, start, fit_posterior(model, record, seed, backend), history)

    smooth = found(
        recipe.build_smooth(record), lambda model: _history(settle(model, record, backend))
    )
    few = None
    if smooth is not None or int((~np.isnan(record.targets)).sum()) <= _SHORT:
        fewer = replace(recipe, modes=FEW)
        few = found(fewer.build(record, torch.Generator().manual_seed(seed)), train)
    best = max((one for one in (smooth, few) if one), key=_log_evidence, default=None)
    return best if best is not None and _log_evidence(best) > bank.log_evidence else None


def may_be_simpler(recipe: MarkovDLFM, record: Record) -> bool:
    """Whether it is a question: nobody said how many oscillators there are, or which."""
    unsaid = recipe.modes == "auto" and not recipe.periods and recipe.greens_function is None
    few = len(record.times) <= _MOST_ROWS and record.num_outputs <= _MOST_OUTPUTS
    return unsaid and few and isinstance(recipe.likelihood, Gaussian)


def _log_evidence(one: Simpler) -> float:
    """Of the record, with the parameters integrated out."""
    found = one.posterior.log_evidence
    return -np.inf if found is None else found


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
