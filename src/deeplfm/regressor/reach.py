"""How far from the data a model may be asked: far away is told, too far is refused.

    check_reach(x, low, high, names)      ranges beyond: max(low - x, x - high) / (high - low)

A mistake of units, seconds for days or a date for a time of the record, is mostly seen here.
"""

import warnings
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from deeplfm.errors import DataWarning, InputError

Values = NDArray[np.float64]

_FAR = 10.0  # ranges beyond the data from which a prediction is hardly more than the prior
_FARTHEST = 1e4  # ranges up to which every recipe computes with the precision that it has


def check_reach(x: Values, low: Values, high: Values, unit: Values, names: Sequence[str]) -> None:
    """`x` [n, P] is near inputs that range from `low` to `high` [P]; `unit` [P] where they do not.

    It is an error too far away, and a warning where it is far.
    """
    spans = np.where(high > low, high - low, unit)
    with np.errstate(over="ignore"):
        beyond = np.maximum(np.maximum(low - x, x - high), 0.0) / spans
    if not (beyond > _FAR).any():
        return
    row, column = divmod(int(beyond.argmax()), beyond.shape[1])
    name, value = names[column], x[row, column]
    data = f"the data, which range from {low[column]:g} to {high[column]:g}"
    if beyond[row, column] > _FARTHEST:
        raise InputError(
            f"{name!r} must be within {_FARTHEST:g} ranges of {data}; got {value:g}, "
            f"{beyond[row, column]:.2g} ranges away. Check its unit."
        )
    warnings.warn(
        f"{name!r} goes to {value:g}, {beyond[row, column]:.2g} ranges beyond {data}: predictions "
        "there say little more than that they do not know.",
        DataWarning,
        stacklevel=2,
    )
