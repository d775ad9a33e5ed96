"""Data as the model sees it: arrays [N, P] and [N, D] in the user's units, NaN as a mask.

    data = dataset(X, y);   data.x, data.y, data.observed

Neighbours: `frames` reads what users pass, `scaling` converts units.
"""

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from deeplfm.data.frames import as_table, dimensions
from deeplfm.data.panels import KnownInputs, Panel, known_inputs, one_series, panel_of
from deeplfm.data.sizes import check_ranges, check_targets_size
from deeplfm.errors import InputError

Values = NDArray[np.float64]


@final
@dataclass(frozen=True, eq=False)
class Dataset:
    """Inputs [N, P] and targets [N, D] in the user's units; NaN targets were not observed.

    Rows without any target are dropped when it is made. A `panel` says which series a row belongs
    to; inputs that are `known` have rows of their own, those without a target among them.
    """

    x: Values
    y: Values
    input_names: tuple[str, ...]
    output_names: tuple[str, ...]
    panel: Panel | None = None
    known: KnownInputs | None = None

    @property
    def observed(self) -> NDArray[np.bool_]:
        """The mask [N, D]."""
        return ~np.isnan(self.y)

    def __len__(self) -> int:
        return len(self.x)


def dataset(
    X: Any, y: Any, known: Any = None, series: Any = None, *, complete: bool = True
) -> Dataset:
    """A data set of arrays, lists, tensors or pandas.

    X is [N] or [N, P], y [N] or [N, D] with NaN for gaps; `known` inputs are [N] or [N, C], and
    `series` [N] are the ids of the series. A `complete` one has two rows or more, and every output
    is observed somewhere; rows that are added to others may be fewer.
    """
    x, input_names = as_table("X", X, "x")
    targets, output_names = as_table("y", y, "y")
    if len(x) != len(targets):
        raise InputError(
            f"X and y must have the same number of rows; got {len(x)} and {len(targets)}. "
            "Give every output a row, with NaN where it was not observed."
        )
    _check_finite_inputs(x)
    if len(x) == 1 and complete:
        raise InputError(
            "X and y must have 2 or more rows; got 1 sample. One observation says nothing of a "
            "function: add more."
        )
    if np.isinf(targets).any():
        raise InputError(
            f"y must be finite or NaN; got {int(np.isinf(targets).sum())} infinite entries. "
            "Replace them by NaN if they were not observed."
        )
    check_targets_size(targets, output_names)
    observed = ~np.isnan(targets)
    for name, column in zip(output_names, observed.T, strict=True):
        if complete and not column.any():
            raise InputError(
                f"every output must be observed somewhere; got only NaN in {name!r}. Drop it."
            )
    keep = observed.any(axis=1)
    if complete:
        check_ranges(x[keep], input_names)
    panel = None if series is None else panel_of(series, len(x))
    inputs = None
    if known is not None:
        codes = one_series(len(x)).codes if panel is None else panel.codes
        inputs = known_inputs(one_input(x), known, codes)
    if panel is not None:
        panel = Panel(panel.labels, panel.codes[keep])
    return Dataset(x[keep], targets[keep], input_names, output_names, panel, inputs)


def one_input(x: Values) -> Values:
    """The times [N] of a table with one input."""
    if x.shape[1] != 1:
        raise InputError(
            f"X must be one input, the time, for a state-space model; got {x.shape[1]}. "
            "Use FourierDLFM or InducingDLFM for tables."
        )
    return x[:, 0]


def inputs_table(X: Any, num_inputs: int) -> Values:
    """New inputs as [N, P], checked against the number of inputs the model was fitted with."""
    x, _ = as_table("X", X, "x")
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


def _check_finite_inputs(x: Values) -> None:
    if not np.isfinite(x).all():
        raise InputError(
            f"X must be finite; got {int((~np.isfinite(x)).sum())} NaN or infinite entries. "
            "Remove those rows; gaps belong in y."
        )
