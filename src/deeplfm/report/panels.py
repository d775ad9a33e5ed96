"""Predictions of any fitted model for the page: of which series, and with which known inputs.

A page draws one series, the first; scores take every row with the series it belongs to.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from deeplfm.data import Dataset
from deeplfm.data.panels import Panel
from deeplfm.evaluation.predictive import Predictive
from deeplfm.regressor.base import Fitted
from deeplfm.regressor.markov import FittedMarkov

Values = NDArray[np.float64]

_SAMPLES = 200


def with_inputs_of(fitted: Fitted, held_out: Dataset | None) -> Fitted:
    """The model with the known inputs that came with what was held out."""
    if held_out is None or not isinstance(fitted, FittedMarkov):
        return fitted
    return fitted.knowing(held_out)


def drawn_series(data: Dataset | None) -> str | None:
    """The series that is drawn, where there are several."""
    panel = None if data is None else data.panel
    if panel is None or len(panel.labels) == 1:
        return None
    return panel.labels[int(panel.codes.min())]


def rows_of(data: Dataset | None, series: str | None) -> Dataset | None:
    """The rows of that series; all of them where there is but one."""
    if data is None or data.panel is None or series is None:
        return data
    own = np.array(data.panel.names(), dtype=object) == series
    panel = Panel(data.panel.labels, data.panel.codes[own])
    return replace(data, x=data.x[own], y=data.y[own], panel=panel)


def labels_of(data: Dataset, rows: NDArray[np.intp]) -> list[str] | None:
    """The series of some rows."""
    if data.panel is None:
        return None
    return [data.panel.labels[code] for code in data.panel.codes[rows].tolist()]


def predictive_at(
    fitted: Fitted, x: Values, series: str | Sequence[str] | None, num_samples: int = _SAMPLES
) -> Predictive:
    """The prediction at `x` of one series, or of one for each row."""
    if not isinstance(fitted, FittedMarkov):
        return fitted.predictive(x, num_samples)
    return fitted.predictive(x, num_samples, series=_ids(series, len(x)))


def forces_at(fitted: Fitted, x: Values, series: str | None, num_samples: int) -> Predictive:
    """The forces of the first layer at `x`, in one series."""
    if not isinstance(fitted, FittedMarkov):
        return fitted.latent_forces(x)
    return fitted.latent_forces(x, num_samples=num_samples, series=_ids(series, len(x)))


def draws_needed(fitted: Fitted, drawn: int) -> int:
    """Samples to ask for: those of layers are the mixture itself, those of states only drawn."""
    return drawn if isinstance(fitted, FittedMarkov) else _SAMPLES


def _ids(series: str | Sequence[str] | None, count: int) -> list[str] | None:
    if series is None:
        return None
    return [series] * count if isinstance(series, str) else list(series)
