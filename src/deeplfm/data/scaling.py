"""The affine maps between the user's units and the model's, fixed on training data.

    one input: x' = (x - first) / (last - first), in [0, 1];   several: x' = (x - origin) / std
    targets:   y' = (y - mean) / std per output, over what was observed

The origin of zero memory is x' = 0: the first observation, or a tenth of a standard deviation below
the least of several inputs. Users speak in their own units; only this room converts.
"""

from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from deeplfm.data.dataset import Dataset

Values = NDArray[np.float64]


@final
@dataclass(frozen=True, eq=False)
class Scaling:
    """The affine maps between the user's units and the model's, fixed on training data."""

    input_origin: Values
    input_scale: Values
    target_mean: Values
    target_std: Values

    def inputs(self, x: Values) -> Values:
        """To the model's units, [N, P]."""
        return (x - self.input_origin) / self.input_scale

    def targets(self, y: Values) -> Values:
        """To the model's units, [N, D]."""
        return (y - self.target_mean) / self.target_std

    def functions(self, f: Values) -> Values:
        """Function values [..., D] back to the user's units."""
        return f * self.target_std + self.target_mean

    def spread(self, std: Values) -> Values:
        """A standard deviation [..., D] back to the user's units."""
        return std * self.target_std


class Statistics(NamedTuple):
    """What a scaling is made of: of inputs [P], of what was observed of targets [D]."""

    low: Values
    high: Values
    input_std: Values
    target_mean: Values
    target_std: Values
    target_size: Values  # the largest absolute value


def fit_scaling(data: Dataset) -> Scaling:
    """The scaling of a training set."""
    x, y = data.x, data.y
    mean, std, size = np.nanmean(y, axis=0), np.nanstd(y, axis=0), np.nanmax(np.abs(y), axis=0)
    return scaling_from(Statistics(x.min(0), x.max(0), x.std(0), mean, std, size))


def scaling_from(found: Statistics) -> Scaling:
    """The scaling of data with these statistics."""
    if len(found.low) == 1:
        origin, scale = found.low, found.high - found.low
    else:
        scale = found.input_std
        origin = found.low - 0.1 * scale
    # What is left of a constant after its mean is taken off is rounding, not a spread. It is known
    # to about a hundredth of what it is scaled by.
    constant = found.target_std <= 8 * np.finfo(np.float64).eps * found.target_size
    std = np.where(constant, 0.01 * found.target_size, found.target_std)
    return Scaling(origin, _or_one(scale), found.target_mean, _or_one(std))


def _or_one(scale: Values) -> Values:
    return np.where(scale > 0, scale, 1.0)
