"""Families of components: Gaussian, Student-t, and functions without any noise.

    y = center + scale · ε,   ε standard normal or t_ν

Centres are [S, N, D]; scales broadcast against them. Quantiles start from those of ε.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np

from deeplfm.errors import InputError
from deeplfm.evaluation.components import ALL, Chosen, Components, Places, Range, Values

_CHUNK = 2**22  # entries of [S, S, N, D] held at once in the CRPS


@dataclass(frozen=True, eq=False)
class LocationScale(Components, ABC):
    """center + scale · ε for one distribution of ε.

    center: [S, N, D]; scale: [D], or [S, N, D] with 1 for axes along which it is equal.
    """

    center: Values
    scale: Values

    def __post_init__(self) -> None:
        missing = 3 - self.scale.ndim
        object.__setattr__(self, "scale", self.scale.reshape((1,) * missing + self.scale.shape))

    @property
    def mean(self) -> Values:
        return self.center

    @property
    def variance(self) -> Values:
        return np.asarray(self._variance_factor() * self.scale**2)

    def cdf(self, y: Values) -> Values:
        return self._below(self._scaled(y))

    def density(self, y: Values) -> Values:
        return self._density(self._scaled(y)) / self.scale

    def at_points(self, rows: Places, outputs: Places, y: Values) -> tuple[Values, Values]:
        scale = np.broadcast_to(self.scale, self.center.shape)[:, rows, outputs]
        scaled = (y - self.center[:, rows, outputs]) / scale
        return self._below(scaled), self._density(scaled) / scale

    def log_density(self, y: Values) -> Values:
        return np.asarray(self._noise().logpdf(self._scaled(y)) - np.log(self.scale))

    def select(self, rows: Chosen = ALL, outputs: Chosen = ALL) -> "LocationScale":
        scale = self.scale if self.scale.shape[1] == 1 else self.scale[:, rows]
        scale = scale if scale.shape[2] == 1 else scale[:, :, outputs]
        return replace(self, center=self.center[:, rows][:, :, outputs], scale=scale)

    def followed_by(self, others: Sequence[Components]) -> Components:
        if not others:
            return self
        alike = [
            part
            for part in (self, *others)
            if isinstance(part, type(self)) and part._like() == self._like()
        ]
        if len(alike) <= len(others):
            return super().followed_by(others)
        points = {part.scale.shape[1] for part in alike}
        middle = 1 if points == {1} else self.center.shape[1]
        scales = [
            np.broadcast_to(part.scale, (len(part.center), middle, part.center.shape[2]))
            for part in alike
        ]
        center = np.concatenate([part.center for part in alike])
        return replace(self, center=center, scale=np.concatenate(scales))

    def search_range(self, level: float) -> Range:
        """No quantile of the mixture is beyond those of all its components."""
        ppf = self._noise().ppf
        reach = np.abs(ppf(min(level, 1 - level))) * self.scale.max(0)
        low, high = self.center.min(0) - reach, self.center.max(0) + reach
        spread = np.sqrt(self.center.var(0) + self.variance.mean(0))
        return low, np.clip(self.center.mean(0) + spread * ppf(level), low, high), high

    def quantile(self, level: float) -> Values:
        if not self.scale.any():
            return PointComponents(self.center).quantile(level)
        self._check_noise()
        return super().quantile(level)

    def _scaled(self, y: Values) -> Values:
        self._check_noise()
        return np.asarray((y - self.center) / self.scale)

    def _check_noise(self) -> None:
        if not self.scale.all():
            raise _without_noise()

    def _like(self) -> tuple[float, ...]:
        """What components must have in common to be of one family."""
        return ()

    @abstractmethod
    def _noise(self) -> Any:
        """The distribution of ε in scipy."""

    @abstractmethod
    def _below(self, scaled: Values) -> Values:
        """The distribution function of ε: quicker than that of `_noise`."""

    @abstractmethod
    def _density(self, scaled: Values) -> Values:
        """The density of ε: quicker than that of `_noise`."""

    @abstractmethod
    def _variance_factor(self) -> float:
        """The variance of ε."""


@final
@dataclass(frozen=True, eq=False)
class NormalComponents(LocationScale):
    """N(center, scale²): `scale` is a standard deviation, of noise or of what is not known of f.

    noise: False where targets are the functions themselves, forces, say, with moments in closed
    form.
    """

    noise: bool = True

    @property
    def noisy(self) -> bool:
        return self.noise

    @property
    def has_closed_crps(self) -> bool:
        return True

    def sample(self, seed: int) -> Values:
        noise = np.random.default_rng(seed).standard_normal(self.center.shape)
        return np.asarray(self.center + self.scale * noise)

    def crps(self, y: Values) -> Values:
        return _crps_of_pairs(self.center, self.scale, y)

    def _noise(self) -> Any:
        from scipy import stats

        return stats.norm()

    def _below(self, scaled: Values) -> Values:
        from scipy.special import ndtr

        return np.asarray(ndtr(scaled))

    def _density(self, scaled: Values) -> Values:
        return np.asarray(np.exp(-(scaled**2) / 2) / math.sqrt(2 * math.pi))

    def _variance_factor(self) -> float:
        return 1.0


@final
@dataclass(frozen=True, eq=False)
class StudentTComponents(LocationScale):
    """center + scale · t_ν, with `degrees` ν above 2."""

    degrees: float

    def sample(self, seed: int) -> Values:
        noise = np.random.default_rng(seed).standard_t(self.degrees, self.center.shape)
        return np.asarray(self.center + self.scale * noise)

    def _like(self) -> tuple[float, ...]:
        return (self.degrees,)

    def _noise(self) -> Any:
        from scipy import stats

        return stats.t(self.degrees)

    def _below(self, scaled: Values) -> Values:
        from scipy.special import stdtr

        return np.asarray(stdtr(self.degrees, scaled))

    def _density(self, scaled: Values) -> Values:
        nu = self.degrees
        constant = math.lgamma((nu + 1) / 2) - math.lgamma(nu / 2) - math.log(nu * math.pi) / 2
        return np.asarray(np.exp(constant - (nu + 1) / 2 * np.log1p(scaled**2 / nu)))

    def _variance_factor(self) -> float:
        return self.degrees / (self.degrees - 2)


@final
@dataclass(frozen=True, eq=False)
class PointComponents(Components):
    """The functions themselves, without noise: forces, say. values: [S, N, D]."""

    values: Values

    @property
    def noisy(self) -> bool:
        return False

    @property
    def has_closed_crps(self) -> bool:
        return True

    @property
    def mean(self) -> Values:
        return self.values

    @property
    def variance(self) -> Values:
        return np.zeros((1, 1, self.values.shape[2]))

    def cdf(self, y: Values) -> Values:
        raise _without_noise()

    def log_density(self, y: Values) -> Values:
        raise _without_noise()

    def sample(self, seed: int) -> Values:
        return self.values

    def select(self, rows: Chosen = ALL, outputs: Chosen = ALL) -> "PointComponents":
        return PointComponents(self.values[:, rows][:, :, outputs])

    def quantile(self, level: float) -> Values:
        return np.asarray(np.quantile(self.values, level, axis=0))

    def crps(self, y: Values) -> Values:
        return _crps_of_pairs(self.values, self.variance, y)


def _without_noise() -> InputError:
    return InputError(
        "a density needs observation noise; got a prediction without it (forces, say). "
        "Use mean, std, interval or samples."
    )


def _crps_of_pairs(center: Values, std: Values, y: Values) -> Values:
    """The closed form: means of |Y - y| and of |Y - Y'| over all pairs of Gaussians."""
    first = _mean_absolute(center - y, std).mean(0)
    count = len(center)
    every = np.broadcast_to(std, (count, *std.shape[1:]))
    second = np.zeros_like(first)
    step = max(1, _CHUNK // max(1, center.size))
    for start in range(0, count, step):
        pairs = center[start : start + step, None] - center[None]
        spread = np.sqrt(every[start : start + step, None] ** 2 + every[None] ** 2)
        second += _mean_absolute(pairs, spread).sum((0, 1))
    return np.asarray(first - second / (2 * count**2))


def _mean_absolute(center: Values, std: Values) -> Values:
    """E|X| of X ~ N(center, std²)."""
    from scipy.special import ndtr

    safe = np.where(std > 0, std, 1.0)
    ratio = center / safe
    density = np.exp(-(ratio**2) / 2) / np.sqrt(2 * np.pi)
    smooth = 2 * safe * density + center * (2 * ndtr(ratio) - 1)
    return np.where(std > 0, smooth, np.abs(center))
