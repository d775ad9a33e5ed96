"""The components of a predictive mixture: S distributions of a target at every point and output.

    p(y) = 1/S Σ_s p_s(y)

A family says what one component is; the quantiles and the CRPS of the mixture follow from its
distribution function, unless a family knows better (`families`). Numpy, in the user's units.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias, final

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray

from deeplfm.evaluation import generic
from deeplfm.evaluation.support import REAL_LINE, Support
from deeplfm.randomness import derived_seed

Values: TypeAlias = NDArray[np.float64]
Chosen: TypeAlias = slice | NDArray[np.integer] | NDArray[np.bool_]
Places: TypeAlias = NDArray[np.integer]
Range: TypeAlias = tuple[Values, Values, Values]

ALL = slice(None)


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
        return generic.search_range(self, level)

    def quantile(self, level: float) -> Float[np.ndarray, "N D"]:
        """The least y with P(Y ≤ y) ≥ level, of the mixture."""
        search = generic.least_whole if self.support.whole else generic.crossing
        return search(self, level)

    def crps(self, y: Values) -> Float[np.ndarray, "N D"]:
        """E|Y - y| - ½ E|Y - Y'| of the mixture."""
        score = generic.crps_of_whole if self.support.whole else generic.crps_by_quantiles
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
