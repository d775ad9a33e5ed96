"""What the page shows of a model's predictions, computed once: a grid, scored rows, forces.

All of it comes from the same draws (the fit's seed), in a size that a browser can draw.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from deeplfm.data import Dataset
from deeplfm.errors import InputError
from deeplfm.evaluation.predictive import Predictive
from deeplfm.regressor.base import Fitted
from deeplfm.regressor.estimator import DeepLFMRegressor
from deeplfm.report import panels
from deeplfm.report.names import distinct

Values = NDArray[np.float64]
Rows = NDArray[np.intp]

BANDS = (0.9, 0.5)
DRAWS = 5
_GRID, _GRID_LEAST = 2000, 400
_SCORED = 2000  # rows; the CRPS takes pairs of samples for each
_FORCE_GRID, _FORCES = 400, 6


@dataclass(frozen=True)
class Curves:
    """Functions over one input: x [G], mean [G, D], (lower, upper) by probability, draws."""

    x: Values
    mean: Values
    bands: dict[float, tuple[Values, Values]]
    draws: Values


@dataclass(frozen=True)
class Scored:
    """Rows that are scored: all of a data set, or evenly many of them."""

    y: Values
    predictive: Predictive
    thinned: bool


@dataclass(frozen=True)
class Forces:
    """The forces of layer 0 along the first input, as many as are drawn of `total`."""

    names: tuple[str, ...]
    total: int
    curves: Curves


@dataclass(frozen=True)
class Shown:
    """Everything the page draws. `fitted` and `data` have names that may be shown.

    `series` is the one that is drawn, where there are several; `drawn` are its rows.
    """

    fitted: Fitted
    data: Dataset | None
    held_out: Dataset | None
    series: str | None
    drawn: tuple[Dataset | None, Dataset | None]  # of data, of what was held out
    grid: Curves | None
    training_scored: Scored | None
    held_out_scored: Scored | None
    forces: Forces | None  # None where no force drives the first layer
    noise: Mapping[str, Values]  # [D] by what it is, empty where nothing of it is learnt
    counts: bool  # targets are whole numbers
    closed_crps: bool


def gather(model: DeepLFMRegressor, held_out: Dataset | None) -> Shown:
    """Predict on the grid, at the data and at what was held out."""
    fitted = _with_shown_names(model.fitted_)
    if held_out is not None:
        _check_columns(model.fitted_, held_out)
    fitted = panels.with_inputs_of(fitted, held_out)
    data, held_out = _finite(fitted.data), _finite(held_out)
    series = panels.drawn_series(data)
    drawn = panels.rows_of(data, series), panels.rows_of(held_out, series)
    low, high = _range(fitted, *drawn)
    grid, outputs = None, len(fitted.output_names)
    if len(fitted.input_names) == 1:
        x = np.linspace(low[0], high[0], _grid_size(outputs, *drawn))
        count = panels.draws_needed(fitted, DRAWS)
        grid = _curves(x, panels.predictive_at(fitted, x, series, count))
    training, tested = _scored(fitted, data, held_out)
    one = panels.predictive_at(fitted, low[None], series, fitted.num_members).components
    return Shown(
        fitted,
        data,
        held_out,
        series,
        drawn,
        grid,
        training,
        tested,
        _forces(fitted, low, high, drawn[0], series),
        fitted.noise(),
        one.support.whole,
        one.has_closed_crps,
    )


def _grid_size(outputs: int, *sets: Dataset | None) -> int:
    """As many as there are rows, within what a page can hold for so many outputs."""
    rows = sum(len(one) for one in sets if one is not None)
    most = _GRID * 20 // max(20, outputs)
    return int(np.clip(rows, _GRID_LEAST, max(_GRID_LEAST, most)))


def _scored(fitted: Fitted, *sets: Dataset | None) -> list[Scored | None]:
    """Predictions at evenly chosen rows of each, from one evaluation."""
    chosen = [np.arange(0) if one is None else scored_rows(one.y) for one in sets]
    places = [one.x[rows] for one, rows in zip(sets, chosen, strict=True) if one is not None]
    if not any(len(rows) for rows in chosen):
        return [None for _ in sets]
    named = [
        panels.labels_of(one, rows)
        for one, rows in zip(sets, chosen, strict=True)
        if one is not None
    ]
    ids = None if None in named else [one for part in named for one in part or ()]
    whole = panels.predictive_at(fitted, np.concatenate(places), ids)
    found: list[Scored | None] = []
    start = 0
    for one, rows in zip(sets, chosen, strict=True):
        part = whole[start : start + len(rows)]
        start += len(rows)
        if one is None or not len(rows):
            found.append(None)
        else:
            found.append(Scored(one.y[rows], part, len(rows) < len(one)))
    return found


def evenly(rows: Rows, limit: int) -> Rows:
    """At most `limit` of them, first and last included."""
    if len(rows) <= limit:
        return rows
    return np.asarray(rows[np.linspace(0, len(rows) - 1, limit).round().astype(int)])


def scored_rows(y: Values, limit: int = _SCORED) -> Rows:
    """Rows to score: every output gets its share of those where it was observed."""
    if len(y) <= limit:
        return np.arange(len(y))
    share = max(20, limit // y.shape[1])
    picked = [evenly(np.flatnonzero(~np.isnan(column)), share) for column in y.T]
    return np.unique(np.concatenate(picked))


def _with_shown_names(fitted: Fitted) -> Fitted:
    """Names that fit on a page and are told apart from each other and from hidden functions."""
    hidden = [f"hidden {k}" for k in range(fitted.hidden_width)]
    inputs = tuple(distinct(fitted.input_names, hidden))
    outputs = tuple(distinct(fitted.output_names, hidden))
    data = fitted.data
    if data is not None:
        data = replace(data, input_names=inputs, output_names=outputs)
    return replace(fitted, input_names=inputs, output_names=outputs, data=data)


def _check_columns(fitted: Fitted, held_out: Dataset) -> None:
    expected = (len(fitted.input_names), len(fitted.output_names))
    got = (held_out.x.shape[1], held_out.y.shape[1])
    if got != expected or tuple(held_out.output_names) != tuple(fitted.output_names):
        raise InputError(
            f"held_out must have the {expected[0]} inputs and {expected[1]} outputs of the fit, "
            f"in that order; got {got[0]} and {got[1]}"
            f"{' with other names' if got == expected else ''}. Select the same columns."
        )


def _finite(data: Dataset | None) -> Dataset | None:
    return None if data is None else replace(data, y=np.where(np.isfinite(data.y), data.y, np.nan))


def _range(fitted: Fitted, *sets: Dataset | None) -> tuple[Values, Values]:
    """Where there are data; without them, what the scaling remembers of them."""
    xs = [one.x for one in sets if one is not None and len(one)]
    scaling = fitted.scaling
    if fitted.data is None:
        xs.append(np.stack([scaling.input_origin, scaling.input_origin + scaling.input_scale]))
    low, high = np.min([x.min(0) for x in xs], axis=0), np.max([x.max(0) for x in xs], axis=0)
    return low, np.where(high > low, high, low + scaling.input_scale)


def _curves(x: Values, predictive: Predictive) -> Curves:
    count = len(predictive.samples)
    # Spread over the samples: those of a mixture come member by member.
    chosen = np.linspace(0, count - 1, min(DRAWS, count)).round().astype(int)
    bands = {probability: predictive.interval(probability) for probability in BANDS}
    return Curves(x, predictive.mean, bands, predictive.expected_y[chosen])


def _forces(
    fitted: Fitted, low: Values, high: Values, data: Dataset | None, series: str | None
) -> Forces | None:
    """Along the first input, the others at their medians; None where there are no forces."""
    if not fitted.force_names(0):
        return None
    middle = (low + high) / 2 if data is None else np.median(data.x, axis=0)
    points = np.repeat(middle[None], _FORCE_GRID, axis=0)
    points[:, 0] = np.linspace(low[0], high[0], _FORCE_GRID)
    found = panels.forces_at(fitted, points, series, DRAWS)
    # A force along another input does not change here.
    first = found.components.mean[0]
    moving = [k for k in range(len(found.names)) if np.ptp(first[:, k]) > 0]
    kept = (moving or list(range(len(found.names))))[:_FORCES]
    part = found.select(outputs=np.array(kept))
    return Forces(part.names, len(found.names), _curves(points[:, 0], part))
