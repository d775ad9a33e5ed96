"""The table of a run and the part of its columns: inputs, outputs, ids of series, known inputs.

source = with_columns(Source(path, [], []), frame);   rows = rows_of(source, frame, origins)

What a run was fitted to names its columns in `run.json`; a new table of it must have them too.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, final

import numpy as np

from deeplfm.data import Dataset
from deeplfm.data import columns as cells
from deeplfm.data import csv_tables as tables
from deeplfm.errors import DataWarning, InputError
from deeplfm.regressor.base import Summary
from deeplfm.regressor.estimator import DeepLFMRegressor

if TYPE_CHECKING:
    import pandas as pd

LEVELS = {0.05: "p05", 0.5: "p50", 0.95: "p95"}  # quantiles of a prediction, and their endings

_SERIES = "series"  # the column of ids of a panel that was fitted from Python


@final
@dataclass(frozen=True)
class Source:
    """A table and the columns to fit; `series` holds ids, `known` are inputs that are known."""

    path: Path
    inputs: Sequence[str]
    outputs: Sequence[str]
    series: str | None = None
    known: Sequence[str] = ()

    @property
    def plain(self) -> bool:
        """Whether there are inputs and outputs alone."""
        return self.series is None and not self.known

    @property
    def beside(self) -> list[str]:
        """The columns that are neither inputs nor outputs."""
        return [*([] if self.series is None else [self.series]), *self.known]

    def read(self) -> "pd.DataFrame":
        """The whole table; ids are text, as they are written."""
        return tables.read_table(self.path, [] if self.series is None else [self.series])


class Rows(NamedTuple):
    """What a table says: inputs, outputs where there are any, and what comes beside them."""

    x: "pd.DataFrame"
    y: "pd.DataFrame"
    beside: dict[str, Any]  # known and series, as `fit` and `predict` take them
    origins: dict[str, str]


def with_columns(source: Source, frame: "pd.DataFrame") -> Source:
    """The columns that were named; by default the first is the input, the others the outputs.

    A column without a name is mostly an index that was saved with the table: it has to be named.
    """
    named = {*source.inputs, *source.outputs, *source.beside}
    unnamed = [name for name in tables.nameless(frame) if name not in named]
    free = [str(name) for name in frame.columns if name not in {*source.beside, *unnamed}]
    inputs = list(source.inputs) or free[:1]
    outputs = list(source.outputs) or [name for name in free if name not in inputs]
    tables.check_columns(frame, [*inputs, *outputs, *source.beside], source.path)
    if not outputs:
        raise InputError(
            f"{source.path} must have a column to fit besides "
            f"{tables.shown([*inputs, *source.beside])}; got none. Add one."
        )
    if unnamed:
        warnings.warn(
            f"{tables.shown(unnamed)} of {source.path} has no name, as an index that was saved "
            "with a table, and was left out: name it with --inputs or --outputs to use it.",
            DataWarning,
            stacklevel=2,
        )
    return replace(source, inputs=inputs, outputs=outputs)


def rows_of(source: Source, frame: "pd.DataFrame", origins: Mapping[str, str] | None) -> Rows:
    """The rows of a table that has the columns; `origins` are those of the fit, None before it."""
    x, found = cells.inputs(frame, source.inputs, source.path, origins)
    y = cells.targets(frame, source.outputs, source.path)
    beside: dict[str, Any] = {}
    if source.known:
        beside["known"] = cells.targets(frame, source.known, source.path)
    if source.series is not None:
        beside["series"] = cells.labels(frame, source.series, source.path)
    return Rows(x, y, beside, found)


def source_like(
    model: DeepLFMRegressor, request: Mapping[str, Any], path: Path, *, outputs: bool
) -> Source:
    """A table with the columns that a run was fitted to, with its outputs or without."""
    fitted = model.fitted_
    data: Dataset | None = fitted.data
    panel = None if data is None else data.panel
    known = None if data is None else data.known
    column = request.get("series") or _SERIES
    return Source(
        path,
        list(fitted.input_names),
        list(fitted.output_names) if outputs else [],
        None if panel is None else str(column),
        [] if known is None else list(known.names),
    )


def read_like(source: Source, origins: Mapping[str, str]) -> tuple["pd.DataFrame", Rows]:
    """A new table of a run, which must have its columns, as it is and as rows."""
    frame = source.read()
    tables.check_columns(frame, [*source.inputs, *source.outputs, *source.beside], source.path)
    return frame, rows_of(source, frame, origins)


def predicted(
    source: Source, frame: "pd.DataFrame", outputs: Sequence[str], found: Summary
) -> "pd.DataFrame":
    """The columns that were asked for, then mean, deviation and quantiles of every output."""
    import pandas as pd

    series = [] if source.series is None else [source.series]
    made: dict[str, Any] = {name: frame[name] for name in [*source.inputs, *series]}
    taken = []
    for k, output in enumerate(outputs):
        parts = {"mean": found.mean, "std": found.std}
        parts |= {ending: found.quantiles[level] for level, ending in LEVELS.items()}
        for ending, part in parts.items():
            name = f"{output}_{ending}"
            if name in made:
                taken.append(name)
            while name in made:
                name += "_"
            made[name] = part[:, k]
    if taken:
        warnings.warn(
            f"{tables.shown(taken)} is a column of the input already: the prediction of that name "
            "has an underscore at its end.",
            DataWarning,
            stacklevel=2,
        )
    return pd.DataFrame(made)


def unseen(rows: Rows, data: Dataset) -> "pd.DataFrame":
    """The outputs without observations that `data` has already: of that series, time and value."""
    x, y = rows.x.to_numpy(float), rows.y.to_numpy(float)
    series = rows.beside.get("series") or [""] * len(x)
    near = np.flatnonzero(((data.x >= x.min(0)) & (data.x <= x.max(0))).all(1))
    labels = [""] * len(data) if data.panel is None else data.panel.names()
    had = {
        (labels[row], *data.x[row].tolist(), output, data.y[row, output])
        for row in near.tolist()
        for output in range(data.y.shape[1])
    }
    again = [
        [(label, *place, output, value) in had for output, value in enumerate(values)]
        for label, place, values in zip(series, x.tolist(), y.tolist(), strict=True)
    ]
    return rows.y.mask(np.array(again).reshape(y.shape))
