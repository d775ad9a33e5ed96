"""The components of a predictive mixture: S distributions of a target at every point and output.

    p(y) = 1/S Σ_s p_s(y)

A family says what one component is; the quantiles and the CRPS of the mixture follow from its
distribution function, unless a family knows better (`families`). Numpy, in the user's units.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias, final

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray

from deeplfm.evaluation.support import REAL_LINE, Support
from deeplfm.randomness import derived_seed

Values: TypeAlias = NDArray[np.float64]
Chosen: TypeAlias = slice | NDArray[np.integer] | NDArray[np.bool_]
Places: TypeAlias = NDArray[np.integer]
Range: TypeAlias = tuple[Values, Values, Values]

ALL = slice(None)

_STEPS = 100  # bisections alone would need 60
_ROUNDING = 1e-10  # of the standard deviation, where a quantile stops
_LEVELS = 199  # quantiles that a CRPS without a closed form is taken from
_TAIL = 1e-7  # probability on either side that a sum over whole numbers leaves out
_TERMS = 2000  # whole numbers that it may have; beyond them quantiles are cheaper
_DOUBLINGS = 60


class Components(ABC):
    """S distributions of a target at each of N points and D outputs.

    Methods that take `y` [N, D] give one number per component, [S, N, D]; NaN where `y` is NaN.
    """

    @property
    def support(self) -> Support:
        """The values that a target can have."""
        return REAL_LINE

    @property
    def noisy(self) -> bool:
        """Whether a target differs from its function; components without noise have no density."""
        return True

    @property
    def has_closed_crps(self) -> bool:
        """Whether `crps` is a closed form: quick, and exact."""
        return False

    @property
    @abstractmethod
    def mean(self) -> Float[np.ndarray, "S N D"]:
        """The expected target of every component."""

    @property
    @abstractmethod
    def variance(self) -> Float[np.ndarray, "S2 N2 D"]:
        """The variance of a target; axes of size 1 stand for equal numbers."""

    @abstractmethod
    def cdf(self, y: Values) -> Float[np.ndarray, "S N D"]:
        """P(Y ≤ y)."""

    @abstractmethod
    def log_density(self, y: Values) -> Float[np.ndarray, "S N D"]:
        """log p(y); -inf outside of the support."""

    @abstractmethod
    def sample(self, seed: int) -> Float[np.ndarray, "S N D"]:
        """One target of every component; the same seed gives the same targets."""

    @abstractmethod
    def select(self, rows: Chosen = ALL, outputs: Chosen = ALL) -> "Components":
        """The same components at some of the points and outputs."""

    def density(self, y: Values) -> Float[np.ndarray, "S N D"]:
        """p(y)."""
        return np.asarray(np.exp(self.log_density(y)))

    def at_points(
        self, rows: Places, outputs: Places, y: Float[np.ndarray, " K"]
    ) -> tuple[Float[np.ndarray, "S K"], Float[np.ndarray, "S K"]]:
        """P(Y ≤ y) and p(y) at K points, each given by its row and its output."""
        used, place = np.unique(rows, return_inverse=True)
        grid = np.full((len(used), self.mean.shape[2]), np.nan)
        grid[place, outputs] = y
        some = self.select(used)
        return some.cdf(grid)[:, place, outputs], some.density(grid)[:, place, outputs]

    def followed_by(self, others: Sequence["Components"]) -> "Components":
        """These components and those of other members of a mixture, in this order."""
        return Joined((self, *others)) if others else self

    def search_range(self, level: float) -> Range:
        """Where a quantile is searched for, [N, D] each: from, at first, to."""
        return _search_range(self, level)

    def quantile(self, level: float) -> Float[np.ndarray, "N D"]:
        """The least y with P(Y ≤ y) ≥ level, of the mixture."""
        search = _least_whole if self.support.whole else _crossing
        return search(self, level)

    def crps(self, y: Values) -> Float[np.ndarray, "N D"]:
        """E|Y - y| - ½ E|Y - Y'| of the mixture."""
        score = _crps_of_whole if self.support.whole else _crps_by_quantiles
        return score(self, y)


@final
@dataclass(frozen=True, eq=False)
class Joined(Components):
    """Components of several members of a mixture, one member after the other."""

    parts: tuple[Components, ...]

    @property
    def support(self) -> Support:
        return self.parts[0].support

    @property
    def mean(self) -> Values:
        return np.concatenate([part.mean for part in self.parts])

    @property
    def variance(self) -> Values:
        shapes = [part.mean.shape for part in self.parts]
        every = zip((part.variance for part in self.parts), shapes, strict=True)
        return np.concatenate([np.broadcast_to(variance, shape) for variance, shape in every])

    def cdf(self, y: Values) -> Values:
        return np.concatenate([part.cdf(y) for part in self.parts])

    def log_density(self, y: Values) -> Values:
        return np.concatenate([part.log_density(y) for part in self.parts])

    def sample(self, seed: int) -> Values:
        parts = enumerate(self.parts)
        return np.concatenate([part.sample(derived_seed(seed, k)) for k, part in parts])

    def select(self, rows: Chosen = ALL, outputs: Chosen = ALL) -> "Joined":
        return Joined(tuple(part.select(rows, outputs) for part in self.parts))


