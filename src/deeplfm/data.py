"""Data as the model sees it: arrays, NaN as a mask, units scaled in and out, splits.

    one input: x' = (x - first) / (last - first), in [0, 1];   several: x' = (x - origin) / std
    targets:   y' = (y - mean) / std per output, over what was observed

The origin of zero memory is x' = 0: the first observation, or a tenth of a standard deviation below
the least of several inputs. Users speak in their own units; only this room converts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from deeplfm.errors import InputError, InputTypeError

Values = NDArray[np.float64]


@final
@dataclass(frozen=True, eq=False)
class Dataset:
    """Inputs [N, P] and targets [N, D] in the user's units; NaN targets were not observed.

    Rows without any target are dropped when it is made.
    """

    x: Values
    y: Values
    input_names: tuple[str, ...]
    output_names: tuple[str, ...]

    @property
    def observed(self) -> NDArray[np.bool_]:
        """The mask [N, D]."""
        return ~np.isnan(self.y)

    def __len__(self) -> int:
        return len(self.x)


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


def dataset(X: Any, y: Any) -> Dataset:
    """From arrays, lists, tensors or pandas: X [N] or [N, P], y [N] or [N, D] with NaN for gaps."""
    x, input_names = _as_table("X", X, "x")
    targets, output_names = _as_table("y", y, "y")
    if len(x) != len(targets):
        raise InputError(
            f"X and y must have the same number of rows; got {len(x)} and {len(targets)}. "
            "Give every output a row, with NaN where it was not observed."
        )
    _check_finite_inputs(x)
    if len(x) == 1:
        raise InputError(
            "X and y must have 2 or more rows; got 1 sample. One observation says nothing of a "
            "function: add more."
        )
    if np.isinf(targets).any():
        raise InputError(
            f"y must be finite or NaN; got {int(np.isinf(targets).sum())} infinite entries. "
            "Replace them by NaN if they were not observed."
        )
    observed = ~np.isnan(targets)
    for name, column in zip(output_names, observed.T, strict=True):
        if not column.any():
            raise InputError(
                f"every output must be observed somewhere; got only NaN in {name!r}. Drop it."
            )
    keep = observed.any(axis=1)
    return Dataset(x[keep], targets[keep], input_names, output_names)


def from_long(
    frame: Any,
    *,
    input: str | Sequence[str],  # noqa: A002 - the promised name
    output: str,
    value: str,
) -> dict[str, Any]:
    """`fit(**from_long(...))`: one row per observation, every output at its own times.

    `frame` is a pandas DataFrame with columns for the inputs, the output's name and the value.
    Several values of one output at one time are replicates: each gets a row of its own.
    """
    inputs = [input] if isinstance(input, str) else list(input)
    missing = [name for name in (*inputs, output, value) if name not in frame.columns]
    if missing:
        raise InputError(
            f"frame must have the columns {[*inputs, output, value]}; got {list(frame.columns)}. "
            f"Rename or add {missing}."
        )
    rows = frame[[*inputs, output, value]].dropna(subset=[output])
    # The number of the replicate, under a name that no column has.
    count = "replicate" + "_" * max(len(str(name)) for name in rows.columns)
    rows = rows.assign(**{count: rows.groupby([*inputs, output], dropna=False).cumcount()})
    wide = rows.pivot(index=[*inputs, count], columns=output, values=value).sort_index()
    index = wide.index.to_frame(index=False)[inputs]
    wide = wide.reset_index(drop=True)
    wide.columns.name = None
    return {"X": index, "y": wide}


def inputs_table(X: Any, num_inputs: int) -> Values:
    """New inputs as [N, P], checked against the number of inputs the model was fitted with."""
    x, _ = _as_table("X", X, "x")
    if num_inputs > 1 and dimensions(X) == 1:
        raise InputError(
            f"X must be [N, {num_inputs}], as in the fit; got shape ({len(x)},). "
            "Reshape your data, with [None] for one point."
        )
    if x.shape[1] != num_inputs:
        raise InputError(
            f"X must have {num_inputs} input columns, as in the fit; got {x.shape[1]}. "
            "Select the same columns."
        )
    _check_finite_inputs(x)
    return x


def dimensions(values: Any) -> int:
    """How many dimensions any array-like has."""
    return int(values.ndim) if hasattr(values, "ndim") else np.asarray(values).ndim


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


def _check_finite_inputs(x: Values) -> None:
    if not np.isfinite(x).all():
        raise InputError(
            f"X must be finite; got {int((~np.isfinite(x)).sum())} NaN or infinite entries. "
            "Remove those rows; gaps belong in y."
        )


def _or_one(scale: Values) -> Values:
    return np.where(scale > 0, scale, 1.0)


def _as_table(name: str, values: Any, prefix: str) -> tuple[Values, tuple[str, ...]]:
    """A float64 [N, K] table and the names of its columns."""
    columns = getattr(values, "columns", None)
    series_name = getattr(values, "name", None)
    table = _numbers(name, values)
    if table.ndim == 1:
        table = table[:, None]
    if table.ndim != 2 or 0 in table.shape:
        columns_missing = table.ndim == 2 and table.shape[1] == 0 and len(table) > 0
        got = f"0 feature(s) (shape={table.shape}) while a minimum of 1 is required"
        raise InputError(
            f"{name} must be [N] or [N, K] with at least one row and column; got "
            f"{got if columns_missing else f'shape {table.shape}'}. Reshape it."
        )
    if columns is not None:
        names = tuple(str(column) for column in columns)
        twice = sorted({column for column in names if names.count(column) > 1})
        if twice:
            raise InputError(f"columns of {name} must differ; got {twice} twice. Rename one.")
    elif series_name is not None and table.shape[1] == 1:
        names = (str(series_name),)
    else:
        names = tuple(f"{prefix}{k}" for k in range(table.shape[1]))
    return table, names


def _numbers(name: str, values: Any) -> Values:
    """Any array-like as float64, or the reason why not."""
    if hasattr(values, "detach"):
        values = values.detach().cpu().numpy()
    kind = type(values).__name__
    if hasattr(values, "toarray"):
        raise InputTypeError(f"{name} must be dense; got a sparse {kind}. Call .toarray() on it.")
    kinds: Any = getattr(values, "dtypes", getattr(values, "dtype", None))
    types = list(kinds) if hasattr(kinds, "items") else [kinds]
    if any(getattr(one, "kind", None) in ("m", "M") for one in types):
        raise InputError(
            f"{name} must hold numbers; got dates. Convert them with one origin for all tables, "
            "for example (t - pd.Timestamp('2026-01-01')) / pd.Timedelta('1s')."
        )
    if hasattr(values, "to_numpy") and any(hasattr(one, "na_value") for one in types):
        values = values.to_numpy(dtype=object, na_value=np.nan)  # pandas' own missing values
    array = np.asarray(values)
    if np.iscomplexobj(array):
        raise InputError(
            f"{name} must be real; got complex numbers. Complex data not supported: split it into "
            "real and imaginary parts."
        )
    try:
        return np.asarray(array, dtype=np.float64)
    except (TypeError, ValueError) as error:
        wrong = InputTypeError if isinstance(error, TypeError) else InputError
        raise wrong(
            f"{name} must hold numbers; got a {kind} that cannot be converted ({error}). "
            "Encode text as numbers."
        ) from None
