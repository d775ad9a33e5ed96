"""Annealed importance sampling and Hamiltonian Monte Carlo for a curve of a Gaussian series.

    y = x + c x² + noise,   x ~ N(0, K)

Chains start at a Gaussian about the most probable series and are carried to the posterior by
degrees; their weights estimate the evidence without bias. Chains are independent, so what they
differ by says how far the estimates are off.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]

_STRIDE, _LEAPS = 0.25, 6  # of a path, in units of the Gaussian that chains start from


class Sampled(NamedTuple):
    """Estimates, and the standard errors of the log evidence and of the means."""

    log_evidence: float
    mean: Values
    std: Values
    error_of_evidence: float
    error_of_mean: Values


class CurvedSeries:
    """A series that is seen through a parabola."""

    def __init__(self, covariance: Values, y: Values, bend: float, noise: float) -> None:
        self._y, self._bend, self._noise = y, bend, noise
        self._precision = np.linalg.inv(covariance)
        self._constant = -np.linalg.slogdet(2 * math.pi * covariance)[1] / 2
        self._constant -= len(y) * math.log(2 * math.pi * noise**2) / 2
        self._best = np.zeros(len(y))
        for _ in range(200):
            self._best = self._best + np.linalg.solve(self._curvature, self._slope(self._best)) / 2
        self._factor = np.linalg.cholesky(np.linalg.inv(self._curvature))

    def sampled(self, chains: int, rungs: int, after: int, seed: int) -> Sampled:
        """Estimates of so many chains, `rungs` of annealing, and `after` paths of the posterior."""
        random = np.random.default_rng(seed)
        place, weight = random.standard_normal((chains, len(self._y))), np.zeros(chains)
        for rung in range(rungs):
            weight += (self._joint(place)[0] - self._first(place)) / rungs
            place = self._moved(place, (rung + 1) / rungs, random)
        share = np.exp(weight - weight.max())
        log_evidence = weight.max() + math.log(share.mean())
        error = float(share.std() / share.mean() / math.sqrt(chains))
        place = place[random.choice(chains, chains, p=share / share.sum())]
        paths = []
        for number in range(after):
            place = self._moved(place, 1.0, random)
            if number >= after // 4:
                paths.append(self._best + place @ self._factor.T)
        every = np.array(paths)  # [paths, chains, N]
        between = every.mean(0).std(0) / math.sqrt(chains)
        return Sampled(log_evidence, every.mean((0, 1)), every.std((0, 1)), error, between)

    @property
    def _curvature(self) -> Values:
        bent = (1 + 2 * self._bend * self._best) / self._noise
        return np.asarray(self._precision + np.diag(bent**2))

    def _slope(self, x: Values) -> Values:
        left = self._y - x - self._bend * x**2
        return np.asarray(left * (1 + 2 * self._bend * x) / self._noise**2 - x @ self._precision)

    def _joint(self, place: Values) -> tuple[Values, Values]:
        """log p(y, x) in the units of the first Gaussian, and its slope."""
        x = self._best + place @ self._factor.T
        left = (self._y - x - self._bend * x**2) / self._noise
        value = self._constant - (left**2).sum(1) / 2 - (x * (x @ self._precision)).sum(1) / 2
        value += np.log(np.diag(self._factor)).sum()
        return value, self._slope(x) @ self._factor

    def _first(self, place: Values) -> Values:
        """The log density of the first Gaussian."""
        return np.asarray(-(place**2).sum(1) / 2 - len(self._y) * math.log(2 * math.pi) / 2)

    def _moved(self, place: Values, heat: float, random: np.random.Generator) -> Values:
        """One Hamiltonian path of each chain, on the geometric mean of both densities."""
        push = random.standard_normal(place.shape)

        def energy(at: Values) -> tuple[Values, Values]:
            value, slope = self._joint(at)
            return heat * value + (1 - heat) * self._first(at), heat * slope - (1 - heat) * at

        before, slope = energy(place)
        before, found = before - (push**2).sum(1) / 2, place
        for _ in range(_LEAPS):
            push = push + _STRIDE / 2 * slope
            found = found + _STRIDE * push
            after, slope = energy(found)
            push = push + _STRIDE / 2 * slope
        taken = np.log(random.random(len(place))) < after - (push**2).sum(1) / 2 - before
        return np.where(taken[:, None], found, place)
