"""What is believed of the physics after the data: a Gaussian about the best raw parameters.

    precision = Jᵀ H J + prior precision,   H = -∂² log evidence / ∂φ²,   J = ∂φ/∂ξ

H is in the natural parameters φ, from differences of exact gradients; phases of modes change
nothing that can be observed and do not move. Along directions that data say little about, the
density is asked how far it really reaches: a parabola would believe too much of them.
"""

import copy
import math
from typing import NamedTuple, final

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from deeplfm.errors import NumericalError
from deeplfm.models.markov_model import MarkovModel, Natural
from deeplfm.statespace.record import Cut, Record
from deeplfm.sums import Backend
from deeplfm.training.robust import noise_scale
from deeplfm.training.threads import side_by_side

_DIFFERENCE = 1e-4  # of natural parameters, which are of size 1
_LOOSE = 30.0  # precision below which a direction is asked: the curvature is that of a long way
_PROBES, _HALVINGS = 4, 6  # draws that are looked at, and how closely their reach is found
_FEW = 8  # ways: draws along so few differ in length by a quarter and more
_DOUBT = 2.0  # times as wide as the evidence says: rates and frequencies of a bank
_UNLIKE = 1e-3  # relative difference of prior precisions, from the first parameter to the last
_ROWS = 2500  # that the curvature is taken from, at most; more are counted, not looked at


@final
class Posterior(nn.Module):
    """A Gaussian over all raw parameters of a model: mean and a factor [n, n] of its covariance."""

    mean: Tensor
    factor: Tensor
    # log p(y) with the parameters integrated out, of a posterior that was fitted; in no file.
    log_evidence: float | None = None

    def __init__(self, size: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(size, dtype=torch.float64))
        self.register_buffer("factor", torch.zeros(size, size, dtype=torch.float64))

    def draw(self, count: int, seed: int) -> Float[Tensor, "S n"]:
        """Draws of the raw parameters; each depends on the seed and its number alone."""
        rows = []
        for k in range(count):
            generator = np.random.default_rng((seed % 2**64, k))
            rows.append(torch.tensor(generator.standard_normal(len(self.mean))))
        noise = torch.stack(rows)
        # Where the curvature could not be computed, as of data without any noise: the mode alone.
        return self.mean + noise @ self.factor.mT.nan_to_num(0.0, 0.0, 0.0)


def flat_parameters(model: MarkovModel) -> Float[Tensor, " n"]:
    """All raw parameters in one row."""
    return torch.cat([raw.value.detach().reshape(-1) for raw in model.raw()])


def set_flat(model: MarkovModel, values: Float[Tensor, " n"]) -> None:
    """The opposite."""
    first = 0
    with torch.no_grad():
        for raw in model.raw():
            count = raw.value.numel()
            raw.value.copy_(values[first : first + count].view_as(raw.value))
            first += count


def with_flat(model: MarkovModel, values: Float[Tensor, " n"]) -> MarkovModel:
    """A copy that has these parameters."""
    other = copy.deepcopy(model)
    set_flat(other, values)
    return other


