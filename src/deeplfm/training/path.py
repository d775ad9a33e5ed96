"""The path of a rhythm learns from the functions of its phase.

    q(path) ∝ first layer given the rows · Π exp(b θ - Λ θ²/2)
    Λ ← (1 - ρ) Λ + ρ c Σ_d g_d'² (1 - s_d²/σ_d²)/σ_d²,   b likewise, c Σ_d g_d' (y_d - f_d)/σ_d²

Residuals of the second layer pull the phase where its functions are steep (a Gauss-Newton step of
the evidence given a path); s² is what the rest of the state could take over, and says less there.
"""

import copy
from typing import NamedTuple, final

import torch
from jaxtyping import Float
from torch import Tensor

from deeplfm.models.markov_model import MarkovModel
from deeplfm.statespace.phase_sites import PhaseSites, no_sites, sites_of
from deeplfm.statespace.record import Cut, Record
from deeplfm.statespace.rhythm import phase_of, position

_ROUNDS, _RATE = 12, 0.4
_TRUST = 0.3  # in what a row says: the errors of its neighbours are like its own


class _Pull(NamedTuple):
    """What outputs say about the phase at every row: slope and curvature of their density."""

    slope: Float[Tensor, "B N"]
    precision: Float[Tensor, "B N"]


def learnt_path(
    first: MarkovModel, deep: MarkovModel, directions: Float[Tensor, "2 s"], record: Record
) -> PhaseSites:
    """Sites on the phase of the rhythm of a first layer, at rows with an observation.

    `deep` is the second layer above it. Neither changes.
    """
    deep, cut = copy.deepcopy(deep), record.whole()
    sites = no_sites(record, directions)
    precision = shift = torch.zeros_like(cut.times)
    began: Tensor | None = None
    with torch.no_grad():
        system, rows = first.system(), first.observations(record, cut)
        for _ in range(_ROUNDS):
            own = sites.beside(rows, record.timeline)
            mean, covariance = position(sites.joined(system), own, directions)
            phase, variance = phase_of(mean, covariance)
            began = phase if began is None else began
            pull = _pull(deep, record, cut, phase, variance)
            moved = _turn(phase - began)
            precision = (1 - _RATE) * precision + _RATE * pull.precision
            shift = (1 - _RATE) * shift + _RATE * (pull.slope + pull.precision * moved)
            target = shift / torch.where(precision > 0, precision, 1.0)
            sites = sites_of(record, directions, mean, _turn(target - moved), precision)
    return sites


@final
class _At:
    """A rhythm whose phase is given."""

    def __init__(self, phase: Tensor, variance: Tensor) -> None:
        self._given = phase, variance

    def __call__(self, record: Record, cut: Cut) -> tuple[Tensor, Tensor]:
        return self._given


def _pull(deep: MarkovModel, record: Record, cut: Cut, phase: Tensor, variance: Tensor) -> _Pull:
    if deep.phase is None:
        raise TypeError("a path learns from functions of its phase")
    deep.rhythm = _At(phase, variance)
    system, rows = deep.system(), deep.observations(record, cut)
    found = system.smooth(rows, system.loadings, rows.design)
    weights = found.weights[:, -deep.phase.count :]
    with torch.enable_grad():
        turned = phase.clone().requires_grad_()
        values = torch.einsum("bndw,bw->dbn", deep.phase(turned, variance), weights)
        steep = torch.stack(
            [torch.autograd.grad(one.sum(), turned, retain_graph=True)[0] for one in values], -1
        )
    left = (1 - found.variance / system.noise).clamp(min=0.0)
    error = torch.where(cut.observed, cut.targets - found.mean, 0.0)
    known = torch.where(cut.observed, steep.square() * left, 0.0)
    trust = _TRUST / system.noise
    return _Pull((trust * steep * error).sum(-1), (trust * known).sum(-1))


def _turn(angle: Tensor) -> Tensor:
    """The same angle between -π and π."""
    return torch.atan2(angle.sin(), angle.cos())
