"""How much wider than a model says its predictions are, by what held-out blocks said.

    std' = factor · std,   f' = mean + factor · (f - mean);   one factor inside the data, one beyond

Beyond the last row the factor goes over from one to the other along `reach`, so that functions stay
functions without a jump.
"""

from dataclasses import dataclass, replace
from typing import final

import numpy as np
from numpy.typing import NDArray

from deeplfm.evaluation.components import Components
from deeplfm.evaluation.families import LocationScale, PointComponents

Values = NDArray[np.float64]


@final
@dataclass(frozen=True)
class Spread:
    """Factors of the standard deviation of predictions.

    Args:
        inside: the factor between the first row and the last, or of a table.
        beyond: the factor before the first row and after the last.
        reach: the distance from there along which one goes over into the other.

    Example:
        >>> Spread(inside=1.0, beyond=4.0, reach=2.0).at(np.array([5.0, 11.0, 20.0]), 0.0, 10.0)
        array([1., 2., 4.])
    """

    inside: float = 1.0
    beyond: float = 1.0
    reach: float = 0.0

    @property
    def is_plain(self) -> bool:
        """Whether it changes nothing."""
        return self.inside == 1.0 and self.beyond == 1.0

    def at(self, times: Values, first: float, last: float) -> Values:
        """Give the factor at `times` [N] of a record from `first` to `last`."""
        away = np.maximum(np.maximum(first - times, times - last), 0.0)
        share = np.minimum(away / self.reach, 1.0) if self.reach > 0 else np.sign(away)
        logs = (1 - share) * np.log(self.inside) + share * np.log(self.beyond)
        return np.asarray(np.exp(logs))


def can_widen(components: Components) -> bool:
    """Whether the spread of such components can be changed by a factor."""
    return isinstance(components, (LocationScale, PointComponents))


def widened(components: Components, factor: Values) -> Components:
    """The mixture with its standard deviation times `factor` [N], and the mean that it has."""
    times = factor[:, None]
    if isinstance(components, LocationScale):
        centre = about_mean(components.center, components.center.mean(0), factor)
        return replace(components, center=centre, scale=components.scale * times)
    if isinstance(components, PointComponents):
        values = components.values
        return PointComponents(about_mean(values, values.mean(0), factor))
    return components


def with_noise(components: Components, factor: Values) -> Components:
    """The same centres with noise that is `factor` [N] times as large."""
    if isinstance(components, LocationScale):
        return replace(components, scale=components.scale * factor[:, None])
    return components


def about_mean(values: Values, mean: Values, factor: Values) -> Values:
    """Values [S, N, D] that are `factor` [N] times as far from their `mean` [N, D]."""
    return np.asarray(mean + factor[:, None] * (values - mean))
