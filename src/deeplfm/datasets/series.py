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
