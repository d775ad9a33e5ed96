"""The predictive distribution: the S-sample mixture, with the observation noise.

    p(y) = 1/S Σ_s p(y | f_s);   mean, std, quantiles, log density and CRPS are those of the mixture

Numpy arrays [N, D] in the units they were given in. Knows no model: function values, and the
components (`components`) that say how targets lie about each of them.
"""

from collections.abc import Callable
from typing import final

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike, NDArray

from deeplfm.errors import InputError
from deeplfm.evaluation.components import ALL, Chosen, Components, moments
from deeplfm.evaluation.families import PointComponents
from deeplfm.evaluation.spread import about_mean, can_widen, widened, with_noise
from deeplfm.shapes import observed_values

Values = NDArray[np.float64]


@final
class Predictive:
    """The predictive distribution, a mixture over S functions: p(y) = 1/S Σ_s p(y | f_s).

    It holds S function values per point, and how observations are distributed about them. Where a
    mixture is known in closed form it may have fewer components than there are functions: those of
    a state-space model are drawn when somebody asks for them, and an exact Gaussian process has
    one component, whose centre stands for its functions.

    Args:
        samples: values of the functions f, [S, N, D], without noise, or what gives them when it is
            called. Where noise is added to f
            they are in the units of y; where f goes through a link they are what goes in: for a
            Poisson likelihood with a log link, log rates. `expected_y` is what comes out.
        components: p(y | f_s) at every point, as `NormalComponents(samples, noise_std)`.
        names: one per output, or none.
        seed: the seed of `sample_y`, unless it is given one.
        observed: what makes components of functions, where `components` are not about `samples`.

    Shapes:
        samples: [S, N, D], numpy, for S functions, N points and D outputs.
        mean, std, quantile(level): [N, D], in the units of y.
        y: observations [N, D], or [N] for one output; scores come back as [N, D].

    Example:
        >>> import numpy as np
        >>> from deeplfm.evaluation import NormalComponents, Predictive
        >>> f = np.zeros((4, 3, 1))
        >>> p = Predictive(f, NormalComponents(f, np.array([2.0])), names=("y",))
        >>> p["y"][:2].std.ravel().tolist()
        [2.0, 2.0]
    """

    def __init__(
        self,
        samples: Values | Callable[[], Values],
        components: Components,
        names: tuple[str, ...] = (),
        seed: int = 0,
        *,
        observed: Callable[[Values], Components] | None = None,
    ) -> None:
        self._samples, self._observed = samples, observed
        self.components, self.names, self.seed = components, names, seed

    @property
    def samples(self) -> Values:
        """Values of the functions, [S, N, D], without noise."""
        if callable(self._samples):
            self._samples = self._samples()
        return self._samples

    @classmethod
    def without_noise(
        cls, samples: Values, names: tuple[str, ...] = (), seed: int = 0
    ) -> "Predictive":
        """Hold functions alone, as latent forces are: no density, and the spread is theirs.

        `samples` are [S, N, D]; `names` one per function, [D]; `seed` as in the constructor.
        """
        return cls(samples, PointComponents(samples), names, seed)

    @property
    def mean(self) -> Values:
        """The expected observation, [N, D]."""
        return np.asarray(self.components.mean.mean(0))

    @property
    def std(self) -> Values:
        """The standard deviation of a new observation, [N, D]: functions and noise together."""
        return moments(self.components)[1]

    @property
    def expected_y(self) -> Float[np.ndarray, "S N D"]:
        """The expected observation given each function, E[y | f_s], [S, N, D].

        It is `samples` themselves where noise is added to f; rates, not log rates, for counts.
        """
        return self.components.mean if self._observed is None else self._observed(self.samples).mean

    def interval(self, probability: float = 0.9) -> tuple[Values, Values]:
        """Give the central interval, low and high [N, D], that holds `probability` of the mixture.

        It holds more for counts.
        """
        if not 0 < probability < 1:
            raise InputError(
                f"probability must be between 0 and 1; got {probability:g}. Pass 0.9 for 90 %."
            )
        return self.quantile((1 - probability) / 2), self.quantile((1 + probability) / 2)

    def quantile(self, level: float) -> Values:
        """Give the least y [N, D] where the mixture's distribution function reaches `level`."""
        if not 0 < level < 1:
            raise InputError(
                f"level must be between 0 and 1; got {level:g}. Pass 0.5 for the median."
            )
        return self.components.quantile(level)

    def cdf(self, y: ArrayLike) -> Values:
        """Give the distribution function P(Y ≤ y) [N, D] at observations `y` [N, D]."""
        return np.asarray(self.components.cdf(self._observations(y)).mean(0))

    def pit(self, y: ArrayLike, seed: int = 0) -> Values:
        """Give values [N, D], uniform in [0, 1] where the prediction is calibrated.

        They are P(Y ≤ y) at `y` [N, D], and NaN where `y` is. For whole numbers they are a random
        point, drawn by `seed`, of the step that the distribution function makes at y, without
        which steps would look like errors of calibration.
        """
        values = self._observations(y)
        if not self.components.support.whole:
            return self.cdf(values)
        below, above = self.cdf(values - 1), self.cdf(values)
        share = np.random.default_rng(seed).uniform(size=values.shape)
        return np.asarray(below + share * (above - below))

    def log_density(self, y: ArrayLike) -> Values:
        """Give log p(y) [N, D] at `y` [N, D], NaN where it is NaN, -inf where no target can be."""
        from scipy.special import logsumexp

        logs = self.components.log_density(self._observations(y))
        return np.asarray(logsumexp(logs, axis=0) - np.log(len(logs)))

    def crps(self, y: ArrayLike) -> Values:
        """Give the continuous ranked probability score E|Y - y| - ½ E|Y - Y'| [N, D].

        `y` is [N, D], and the score is NaN where `y` is. It is in closed form for Gaussian noise
        and a sum for counts; otherwise it comes from the quantiles at 199 levels.
        """
        return self.components.crps(self._observations(y))

    def sample_y(self, seed: int | None = None) -> Values:
        """Draw observations [S, N, D], the samples with noise, by `seed` or that of the mixture.

        A closed form gives one draw per component and point.
        """
        about = self.components if self._observed is None else self._observed(self.samples)
        return about.sample(self.seed if seed is None else seed)

    def select(self, rows: Chosen = ALL, outputs: Chosen = ALL) -> "Predictive":
        """Give the prediction at some `rows` and for some `outputs`, by their numbers or masks."""
        names = self.names and tuple(np.array(self.names, dtype=object)[outputs])
        components = self.components.select(rows, outputs)
        if self._observed is None:
            samples = self.samples[:, rows][:, :, outputs]
            return Predictive(samples, components, names, self.seed)
        observed = self._observed
        return Predictive(
            lambda: self.samples[:, rows][:, :, outputs],
            components,
            names,
            self.seed,
            observed=lambda _: observed(self.samples).select(rows, outputs),
        )

    def widened(self, factor: Values) -> "Predictive":
        """Give the prediction with `factor` [N] times its standard deviation, about its mean.

        Functions and noise take part alike. Families whose spread is no number of its own, counts
        say, stay as they are.
        """
        if not can_widen(self.components):
            return self
        own, mean = self._observed, self.mean
        components = widened(self.components, factor)
        if own is None:
            return Predictive(
                about_mean(self.samples, mean, factor), components, self.names, self.seed
            )
        return Predictive(
            lambda: about_mean(self.samples, mean, factor),
            components,
            self.names,
            self.seed,
            observed=lambda functions: with_noise(own(functions), factor),
        )

    def __getitem__(self, chosen: str | int | Chosen) -> "Predictive":
        """`p["abp"]` is the prediction of one output, `p[10:20]` that of some rows."""
        if isinstance(chosen, slice):
            return self.select(rows=chosen)
        if not isinstance(chosen, str):
            return self.select(rows=np.atleast_1d(np.asarray(chosen)))
        if chosen not in self.names:
            raise InputError(
                f"the name of an output must be among {list(self.names)}; got {chosen!r}. "
                "Choose one of them."
            )
        return self.select(outputs=np.array([self.names.index(chosen)]))

    def _observations(self, y: ArrayLike) -> Values:
        values = observed_values(y)
        expected = self.components.mean.shape[1:]
        if values.ndim == 1 and expected[1] == 1:
            values = values[:, None]
        if values.shape != expected:
            raise InputError(
                f"y must be {list(expected)} as the prediction is; got {values.shape}. Reshape it."
            )
        return values