def fit_posterior(
    model: MarkovModel,
    record: Record,
    seed: int,
    backend: Backend = "auto",
) -> Posterior:
    """The Gaussian about the parameters that a model has now."""
    cut, share = curvature_rows(record, seed)
    rows = _Rows(record, cut, noise_scale(model, record, cut), share, backend)
    curvature = share * _curvature(model, rows)
    jacobian = _jacobian(model)
    prior = torch.cat(
        [torch.full((raw.value.numel(),), raw.spread**-2).double() for raw in model.raw()]
    )
    # Where the evidence is not concave it says nothing about how far a parameter is known.
    values, vectors = torch.linalg.eigh(curvature)
    half = (vectors * values.clamp(min=0).sqrt()).mT @ jacobian
    # No two are quite alike: else rounding would choose among directions without data.
    order = torch.linspace(1, 1 + _UNLIKE, len(prior), dtype=torch.float64)
    precision = half.mT @ half + torch.diag(prior * order)
    values, vectors = torch.linalg.eigh(precision)
    posterior = Posterior(len(prior))
    posterior.mean.copy_(flat_parameters(model))
    density = _Density(model, rows)
    posterior.log_evidence = density.top - float((values.log().sum() - prior.log().sum()) / 2)
    factor = _without_turns(model, vectors * values.clamp(min=1e-12).rsqrt())
    loose = torch.nonzero((values < _LOOSE) & (factor.norm(dim=0) > 1e-9))[:, 0]
    factor[:, loose] *= _reach(density, factor[:, loose])
    # Nothing here depends on the signs that eigenvectors happen to have.
    noise = torch.tensor(np.random.default_rng(seed).standard_normal((_PROBES, len(prior))))
    away = _usual_draws(noise @ vectors[:, loose]) @ factor[:, loose].mT
    factor[:, loose] *= _shrink(density, away, len(loose))
    posterior.factor.copy_(_doubts(model) * (factor @ vectors.mT))
    return posterior


def _doubts(model: MarkovModel) -> Float[Tensor, "n 1"]:
    """How much wider than the evidence says a parameter is believed to be.

    An oscillator describes a rhythm, and a rhythm changes: a record says surely how it was, not how
    it will be. So rates and frequencies of a bank are doubted; an ODE of the user is not.
    """
    parts = []
    for name, value, _ in model.raw():
        doubted = name in ("bank.log_decay", "bank.shift")
        parts.append(torch.full((value.numel(), 1), _DOUBT if doubted else 1.0).double())
    return torch.cat(parts)


class _Rows(NamedTuple):
    """The rows that are looked at, how noisy their entries are, and how many times more there are.

    Noise with heavy tails is as it is about the best parameters.
    """

    record: Record
    cut: Cut
    scale: Tensor | None
    share: float
    backend: Backend

    def evidence(self, model: MarkovModel, natural: Natural | None = None) -> Tensor:
        return model.evidence(self.record, self.cut, natural, self.scale, self.backend)


@final
class _Density:
    """The log density of raw parameters, by how much it falls from where the model is now."""

    def __init__(self, model: MarkovModel, rows: _Rows) -> None:
        self._model, self._rows = model, rows
        self._centre = flat_parameters(model)
        self.top = self._at(copy.deepcopy(model), self._centre)

    def falls(self, ways: Float[Tensor, "k n"]) -> Float[Tensor, " k"]:
        """How much lower it is a way off; infinite where it cannot be computed."""
        workers = max(1, torch.get_num_threads())
        shares = [list(range(k, len(ways), workers)) for k in range(workers)]

        def work(rows: list[int]) -> list[float]:
            own = copy.deepcopy(self._model)
            return [self.top - self._at(own, self._centre + ways[k]) for k in rows]

        found = torch.zeros(len(ways), dtype=torch.float64)
        for rows, values in zip(shares, side_by_side(work, shares), strict=True):
            found[rows] = torch.tensor(values, dtype=torch.float64)
        return torch.where(found.isfinite(), found, torch.inf)

    def _at(self, own: MarkovModel, values: Tensor) -> float:
        set_flat(own, values)
        with torch.no_grad():
            try:
                return float(self._rows.share * self._rows.evidence(own) + own.log_prior())
            except NumericalError:  # so far away nothing can be computed
                return -math.inf


def _reach(density: _Density, ways: Float[Tensor, "n k"]) -> Float[Tensor, " k"]:
    """How far each way may be gone, 1 at most, so that the log density falls by 1/2."""
    both = density.falls(torch.cat((ways, -ways), 1).mT).view(2, -1).mean(0)
    return (0.5 / both.clamp(min=0.5)).sqrt()


