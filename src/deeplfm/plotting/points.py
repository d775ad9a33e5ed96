"""What users hand over to be drawn: inputs, numbers or dates, and targets [N, D] with gaps."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deeplfm.errors import InputError, InputTypeError
from deeplfm.evaluation.predictive import Predictive

Values = NDArray[np.float64]


@dataclass(frozen=True)
class Points:
    """Targets `y` [n, D], NaN where there are none, at `x` [n], numbers or dates in order."""

    x: NDArray[Any]
    y: Values


def check_predictive(predictive: Any) -> tuple[int, int]:
    """The points and outputs of a prediction, and of nothing else."""
    if not isinstance(predictive, Predictive):
        raise InputTypeError(
            f"predictive must be a Predictive; got {type(predictive).__name__}. Pass "
            "model.predictive(x)."
        )
    _, points, outputs = predictive.components.mean.shape
    return int(points), int(outputs)


def inputs(name: str, x: Any) -> NDArray[Any]:
    """Inputs [N], finite numbers or datetime64."""
    values = _array(x)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1 or len(values) == 0:
        raise InputError(
            f"{name} must be [N] or [N, 1], one input to draw along; got {values.shape}. "
            "Choose a column, for example X[:, 0]."
        )
    if values.dtype.kind == "O":
        values = _dates(name, values)
    if values.dtype.kind == "m":
        raise InputError(
            f"{name} must hold numbers or dates; got durations. Convert them, for example with "
            f"{name} / np.timedelta64(1, 's')."
        )
    if values.dtype.kind not in "iufM":
        raise InputError(
            f"{name} must hold numbers or dates; got {values.dtype}. Convert them first."
        )
    missing = np.isnat(values) if values.dtype.kind == "M" else ~np.isfinite(values)
    if missing.any():
        raise InputError(
            f"{name} must be finite; got {int(missing.sum())} NaN, NaT or infinite entries. "
            "Remove those rows."
        )
    return values


def points(name: str, given: Any, x: NDArray[Any], outputs: int) -> Points:
    """`given` is y [N, D] at `x`, or a pair (x, y) of its own; sorted by x."""
    if isinstance(given, tuple):
        if len(given) != 2:
            raise InputError(
                f"{name} must be an array [N, {outputs}] or a pair (x, y); got {len(given)} items. "
                f"Pass {name}=(x, y)."
            )
        own = inputs(f"x of {name}", given[0])
        if (own.dtype.kind == "M") != (x.dtype.kind == "M"):
            raise InputError(
                f"x of {name} must be of the kind of x; got {own.dtype} and {x.dtype}. "
                "Use dates for both or numbers for both."
            )
        x, given = own, given[1]
    y = targets(name, given, (len(x), outputs))
    order = np.argsort(x, kind="stable")
    return Points(x[order], y[order])


def targets(name: str, given: Any, expected: tuple[int, int]) -> Values:
    """[N, D] floats; [N] will do for one output."""
    values = _array(given)
    try:
        values = values.astype(float)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"{name} must hold numbers, NaN for gaps; got {values.dtype} ({error}). Convert it."
        ) from None
    if values.ndim == 1 and expected[1] == 1:
        values = values[:, None]
    if values.shape != expected:
        raise InputError(
            f"{name} must be {list(expected)}, a row for each x and a column for each output; got "
            f"{values.shape}. Reshape it, or pass a pair (x, y) where it has an x of its own."
        )
    return values


def _array(values: Any) -> NDArray[Any]:
    if hasattr(values, "detach"):
        values = values.detach().cpu()
    return np.asarray(values)


def _dates(name: str, values: NDArray[Any]) -> NDArray[Any]:
    """Dates as Python and pandas write them; those with a time zone in UTC, as matplotlib does."""
    import pandas as pd

    if not all(hasattr(value, "year") or value is pd.NaT for value in values):
        raise InputError(
            f"{name} must hold numbers or dates; got {type(values[0]).__name__} objects. "
            "Convert them first."
        )
    return np.asarray(pd.to_datetime(list(values), utc=True).tz_localize(None))
