"""The library checks itself: what a fit without some blocks makes of those blocks.

    blocks, why = blocks_of(data, seed);   check = check_of(fitted_without_them, data, blocks)

Blocks are chosen in `evaluation.held_blocks`, rivals live in `evaluation.rivals`, and
`evaluation.judging` says what it means.
"""

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from deeplfm.data import Dataset
from deeplfm.data.stored import Stored
from deeplfm.errors import FitWarning, NumericalError
from deeplfm.evaluation import held_blocks, rivals
from deeplfm.evaluation.check import Check
from deeplfm.evaluation.held_blocks import HeldBlock, hidden_by
from deeplfm.evaluation.judging import LEVEL, Entries, judge
from deeplfm.evaluation.predictive import Predictive
from deeplfm.evaluation.spread import can_widen
from deeplfm.regressor.base import Fitted
from deeplfm.training import Training

Values = NDArray[np.float64]
Kind = TypeVar("Kind", bound=Fitted)

OFF = Check.none("the check was switched off.")
INTERRUPTED = Check.none("the fit was interrupted.")
_STEPS = 3  # times fewer than the fit, where a model without the blocks is trained beside it
_SAMPLES = 64  # functions of a prediction that is scored
_REACH = 0.25  # of the last block, along which the factors of the spread go over


def blocks_of(data: Dataset, seed: int) -> tuple[list[HeldBlock], Check | None]:
    """The blocks to hold out of data; where there are none, the check that says why."""
    if data.panel is not None:
        return [], Check.none("blocks are held out of one series, and this is a panel of several.")
    if data.x.shape[1] == 1:
        found = held_blocks.hold_out(data.x[:, 0], data.observed, seed)
    else:
        found = held_blocks.hold_out_rows(data.observed, seed)
    if not found:
        enough = f"at least {held_blocks.FEWEST} rows at different times are needed"
        return [], Check.none(f"{len(data)} rows are too few to hold some out; {enough}.")
    return found, None


def without_blocks(data: Dataset, blocks: list[HeldBlock]) -> Dataset:
    """The data with nothing observed in the blocks; rows stay."""
    hidden = hidden_by(blocks, (data.y.shape[0], data.y.shape[1]))
    return replace(data, y=np.where(hidden, np.nan, data.y))


def check_of(fitted: Fitted, data: Dataset, blocks: list[HeldBlock]) -> Check:
    """Judge a model that was fitted to `data` without the blocks."""
    y, seed = data.y, fitted.seed
    hidden = hidden_by(blocks, (y.shape[0], y.shape[1]))
    rows = np.flatnonzero(hidden.any(1))
    asked = np.where(hidden, y, np.nan)[rows]
    predicted = fitted.predictive(data.x[rows], _SAMPLES, seed)
    draws = fitted.together(data.x[rows], seed)
    left = np.where(hidden, np.nan, y)
    scale = np.nanstd(y, axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    series = data.x.shape[1] == 1
    others = rivals.of_series(data.x[:, 0], left) if series else rivals.of_table(data.x, left)
    low, high = predicted.interval(LEVEL)
    tables = {
        "y": asked,
        "mean": predicted.mean,
        "std": predicted.std,
        "crps": _crps(predicted, asked, draws),
        "log_density": predicted.log_density(asked),
        "inside": ((asked >= low) & (asked <= high)).astype(float),
        "scale": np.broadcast_to(scale, asked.shape),
    }
    place = np.full(len(y), -1)
    place[rows] = np.arange(len(rows))
    found = []
    for kind in dict.fromkeys(block.kind for block in blocks):
        own = [block for block in blocks if block.kind == kind]
        at = np.concatenate([block.rows for block in own])
        outputs = np.concatenate([block.outputs for block in own])
        columns = {name: table[place[at], outputs] for name, table in tables.items()}
        named = {name: table[at, outputs] for name, table in others.items()}
        drawn = draws[:, place[at], outputs]
        found.append(Entries(kind, len(own), **columns, draws=drawn, rivals=named))
    return judge(_in_order(found), can_widen(predicted.components), _reach(data, blocks))


def check_beside(
    fitted: Kind, data: Dataset | Stored, fit: Callable[[Dataset, Training], Kind]
) -> Kind:
    """A fitted model with its check, by a model of fewer steps that `fit` makes without blocks."""
    if isinstance(data, Stored):
        why = "the rows are read from disk; hold some out yourself, and score them."
        return replace(fitted, check=Check.none(why))
    blocks, none = blocks_of(data, fitted.seed)
    if none is not None:
        return replace(fitted, check=none)
    part = without_blocks(data, blocks)
    seen = part.observed.any(1)
    part = replace(part, x=part.x[seen], y=part.y[seen])
    training = fitted.training
    fewer = max(1, training.steps // _STEPS)
    training = replace(training, steps=fewer, restarts=1, combine="best", held_out=0.0)
    try:
        return replace(fitted, check=check_of(fit(part, training), data, blocks))
    except NumericalError as error:
        return replace(fitted, check=Check.none(f"the fit without the blocks broke down ({error})"))


def warn_of(check: Check | None) -> None:
    """Warn in one sentence of what a check found, where it found something."""
    if check is not None and not check.passed:
        said = f"{' '.join(check.warnings)} See check_, or pass check=False."
        warnings.warn(said, FitWarning, stacklevel=4)


def _crps(predicted: Predictive, y: Values, draws: Values) -> Values:
    """The CRPS [N, D]; from draws where a closed form is missing."""
    if predicted.components.has_closed_crps:
        return predicted.crps(y)
    ordered = np.sort(draws, axis=0)
    count = len(ordered)
    weight = (2 * np.arange(count) - count + 1) / max(1, count * (count - 1))
    apart = 2 * np.tensordot(weight, ordered, axes=1)
    return np.asarray(np.abs(draws - y).mean(0) - apart / 2)


def _in_order(found: list[Entries]) -> list[Entries]:
    order = ("inside", "single", "end", "rows")
    return sorted(found, key=lambda entries: order.index(entries.kind))


def _reach(data: Dataset, blocks: list[HeldBlock]) -> float:
    last = [block for block in blocks if block.kind == "end"]
    return _REACH * float(np.ptp(data.x[last[0].rows, 0])) if last else 0.0
