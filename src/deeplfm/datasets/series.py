"""A time series with what is known of it: observations, truth, and which rows test what."""

from dataclasses import dataclass, field
from typing import final

import numpy as np
from numpy.typing import NDArray

from deeplfm.errors import InputError

Values = NDArray[np.float64]
Rows = NDArray[np.bool_]


@final
@dataclass(frozen=True, eq=False)
class Series:
    """Times [N], observed values [N, D] (NaN = not observed), and named test masks [N, D].

    `truth` is the signal without noise, where there is one. What no test covers is for training.
    """

    times: Values
    values: Values
    names: tuple[str, ...]
    tests: dict[str, Rows] = field(default_factory=dict)
    truth: Values | None = None

    def training(self) -> Values:
        """The values to train on: NaN wherever a test looks."""
        hidden = np.zeros(self.values.shape, dtype=bool)
        for rows in self.tests.values():
            hidden |= rows
        return np.where(hidden, np.nan, self.values)

    def test(self, name: str) -> Values:
        """The values that the test `name` scores, NaN elsewhere."""
        if name not in self.tests:
            raise InputError(
                f"name must be one of {sorted(self.tests)}; got {name!r}. Choose one of them."
            )
        return np.where(self.tests[name], self.values, np.nan)
