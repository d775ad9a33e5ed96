"""What the data say about the clock of a rhythm: how much faster it ran, stretch by stretch.

    c_{w+1} = c_w + N(0, τ²),   p(y_w | c_w): the evidence of stretch w with all ω times 1 + c_w

Each stretch is a few periods of the strongest mode. c is on a grid, so its posterior is exact:
forward over the stretches, then draws backward. τ maximises the evidence; where a steady clock has
more of it, there is none.
"""

import copy
import math
from dataclasses import dataclass, replace
from typing import final

import numpy as np
import torch
from numpy.typing import NDArray

from deeplfm.models.markov_model import MarkovModel
from deeplfm.statespace.clock import Clock
from deeplfm.statespace.record import Cut, Record
from deeplfm.training.robust import noise_scale
from deeplfm.training.threads import side_by_side

Values = NDArray[np.float64]

_PERIODS = 2.5  # of the strongest mode in a stretch: enough to tell its rate
_LEAST, _FEWEST = 8, 4  # rows of a stretch, and stretches of a series that has a clock
_MOST_ROWS = 200_000  # of a record: every rate that is tried is a pass over all of them
_TRIED = np.linspace(-0.1, 0.1, 41)  # c whose evidence is computed; between, it is interpolated
_GRID = np.linspace(-0.1, 0.1, 161)
_CHANGES = (0.0005, 0.001, 0.0015, 0.002, 0.003, 0.005, 0.008, 0.012, 0.02)  # τ that are tried
_USUAL, _FIRST = 0.01, 0.03  # half-normal size of τ, and of the first c, before data come
_STEADY = 3.0  # nats that a clock must win: it is one more thing to believe


@final
@dataclass(frozen=True, eq=False)
class ClockPosterior:
    """log p(y_w | c) of every series [W, grid], its knots [W + 1], and τ."""

    evidence: tuple[Values, ...]
    knots: tuple[Values, ...]
    change: float

    def draw(self, count: int, seed: int) -> list[Clock]:
        """Clocks; each depends on the seed and its number alone."""
        passed = [_forward(own, self.change) if len(own) else None for own in self.evidence]
        found = []
        for k in range(count):
            generator = np.random.default_rng((seed % 2**64, k, 1))
            knots, faster = [], []
            for own, at in zip(passed, self.knots, strict=True):
                if own is None:
                    knots.append(at)
                    faster.append(np.zeros(0))
                    continue
                path = _backward(own, self.change, generator)
                more_knots, more = _beyond(at, path, self.change, generator)
                knots.append(more_knots)
                faster.append(more)
            found.append(Clock(tuple(knots), tuple(faster)))
        return found

    def mean(self) -> Clock:
        """The expected c of every stretch."""
        faster = []
        for own in self.evidence:
            forward = _forward(own, self.change) if len(own) else own
            after, walk = np.zeros(len(_GRID)), _walk(self.change)
            found = np.zeros(len(own))
            for w in reversed(range(len(own))):
                log = forward[w] + after
                weight = np.exp(log - log.max())
                found[w] = float(weight @ _GRID) / float(weight.sum())
                after = np.logaddexp.reduce(walk + own[w] + after, 1)
            faster.append(found)
        return Clock(self.knots, tuple(faster))


