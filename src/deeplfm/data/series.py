"""Observations with their tests: a series at its times, or a table of rows with several inputs."""

from abc import ABC
from dataclasses import dataclass, field
from typing import final

import numpy as np
from numpy.typing import NDArray

from deeplfm.errors import InputError

Values = NDArray[np.float64]
Rows = NDArray[np.bool_]


class Observations(ABC):
    """Observed values [N, D] (NaN = not observed) at inputs [N] or [N, P], and test masks [N, D].

    `truth` is the signal without noise, where there is one. What no test covers is for training.
    """

    inputs: Values
    values: Values
    names: tuple[str, ...]
    tests: dict[str, Rows]
    truth: Values | None

    def training(self, *names: str) -> Values:
        """The values to train on: NaN where the named tests look, by default all of them."""
        hidden = np.zeros(self.values.shape, dtype=bool)
        for name in names or self.tests:
            hidden |= self._test(name)
        return np.where(hidden, np.nan, self.values)

    def test(self, name: str) -> Values:
        """The values that the test `name` scores, NaN elsewhere."""
        return np.where(self._test(name), self.values, np.nan)

    def _test(self, name: str) -> Rows:
        if name not in self.tests:
            raise InputError(
                f"name must be one of {sorted(self.tests)}; got {name!r}. Choose one of them."
            )
        return self.tests[name]


@final
@dataclass(frozen=True, eq=False)
class Series(Observations):
    """Times [N], values [N, D] (NaN = not observed), and named test masks [N, D].

    `truth` is the signal without noise, where there is one; `inputs` are the times.
    """

    times: Values
    values: Values
    names: tuple[str, ...]
    tests: dict[str, Rows] = field(default_factory=dict)
    truth: Values | None = None
    inputs: Values = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "inputs", self.times)  # the way to set a field of a frozen class


@final
@dataclass(frozen=True, eq=False)
class Table(Observations):
    """Rows of several inputs [N, P] with values [N, D], both in their own units."""

    inputs: Values
    values: Values
    names: tuple[str, ...]
    input_names: tuple[str, ...]
    tests: dict[str, Rows] = field(default_factory=dict)
    truth: Values | None = None