def moments(components: Components) -> tuple[Values, Values]:
    """Mean and standard deviation of the mixture, [N, D]."""
    means = components.mean
    spread = np.sqrt(means.var(0) + components.variance.mean(0))
    return np.asarray(means.mean(0)), np.asarray(spread)


def _search_range(components: Components, level: float) -> tuple[Values, Values, Values]:
    """From, at first, to: by Cantelli's inequality, and wider where the moments are not exact."""
    from scipy.special import ndtri

    mean, std = (np.nan_to_num(value, posinf=0.0, neginf=0.0) for value in moments(components))
    support = components.support
    room = 1e-6 * std + np.finfo(np.float64).tiny
    low = np.maximum(mean - std * math.sqrt((1 - level) / level) - room, support.low)
    high = np.minimum(mean + std * math.sqrt(level / (1 - level)) + room, support.high)
    lowest = support.low - support.whole  # nothing is below the least whole number
    if support.whole:
        low, high = np.maximum(np.floor(low) - 1, lowest), np.ceil(high)
    for _ in range(_DOUBLINGS):
        width = np.maximum(high - low, 1.0)
        above = (_share_below(components, low) >= level) & (low > lowest)
        below = (_share_below(components, high) < level) & (high < support.high)
        if not (above | below).any():
            break
        low = np.maximum(np.where(above, low - width, low), lowest)
        high = np.minimum(np.where(below, high + width, high), support.high)
    return low, np.clip(mean + std * ndtri(level), low, high), high


def _crossing(components: Components, level: float) -> Values:
    """Newton's method, and a bisection wherever it would leave what must hold the answer.

    Only points that still move are evaluated: mixtures with little noise are staircases, on
    which a few points need many steps.
    """
    spread = moments(components)[1].reshape(-1)
    shape = components.mean.shape[1:]
    low, value, high = (edge.reshape(-1) for edge in components.search_range(level))
    close = _ROUNDING * np.where(np.isfinite(spread), spread, high - low)
    moving = np.arange(len(value))
    for _ in range(_STEPS):
        if not len(moving):
            break
        at = value[moving]
        rows, outputs = np.divmod(moving, shape[1])
        share, density = components.at_points(rows, outputs, at)
        error = share.mean(0) - level
        low[moving] = np.where(error < 0, at, low[moving])
        high[moving] = np.where(error < 0, high[moving], at)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            proposed = at - error / density.mean(0)
        inside = (proposed > low[moving]) & (proposed < high[moving])
        value[moving] = np.where(inside, proposed, (low[moving] + high[moving]) / 2)
        moving = moving[np.abs(value[moving] - at) > close[moving]]
    return value.reshape(shape)


def _least_whole(components: Components, level: float) -> Values:
    """Quantiles by bisection: P(Y ≤ low) < level ≤ P(Y ≤ high) throughout."""
    low, _, high = components.search_range(level)
    while (high - low > 1).any():
        middle = np.floor((low + high) / 2)
        below = _share_below(components, middle) < level
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return high


def _crps_by_quantiles(components: Components, y: Values) -> Values:
    """Twice the mean of the quantile losses, over levels that are evenly spaced."""
    levels = (np.arange(_LEVELS) + 0.5) / _LEVELS
    quantiles = np.stack([components.quantile(float(level)) for level in levels])
    level = levels[:, None, None]
    loss = (np.where(y < quantiles, 1.0, 0.0) - level) * (quantiles - y)
    return np.where(np.isnan(y), np.nan, 2 * loss.mean(0))


def _crps_of_whole(components: Components, y: Values) -> Values:
    """The integral is a sum: F does not change from one whole number to the next."""
    first, last = components.quantile(_TAIL), components.quantile(1 - _TAIL)
    terms = int((last - first).max(initial=0)) + 1
    if terms > _TERMS:
        return _crps_by_quantiles(components, y)
    # Beyond the ends F is 0 or 1, and counts where y lies out there too.
    total = np.maximum(first - y, 0.0) + np.maximum(y - (last + 1), 0.0)
    for term in range(terms):
        at = first + term
        share = _share_below(components, at)
        below = np.clip(y - at, 0.0, 1.0)  # how much of [at, at + 1) lies below y
        part = share**2 * below + (1 - share) ** 2 * (1 - below)
        total = total + np.where(at <= last, part, 0.0)
    return np.asarray(total)


def _share_below(components: Components, y: Values) -> Values:
    """F of the mixture, [N, D]."""
    return np.asarray(components.cdf(y).mean(0))
