"""Rows that a fitted state-space model is given later: more of its series, or of others.

Series are told apart by their labels; what the fit had beside its rows must come with these too.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from deeplfm.data import Dataset
from deeplfm.data.panels import KnownInputs, Panel, joined
from deeplfm.errors import InputError


def appended(old: Dataset, new: Dataset) -> Dataset:
    """All rows of both; series are told apart by their labels."""
    check_alike(old, new)
    _check_beside("series", old.panel, new.panel)
    panel, known, number = old.panel, old.known, np.zeros(1, dtype=np.int64)
    if old.panel is not None and new.panel is not None:
        added = (one for one in new.panel.labels if one not in old.panel.labels)
        labels = (*old.panel.labels, *added)
        number = np.array([labels.index(one) for one in new.panel.labels])
        panel = Panel(labels, np.concatenate([old.panel.codes, number[new.panel.codes]]))
    if old.known is not None and new.known is not None:
        own = replace(new.known, codes=number[new.known.codes])
        known = _joined_inputs(old.known, own)
    x, y = np.concatenate([old.x, new.x]), np.concatenate([old.y, new.y])
    return Dataset(x, y, old.input_names, old.output_names, panel, known)


def check_alike(old: Dataset, new: Dataset) -> None:
    """New rows have the outputs and the known inputs of the fit."""
    if new.y.shape[1] != old.y.shape[1]:
        raise InputError(
            f"new rows must have the {old.y.shape[1]} outputs of the fit; got {new.y.shape[1]}. "
            "Select the same columns."
        )
    _check_beside("known", old.known, new.known)
    if old.known is not None and new.known is not None:
        widths = old.known.values.shape[1], new.known.values.shape[1]
        if widths[0] != widths[1]:
            raise InputError(
                f"known must have the {widths[0]} inputs of the fit; got {widths[1]}. "
                "Select the same columns."
            )


def _check_beside(name: str, before: Any, now: Any) -> None:
    if (before is None) != (now is None):
        fitted, do = ("without", "Leave it out") if before is None else ("with", "Pass it")
        raise InputError(f"{name} must be as in the fit, which was {fitted} it. {do}.")


def _joined_inputs(old: KnownInputs, new: KnownInputs) -> KnownInputs:
    times = np.concatenate([old.times, new.times])
    codes = np.concatenate([old.codes, new.codes])
    return joined(old.names, times, codes, np.concatenate([old.values, new.values]))
