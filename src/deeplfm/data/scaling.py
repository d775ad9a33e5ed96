"""The affine maps between the user's units and the model's, fixed on training data.

    one input: x' = (x - first) / (last - first), in [0, 1];   several: x' = (x - origin) / std
    functions: f' = (f - mean) / std per output;   targets: the same, or as they are

Which of the two holds for targets is the word of the likelihood. The origin of zero memory is
x' = 0: the first observation, or a tenth of a standard deviation below the least of several inputs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import NamedTuple, Protocol, final, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from deeplfm.data.dataset import Dataset

Values = NDArray[np.float64]


@runtime_checkable
class TargetRule(Protocol):
    """What a scaling asks of a likelihood."""

    @property
    def standardises_targets(self) -> bool:
        """Whether targets are standardised, and functions with them; else functions alone are."""

    def start_targets(self, y: Values) -> Values:
        """What functions should be near for targets `y` [N, D], both in the user's units.

        `y` itself where targets are standardised.
        """

    def check_targets(self, y: Values, names: Sequence[str]) -> None:
        """An error where `y` [N, D] holds what cannot be a target; NaN can."""


@final
@dataclass(frozen=True, eq=False)
class Scaling:
    """The affine maps between the user's units and the model's, fixed on training data.

    Origins, means and scales of inputs [P], of targets [D] and of functions [D]. Where noise is
    added to functions these have the units of the targets. Counts are not scaled, and their
    functions are log rates.
    """

    input_origin: Values
    input_scale: Values
    target_mean: Values
    target_std: Values
    function_mean: Values
    function_std: Values

    def inputs(self, x: Values) -> Values:
        """Inputs [N, P] of the user in the model's units."""
        return (x - self.input_origin) / self.input_scale

    def targets(self, y: Values) -> Values:
        """Targets [..., D] of the user in the units that the likelihood sees."""
        return (y - self.target_mean) / self.target_std

    def functions(self, f: Values) -> Values:
        """Function values [..., D] of the model in the user's units."""
        return f * self.function_std + self.function_mean

    def to_functions(self, values: Values) -> Values:
        """What functions should be, [..., D] in the user's units, in those of the model."""
        return (values - self.function_mean) / self.function_std

    def spread(self, std: Values) -> Values:
        """A standard deviation [..., D] of targets back to the user's units."""
        return std * self.target_std

    def arrays(self) -> dict[str, Values]:
        """Its numbers by name, to be saved."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Values]) -> "Scaling":
        """The scaling that `arrays` was asked of; older ones knew targets only."""
        known = {name.replace("target", "function"): arrays[name] for name in _OF_TARGETS}
        return cls(**(known | dict(arrays)))


_OF_TARGETS = ("target_mean", "target_std")


class Statistics(NamedTuple):
    """What a scaling is made of: statistics of inputs [P], and of targets that were observed [D].

    Of targets that stay as they are, those of what their functions should be near.
    """

    low: Values
    high: Values
    input_std: Values
    target_mean: Values
    target_std: Values
    target_size: Values  # the largest absolute value


def fit_scaling(data: Dataset, rule: TargetRule | None = None) -> Scaling:
    """The scaling of a training set, by the rule of a likelihood; an error where it refuses one.

    Without a rule targets are standardised.
    """
    x, y, standardise = data.x, data.y, True
    if rule is not None:
        rule.check_targets(data.y, data.output_names)
        y, standardise = rule.start_targets(data.y), rule.standardises_targets
    size = np.nanmax(np.abs(y), axis=0)
    unit = np.ldexp(1.0, np.frexp(size)[1])  # a power of two rounds nothing; squares stay numbers
    mean, std = unit * np.nanmean(y / unit, axis=0), unit * np.nanstd(y / unit, axis=0)
    found = Statistics(x.min(0), x.max(0), x.std(0), mean, std, size)
    return scaling_from(found, standardise=standardise)


def scaling_from(found: Statistics, *, standardise: bool = True) -> Scaling:
    """The scaling of data with these statistics."""
    if len(found.low) == 1:
        origin, scale = found.low, found.high - found.low
    else:
        scale = found.input_std
        origin = found.low - 0.1 * scale
    # What is left of a constant after its mean is taken off is rounding, not a spread. It is known
    # to about a hundredth of what it is scaled by.
    constant = found.target_std <= 8 * np.finfo(np.float64).eps * found.target_size
    std = _or_one(np.where(constant, 0.01 * found.target_size, found.target_std))
    mean = found.target_mean
    of_targets = (mean, std) if standardise else (np.zeros_like(mean), np.ones_like(std))
    return Scaling(origin, _or_one(scale), *of_targets, mean, std)


def _or_one(scale: Values) -> Values:
    return np.where(scale > 0, scale, 1.0)
