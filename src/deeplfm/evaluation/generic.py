"""Quantiles and the CRPS of any mixture, from the distribution function of its components.

continuous:  F(q) = level, by Newton's method inside a bracket
whole:       the least whole q with F(q) ≥ level, by bisection
CRPS(y) = ∫ (F(z) - 1[y ≤ z])² dz
"""

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from deeplfm.evaluation.components import Components

Values = NDArray[np.float64]

_STEPS = 100  # bisections alone would need 60
_ROUNDING = 1e-10  # of the standard deviation, where a quantile stops
_LEVELS = 199  # quantiles that a CRPS without a closed form is taken from
_TAIL = 1e-7  # probability on either side that a sum over whole numbers leaves out
_TERMS = 2000  # whole numbers that it may have; beyond them quantiles are cheaper
_DOUBLINGS = 60


def moments(components: "Components") -> tuple[Values, Values]:
    """Mean and standard deviation of the mixture, [N, D]."""
    means = components.mean
    spread = np.sqrt(means.var(0) + components.variance.mean(0))
    return np.asarray(means.mean(0)), np.asarray(spread)


def search_range(components: "Components", level: float) -> tuple[Values, Values, Values]:
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


def crossing(components: "Components", level: float) -> Values:
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
        with np.errstate(divide="ignore", invalid="ignore"):
            proposed = at - error / density.mean(0)
        inside = (proposed > low[moving]) & (proposed < high[moving])
        value[moving] = np.where(inside, proposed, (low[moving] + high[moving]) / 2)
        moving = moving[np.abs(value[moving] - at) > close[moving]]
    return value.reshape(shape)


def least_whole(components: "Components", level: float) -> Values:
    """Quantiles by bisection: P(Y ≤ low) < level ≤ P(Y ≤ high) throughout."""
    low, _, high = components.search_range(level)
    while (high - low > 1).any():
        middle = np.floor((low + high) / 2)
        below = _share_below(components, middle) < level
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return high


def crps_by_quantiles(components: "Components", y: Values) -> Values:
    """Twice the mean of the quantile losses, over levels that are evenly spaced."""
    levels = (np.arange(_LEVELS) + 0.5) / _LEVELS
    quantiles = np.stack([components.quantile(float(level)) for level in levels])
    level = levels[:, None, None]
    loss = (np.where(y < quantiles, 1.0, 0.0) - level) * (quantiles - y)
    return np.where(np.isnan(y), np.nan, 2 * loss.mean(0))


def crps_of_whole(components: "Components", y: Values) -> Values:
    """The integral is a sum: F does not change from one whole number to the next."""
    first, last = components.quantile(_TAIL), components.quantile(1 - _TAIL)
    terms = int((last - first).max(initial=0)) + 1
    if terms > _TERMS:
        return crps_by_quantiles(components, y)
    # Beyond the ends F is 0 or 1, and counts where y lies out there too.
    total = np.maximum(first - y, 0.0) + np.maximum(y - (last + 1), 0.0)
    for term in range(terms):
        at = first + term
        share = _share_below(components, at)
        below = np.clip(y - at, 0.0, 1.0)  # how much of [at, at + 1) lies below y
        part = share**2 * below + (1 - share) ** 2 * (1 - below)
        total = total + np.where(at <= last, part, 0.0)
    return np.asarray(total)


def _share_below(components: "Components", y: Values) -> Values:
    """F of the mixture, [N, D]."""
    return np.asarray(components.cdf(y).mean(0))
