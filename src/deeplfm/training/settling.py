"""The last way to the most probable parameters, by quasi-Newton steps on all rows.

    trace = settle(model, record)      what each step found: log evidence, log prior, seconds

A Gaussian about parameters describes a belief only where they are the most probable ones: Adam
stops near, and the noise of a model with few parameters is then often still too large.
"""

import math
import time
from contextlib import suppress
from typing import NamedTuple

import torch
from torch import Tensor

from deeplfm.errors import InputError
from deeplfm.models.markov_model import MarkovModel
from deeplfm.statespace.record import Cut, Record
from deeplfm.sums import Backend
from deeplfm.training.robust import noise_scale
from deeplfm.training.threads import one_thread

_ROUNDS = 3  # of noise with heavy tails, each with weights of its own
_STEPS = 200  # quasi-Newton steps of a round, at most
_GRADIENT, _CHANGE = 1e-3, 1e-5  # of raw numbers, which are of size 1; of the log density


class Found(NamedTuple):
    """What was seen at one place on the way."""

    log_evidence: float
    log_prior: float
    seconds: float


def settle(model: MarkovModel, record: Record, backend: Backend = "auto") -> list[Found]:
    """Move a model to the nearest parameters of highest density."""
    trace: list[Found] = []
    if not model.raw():
        return trace
    cut = record.whole()
    with one_thread():
        scale = noise_scale(model, record, cut)
        _descend(model, record, cut, scale, backend, trace)
        for _ in range(0 if scale is None else _ROUNDS - 1):
            scale = noise_scale(model, record, cut, scale)
            _descend(model, record, cut, scale, backend, trace)
    return trace


def _descend(
    model: MarkovModel,
    record: Record,
    cut: Cut,
    scale: Tensor | None,
    backend: Backend,
    trace: list[Found],
) -> None:
    """Steps for noise of one scale, to the best place on their way, or the model stays.

    A step may be so long that numbers end there: the evidence is then not a number, or refused.
    """
    began = time.perf_counter() - (trace[-1].seconds if trace else 0.0)
    parameters = [raw.value for raw in model.raw()]
    best, kept = math.inf, [part.detach().clone() for part in parameters]
    optimiser = torch.optim.LBFGS(
        parameters,
        max_iter=_STEPS,
        tolerance_grad=_GRADIENT,
        tolerance_change=_CHANGE,
        line_search_fn="strong_wolfe",
    )

    def loss() -> Tensor:
        optimiser.zero_grad()
        evidence, prior = model.evidence(record, cut, None, scale, backend), model.log_prior()
        (-evidence - prior).backward()
        spent = time.perf_counter() - began
        trace.append(Found(float(evidence.detach()), float(prior.detach()), spent))
        found = (-evidence - prior).detach()
        nonlocal best, kept
        if found.item() < best:
            best, kept = found.item(), [part.detach().clone() for part in parameters]
        return found

    with suppress(torch.linalg.LinAlgError, InputError):  # type: ignore[attr-defined]
        optimiser.step(loss)
    optimiser.zero_grad()
    with torch.no_grad():
        for part, value in zip(parameters, kept, strict=True):
            part.copy_(value)
