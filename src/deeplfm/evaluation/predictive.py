"""The predictive distribution: the S-sample mixture, with the observation noise.

    p(y) = 1/S Σ_s p(y | f_s);   mean, std, quantiles, log density and CRPS are those of the mixture

Numpy arrays [N, D] in the units they were given in. Knows no model: function values and noise only.
Or a mixture of S Gaussians known in closed form at every point: their centres and deviations.
"""

import math
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deeplfm.errors import InputError

Values = NDArray[np.float64]

_CHUNK = 2**22  # entries of [S, S, N, D] held at once in the CRPS
_STEPS = 100  # bisections alone would need 60
_ROUNDING = 1e-10  # of the standard deviation, where a quantile stops


@final
@dataclass(frozen=True, eq=False)
class Predictive:
    """S function values per point, and the noise around them.

    samples: [S, N, D]; noise_std: [D], or [S, D] where samples have their own, 0 for none;
    degrees: of a Student-t noise, or None for Gaussian noise; names: one per column.

    With noise_std [S, N, D] it is a mixture of Gaussians in closed form: `samples` are then the
    centres of its S components (not draws of functions), `noise_std` their standard deviations,
    uncertainty of the function and noise together. An exact Gaussian process has S = 1.
    """

    samples: Values
    noise_std: Values
    degrees: float | None = None
    names: tuple[str, ...] = ()
    seed: int = 0

    @property
    def mean(self) -> Values:
        """[N, D]."""
        return np.asarray(self.samples.mean(0))

    @property
    def std(self) -> Values:
        """[N, D], of a new observation: the spread of the functions and the noise."""
        return np.asarray(np.sqrt(self.samples.var(0) + self._noise_variance().mean(0)))

    def interval(self, probability: float = 0.9) -> tuple[Values, Values]:
        """The central interval that holds `probability` of the mixture."""
        if not 0 < probability < 1:
            raise InputError(
                f"probability must be between 0 and 1; got {probability:g}. Pass 0.9 for 90 %."
            )
        return self.quantile((1 - probability) / 2), self.quantile((1 + probability) / 2)

    def quantile(self, level: float) -> Values:
        """[N, D], where the mixture's distribution function is `level`."""
        if not 0 < level < 1:
            raise InputError(
                f"level must be between 0 and 1; got {level:g}. Pass 0.5 for the median."
            )
        if not self.noise_std.any():
            return np.asarray(np.quantile(self.samples, level, axis=0))
        return self._crossing(level)

    def cdf(self, y: ArrayLike) -> Values:
        """P(Y ≤ y) [N, D]."""
        return np.asarray(self._below(self._scaled(y)).mean(0))

    def log_density(self, y: ArrayLike) -> Values:
        """log p(y) [N, D]; NaN where y is NaN."""
        from scipy.special import logsumexp

        scaled = self._scaled(y)
        logs = self._noise().logpdf(scaled) - np.log(self._noise_std())
        return np.asarray(logsumexp(logs, axis=0) - np.log(len(self.samples)))

    def crps(self, y: ArrayLike) -> Values:
        """Continuous ranked probability score E|Y - y| - ½ E|Y - Y'| [N, D]; NaN where y is NaN.

        In closed form for Gaussian noise; from the quantiles at 199 levels for a Student-t.
        """
        y = self._observations(y)
        if self.degrees is not None:
            levels = (np.arange(199) + 0.5) / 199
            quantiles = np.stack([self.quantile(float(level)) for level in levels])
            level = levels[:, None, None]
            loss = (np.where(y < quantiles, 1.0, 0.0) - level) * (quantiles - y)
            return np.where(np.isnan(y), np.nan, 2 * loss.mean(0))
        first = _mean_absolute(self.samples - y, self._noise_std()).mean(0)
        count, noise = len(self.samples), self._noise_std()
        std = np.broadcast_to(noise, (count, *noise.shape[1:]))
        second = np.zeros_like(first)
        step = max(1, _CHUNK // max(1, self.samples.size))
        for start in range(0, count, step):
            pairs = self.samples[start : start + step, None] - self.samples[None]
            spread = np.sqrt(std[start : start + step, None] ** 2 + std[None] ** 2)
            second += _mean_absolute(pairs, spread).sum((0, 1))
        return np.asarray(first - second / (2 * count**2))

    def sample_y(self, seed: int | None = None) -> Values:
        """[S, N, D]: the samples with noise; one draw per component and point of a closed form."""
        generator = np.random.default_rng(self.seed if seed is None else seed)
        shape = self.samples.shape
        if self.degrees is None:
            noise = generator.standard_normal(shape)
        else:
            noise = generator.standard_t(self.degrees, shape)
        return np.asarray(self.samples + self._noise_std() * noise)

    def _crossing(self, level: float) -> Values:
        """Newton's method, and a bisection wherever it would leave what must hold the answer.

        Only points that still move are evaluated: mixtures with little noise are staircases, on
        which a few points need many steps.
        """
        count, (points, outputs) = len(self.samples), self.samples.shape[1:]
        centers = self.samples.reshape(count, -1)
        noise = np.broadcast_to(self._noise_std(), (count, points, outputs)).reshape(count, -1)
        reach = np.abs(self._noise().ppf(min(level, 1 - level))) * noise.max(0)
        low, high = centers.min(0) - reach, centers.max(0) + reach
        spread = self.std.reshape(-1)
        value = np.clip(self.mean.reshape(-1) + spread * self._noise().ppf(level), low, high)
        moving = np.arange(len(value))
        for _ in range(_STEPS):
            at, std = value[moving], noise[:, moving]
            scaled = (at - centers[:, moving]) / std
            error = self._below(scaled).mean(0) - level
            low[moving] = np.where(error < 0, at, low[moving])
            high[moving] = np.where(error < 0, high[moving], at)
            with np.errstate(divide="ignore", invalid="ignore"):
                proposed = at - error / (self._density(scaled) / std).mean(0)
            inside = (proposed > low[moving]) & (proposed < high[moving])
            value[moving] = np.where(inside, proposed, (low[moving] + high[moving]) / 2)
            moving = moving[np.abs(value[moving] - at) > _ROUNDING * spread[moving]]
            if not len(moving):
                break
        return np.asarray(value.reshape(points, outputs))

    def _noise(self) -> Any:
        """The distribution of the noise over its standard deviation."""
        from scipy import stats

        return stats.norm() if self.degrees is None else stats.t(self.degrees)

    def _below(self, scaled: Values) -> Values:
        """The distribution function of the noise over its standard deviation."""
        from scipy.special import ndtr, stdtr

        return np.asarray(ndtr(scaled) if self.degrees is None else stdtr(self.degrees, scaled))

    def _density(self, scaled: Values) -> Values:
        if self.degrees is None:
            return np.asarray(np.exp(-(scaled**2) / 2) / math.sqrt(2 * math.pi))
        nu = self.degrees
        constant = math.lgamma((nu + 1) / 2) - math.lgamma(nu / 2) - math.log(nu * math.pi) / 2
        return np.asarray(np.exp(constant - (nu + 1) / 2 * np.log1p(scaled**2 / nu)))

    def _noise_variance(self) -> Values:
        factor = 1.0 if self.degrees is None else self.degrees / (self.degrees - 2)
        return np.asarray(factor * self._noise_std() ** 2)

    def _noise_std(self) -> Values:
        """[1 or S, 1 or N, D]."""
        if self.noise_std.ndim == 3:
            return self.noise_std
        return self.noise_std.reshape(-1, 1, self.noise_std.shape[-1])

    def _observations(self, y: ArrayLike) -> Values:
        values = np.asarray(y, dtype=float)
        if values.ndim == 1 and self.samples.shape[2] == 1:
            values = values[:, None]
        expected = self.samples.shape[1:]
        if values.shape != expected:
            raise InputError(
                f"y must be {list(expected)} as the prediction is; got {values.shape}. Reshape it."
            )
        return values

    def _scaled(self, y: ArrayLike) -> Values:
        if not self.noise_std.all():
            raise InputError(
                "a density needs observation noise; got a prediction without it (forces, say). "
                "Use mean, std, interval or samples."
            )
        return (self._observations(y) - self.samples) / self._noise_std()


def _mean_absolute(center: Values, std: Values) -> Values:
    """E|X| of X ~ N(center, std²)."""
    from scipy.special import ndtr

    safe = np.where(std > 0, std, 1.0)
    ratio = center / safe
    density = np.exp(-(ratio**2) / 2) / np.sqrt(2 * np.pi)
    smooth = 2 * safe * density + center * (2 * ndtr(ratio) - 1)
    return np.where(std > 0, smooth, np.abs(center))
