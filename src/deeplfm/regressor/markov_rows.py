"""Rows of a fitted state-space model: as its state sees them, with more of them, with inputs.

New rows come with what those of the fit came with: as many outputs, series, known inputs.
"""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deeplfm.data import Dataset
from deeplfm.data.dataset import one_input
from deeplfm.data.panels import KnownInputs, Panel, joined, known_inputs, one_series, panel_of
from deeplfm.errors import InputError
from deeplfm.statespace import Record
from deeplfm.statespace.record import Known

Values = NDArray[np.float64]


def record_of(
    data: Dataset, targets: Values, trend: bool, level: bool, device: str = "cpu"
) -> Record:
    """The rows of a data set as a Markov model sees them; sums over them are for a `device`."""
    panel = one_series(len(data)) if data.panel is None else data.panel
    known = None
    if data.known is not None:
        known = Known(data.known.times, data.known.codes, data.known.values)
    return Record(one_input(data.x), panel.codes, targets, trend, known, level, device)


def check_alike(old: Dataset, new: Dataset) -> None:
    """New rows have the input, the outputs and the known inputs of the fit."""
    one_input(new.x)
    if new.y.shape[1] != old.y.shape[1]:
        raise InputError(
            f"new rows must have the {old.y.shape[1]} outputs of the fit; got {new.y.shape[1]}. "
            "Select the same columns."
        )
    counts = [0 if one.known is None else one.known.values.shape[1] for one in (old, new)]
    if counts[0] != counts[1]:
        raise InputError(
            f"known must have the {counts[0]} inputs of the fit; got {counts[1]}. Pass them row by "
            "row, or leave them out where the fit had none."
        )


def appended(old: Dataset, new: Dataset) -> Dataset:
    """All rows of both; series are told apart by their labels."""
    check_alike(old, new)
    panel, known, codes_of = old.panel, old.known, np.zeros(1, dtype=np.int64)
    if panel is None and new.panel is not None:
        raise InputError(
            "series must be left out, the model was fitted to one series without an id; got "
            f"{list(new.panel.labels[:5])}. Use `condition` for another series."
        )
    if panel is not None:
        own = panel_of(None, len(new), panel.labels) if new.panel is None else new.panel
        labels = (*panel.labels, *(one for one in own.labels if one not in panel.labels))
        codes_of = np.array([labels.index(one) for one in own.labels])
        panel = Panel(labels, np.concatenate([panel.codes, codes_of[own.codes]]))
    if known is not None and new.known is not None:
        known = _joined_inputs(known, new.known, codes_of[new.known.codes])
    x, y = np.concatenate([old.x, new.x]), np.concatenate([old.y, new.y])
    return Dataset(x, y, old.input_names, old.output_names, panel, known)


def with_later_inputs(data: Dataset, x: Values, panel: Panel, known: Any) -> Dataset:
    """The data with known inputs after the last training row, which come with a prediction."""
    own = data.known
    if own is None:
        raise InputError(
            "known must be given to fit before it is given to predict; the model was fitted "
            "without known inputs. Leave it out, or fit with known=."
        )
    new = known_inputs(x, known, panel.codes)
    if new.values.shape[1] != own.values.shape[1]:
        raise InputError(
            f"known must have the {own.values.shape[1]} inputs of the fit; got "
            f"{new.values.shape[1]}. Select the same columns."
        )
    last = np.full(len(panel.labels), -np.inf)
    np.maximum.at(last, own.codes, own.times)
    later = new.times > last[new.codes]
    chosen = KnownInputs(own.names, new.times[later], new.codes[later], new.values[later])
    return replace(data, known=_joined_inputs(own, chosen, chosen.codes))


def _joined_inputs(old: KnownInputs, new: KnownInputs, codes: NDArray[np.int64]) -> KnownInputs:
    """Inputs of both; `codes` are the series of the new ones, as the old ones count them."""
    times = np.concatenate([old.times, new.times])
    values = np.concatenate([old.values, new.values])
    return joined(old.names, times, np.concatenate([old.codes, codes]), values)