def fit_clock(fitted: MarkovModel, record: Record) -> ClockPosterior | None:
    """What a model with its parameters of now sees in a record; None: its clock is steady."""
    if fitted.bank is None or not _FEWEST * _LEAST <= len(record.times) <= _MOST_ROWS:
        return None
    model = copy.deepcopy(fitted)
    model.clock = None
    with torch.no_grad():
        evidence, knots = _stretches(model, record, _stretch_rows(model, record))
    if not any(len(own) for own in evidence):
        return None
    steady = sum(float(own[:, len(_GRID) // 2].sum()) for own in evidence)
    total = [
        sum(_total(own, change) for own in evidence if len(own)) - 0.5 * (change / _USUAL) ** 2
        for change in _CHANGES
    ]
    best = int(np.argmax(total))
    if total[best] < steady + _STEADY:
        return None
    return ClockPosterior(evidence, knots, _CHANGES[best])


def _stretch_rows(model: MarkovModel, record: Record) -> int:
    system = model.system()
    count = len(system.frequency)
    power = system.loadings[:, : 2 * count].square().sum(0).view(2, count).sum(0)
    period = 2 * math.pi / max(abs(float(system.frequency[int(power.argmax())])), 1e-300)
    return max(_LEAST, round(min(_PERIODS * period / record.step, len(record.times))))


def _stretches(
    model: MarkovModel, record: Record, length: int
) -> tuple[tuple[Values, ...], tuple[Values, ...]]:
    """log p(y_w | c) of every series [W, grid] and its knots; empty where a series is short."""
    order = np.lexsort((record.times, record.series))
    seen = ~np.isnan(record.targets[order]).all(1)
    starts, knots = [], []
    for number in range(record.num_series):
        own = np.flatnonzero((record.series[order] == number) & seen)
        own = np.arange(own[0], own[-1] + 1) if len(own) else own
        first = own[::length]
        at = record.times[order][np.append(first, own[-1:])]
        enough = len(first) >= _FEWEST and bool((np.diff(at) > 0).all())
        starts.append(first if enough else first[:0])
        knots.append(at if enough else at[:0])
    every = np.concatenate(starts)
    if not len(every):
        return (np.zeros((0, len(_GRID))),) * len(starts), tuple(knots)
    found = _evidence(model, record, record.stretches(order, every, length))
    return tuple(np.split(found, np.cumsum([len(own) for own in starts])[:-1])), tuple(knots)


def _evidence(model: MarkovModel, record: Record, cut: Cut) -> Values:
    """log p(y_w | c) of every stretch on the grid, [W, grid]."""
    from scipy.interpolate import CubicSpline  # slow to import, and rarely needed

    rows = model.observations(record, cut, scale=noise_scale(model, record, cut))
    system = model.system()

    def one(faster: float) -> Values:
        with torch.no_grad():
            moved = replace(system, frequency=system.frequency * (1 + faster))
            return np.asarray(moved.evidence(rows).numpy())

    found = np.stack(side_by_side(one, _TRIED.tolist()), 1)
    return np.asarray(CubicSpline(_TRIED, found, axis=1)(_GRID))


def _walk(change: float) -> Values:
    """log p(c_{w+1} | c_w) on the grid."""
    log = -0.5 * ((_GRID[:, None] - _GRID) / change) ** 2
    return np.asarray(log - np.logaddexp.reduce(log, 1, keepdims=True))


def _forward(evidence: Values, change: float) -> Values:
    """log p(y_1…y_w, c_w), [W, grid]."""
    walk = np.exp(_walk(change))
    found = np.empty_like(evidence)
    first = -0.5 * (_GRID / _FIRST) ** 2
    found[0] = evidence[0] + first - np.logaddexp.reduce(first)
    for w in range(1, len(evidence)):
        top = found[w - 1].max()
        found[w] = evidence[w] + top + np.log(np.exp(found[w - 1] - top) @ walk + 1e-300)
    return found


def _total(evidence: Values, change: float) -> float:
    return float(np.logaddexp.reduce(_forward(evidence, change)[-1]))


def _backward(passed: Values, change: float, generator: np.random.Generator) -> Values:
    """One path of c, [W]."""
    walk, path, at = _walk(change), np.empty(len(passed)), 0
    for w in reversed(range(len(passed))):
        log = passed[w] if w == len(passed) - 1 else passed[w] + walk[:, at]
        weight = np.exp(log - log.max())
        at = int(generator.choice(len(_GRID), p=weight / weight.sum()))
        path[w] = _GRID[at]
    return path


def _beyond(
    knots: Values, path: Values, change: float, generator: np.random.Generator
) -> tuple[Values, Values]:
    """Knots and c with as many stretches more on either side, where the clock wanders on."""
    count, length = len(path), float(np.median(np.diff(knots)))
    before, after = (change * np.cumsum(generator.standard_normal(count)) for _ in range(2))
    steps = length * np.arange(1, count + 1)
    every = np.concatenate([path[0] + before[::-1], path, path[-1] + after])
    at = np.concatenate([knots[0] - steps[::-1], knots, knots[-1] + steps])
    return at, np.clip(every, 5 * _GRID[0], 5 * _GRID[-1])
