"""What users pass: arrays, lists, tensors, pandas; as float64 tables with names of their columns.

table, names = as_table("X", X, "x");   fit(**from_long(frame, input="t", output=…, value=…))
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deeplfm.errors import InputError, InputTypeError

Values = NDArray[np.float64]


def from_long(
    frame: Any,
    *,
    input: str | Sequence[str],  # noqa: A002 - the promised name
    output: str,
    value: str,
) -> dict[str, Any]:
    """Turn a long table, one row per observation, into what `fit(**from_long(...))` takes.

    Every output may be observed at its own times. Several values of one output at one time are
    replicates: each gets a row of its own.

    Args:
        frame: a pandas DataFrame with columns for the inputs, the output's name and the value.
        input: the name of the column of the input, or P names.
        output: the name of the column that says which output was observed.
        value: the name of the column that holds the observed numbers.

    Shapes:
        X: a DataFrame [N, P], one row for every time and replicate.
        y: a DataFrame [N, D], one column per output, NaN where it was not observed.

    Example:
        >>> import pandas as pd
        >>> frame = pd.DataFrame({"t": [0, 1, 1], "what": ["a", "a", "b"], "v": [3.0, 4.0, 5.0]})
        >>> wide = dlfm.from_long(frame, input="t", output="what", value="v")
        >>> wide["X"].shape, wide["y"].columns.tolist()
        ((2, 1), ['a', 'b'])
        >>> wide["y"].to_numpy().tolist()
        [[3.0, nan], [4.0, 5.0]]
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


def dimensions(values: Any) -> int:
    """How many dimensions any array-like has."""
    return int(values.ndim) if hasattr(values, "ndim") else np.asarray(values).ndim


def as_table(name: str, values: Any, prefix: str) -> tuple[Values, tuple[str, ...]]:
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


def _unmasked(name: str, values: Any) -> Any:
    """A masked array as a plain one: what is masked was not observed, which inputs must be."""
    hidden = np.ma.getmaskarray(values)
    if not hidden.any():
        return values.data
    if name != "y":
        raise InputError(
            f"{name} must be there in every row; got {int(hidden.sum())} masked entries. "
            "Remove those rows; gaps belong in y."
        )
    if values.dtype.kind not in "biuf":
        return values.filled()
    return values.astype(np.float64).filled(np.nan)


def _numbers(name: str, values: Any) -> Values:
    """Any array-like as float64, or the reason why not."""
    if isinstance(values, np.ma.MaskedArray):
        values = _unmasked(name, values)
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