def _usual_draws(draws: Float[Tensor, "k m"]) -> Float[Tensor, "k m"]:
    """Draws to look at: of few numbers both ways, as long as draws are on average.

    A draw that happens to be long would say that the density falls too fast. Of many numbers all
    draws have nearly the same length, √m, and are taken as they are.
    """
    if not 0 < draws.shape[1] <= _FEW:
        return draws
    half = draws[: _PROBES // 2]
    usual = half * draws.shape[1] ** 0.5 / half.norm(dim=1, keepdim=True)
    return torch.cat((usual, -usual))


def _shrink(density: _Density, away: Float[Tensor, "k n"], count: int) -> float:
    """How far draws may go, 1 at most, so that they are where a Gaussian of `count` numbers is.

    Small steps along many ways at once add up to more than each of them says.
    """
    usual = count / 2
    low, high = 0.0, 1.0
    if float(density.falls(away).mean()) <= usual:
        return 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if float(density.falls(middle * away).mean()) <= usual:
            low = middle
        else:
            high = middle
    return low


def curvature_rows(record: Record, seed: int) -> tuple[Cut, float]:
    """The rows that the curvature is taken from, and how many times as many there are."""
    if len(record.times) <= _ROWS:
        return record.whole(), 1.0
    generator = torch.Generator().manual_seed(seed)
    length = min(1000, _ROWS)
    cut = record.windows(_ROWS // length, length, generator)
    everything = float((~np.isnan(record.targets)).sum())
    return cut, everything / max(1.0, float(cut.observed.sum()))


def _curvature(model: MarkovModel, rows: _Rows) -> Float[Tensor, "m m"]:
    """H in the natural parameters.

    A frequency of the user's physics may be known a thousand times as well as a lengthscale is. An
    error of first order in the curvature of the one is then more than that of the other: without a
    bank of oscillators, whose numbers are many and alike, differences are taken about the centre.
    """
    natural = {name: value.detach() for name, value in model.natural().items()}
    centre = torch.cat([value.reshape(-1) for value in natural.values()])

    def gradient(values: Tensor) -> Tensor:
        values = values.clone().requires_grad_()
        given, first = {}, 0
        for name, value in natural.items():
            given[name] = values[first : first + value.numel()].view_as(value)
            first += value.numel()
        # A copy of its own: parameters are given to a module by putting them there for a while.
        (by,) = torch.autograd.grad(rows.evidence(copy.deepcopy(model), given), values)
        return by

    at = gradient(centre) if model.bank is not None else None

    def row(k: int) -> Tensor:
        way = torch.zeros_like(centre)
        way[k] = _DIFFERENCE
        if at is not None:
            return (at - gradient(centre + way)) / _DIFFERENCE
        return (gradient(centre - way) - gradient(centre + way)) / (2 * _DIFFERENCE)

    found = torch.stack(side_by_side(row, range(len(centre))))
    return (found + found.mT) / 2


def _jacobian(model: MarkovModel) -> Float[Tensor, "m n"]:
    """∂φ/∂ξ."""
    raw = [raw.value for raw in model.raw()]
    flat = torch.cat([value.reshape(-1) for value in model.natural().values()])
    rows = torch.autograd.grad(
        flat, raw, torch.eye(len(flat), dtype=flat.dtype), is_grads_batched=True, allow_unused=True
    )
    parts = [
        flat.new_zeros(len(flat), value.numel()) if row is None else row.reshape(len(flat), -1)
        for row, value in zip(rows, raw, strict=True)
    ]
    return torch.cat(parts, 1)


def _without_turns(model: MarkovModel, factor: Tensor) -> Tensor:
    """The factor without what only shifts the phase of a mode."""
    if model.bank is None:
        return factor
    tangents = []
    count = len(model.bank.log_decay)
    turned = {id(part): turn for part, turn in model.bank.turns()}
    for k in range(count):
        parts = []
        for raw in model.raw():
            part = torch.zeros_like(raw.value)
            if id(raw.value) in turned:
                part[:, k] = turned[id(raw.value)][:, k]
            parts.append(part.detach().reshape(-1))
        tangent = torch.cat(parts)
        tangents.append(tangent / tangent.norm().clamp(min=1e-12))
    turns = torch.stack(tangents, 1)
    return factor - turns @ (turns.mT @ factor)
