"""Whether a prediction is as sure as it may be.

    PIT = P(Y ≤ y), uniform where the prediction is calibrated;   y is inside the central interval
    of probability p  ⟺  |2 PIT - 1| ≤ p.   For counts a random point of the step at y.

Bands hold 90 % of what calibrated predictions of that many independent targets show.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from deeplfm.errors import InputError
from deeplfm.evaluation.predictive import Predictive
from deeplfm.plotting import canvas
from deeplfm.plotting.points import Values, check_predictive, targets

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Columns = list[tuple[str, Values]]  # the PIT of each output, under its name

LEVELS = np.linspace(0, 1, 41)  # nominal probabilities
_BAND = 0.9
_TOLD_APART = 8  # outputs that get a colour and a name of their own


def plot_calibration(predictive: Predictive, y: Any, *, axes: Any = None) -> canvas.AxesArray:
    """Histogram of the PIT, and coverage against nominal probability; returns the two axes.

    y: [N, D], NaN where it was not observed; best held-out targets. Neighbours in a time series
    are not independent: there the bands are narrower than they should be.
    """
    points, outputs = check_predictive(predictive)
    values = targets("y", y, (points, outputs))
    if not np.isfinite(values).any():
        raise InputError("y must have observed targets; got none. Pass held-out values.")
    pit = predictive.pit(np.where(np.isfinite(values), values, np.nan))
    per_output = [
        (canvas.name_of(predictive.names, k, "output"), column[~np.isnan(column)])
        for k, column in enumerate(pit.T)
    ]
    per_output = [(name, column) for name, column in per_output if len(column)]
    pooled = pit[~np.isnan(pit)]
    row = canvas.axes_row(axes, 2, (9, 3.8))
    _draw_histogram(row[0], pooled, per_output)
    _draw_coverage(row[1], pooled, per_output)
    above = coverage_by_level(pooled).mean() > LEVELS.mean()
    canvas.as_text(row[1].legend(loc="lower right" if above else "upper left"))
    return row


def coverage_by_level(pit: Values) -> Values:
    """The share of targets inside the central intervals of the probabilities `LEVELS`."""
    return np.asarray((np.abs(2 * pit - 1)[:, None] <= LEVELS).mean(0))


def binomial_band(count: int, probability: Any) -> tuple[Values, Values]:
    """Shares of `count` independent targets that a calibrated prediction shows."""
    from scipy.stats import binom

    low, high = (binom.ppf(q, count, probability) for q in ((1 - _BAND) / 2, (1 + _BAND) / 2))
    # The quantile of nothing is -1 by convention.
    return np.asarray(np.maximum(low, 0) / count), np.asarray(high / count)


def _draw_histogram(axes: "Axes", pooled: Values, per_output: Columns) -> None:
    bins = int(np.clip(len(pooled) // 10, 4, 20))
    edges = np.linspace(0, 1, bins + 1)
    low, high = binomial_band(len(pooled), 1 / bins)
    ink = canvas.ink(axes)
    axes.axhspan(float(low * bins), float(high * bins), color=ink, alpha=0.12, linewidth=0)
    axes.axhline(1, color=ink, linestyle="--", linewidth=1)
    color = canvas.next_color(axes)
    axes.stairs(_density(pooled, edges), edges, fill=True, color=color, alpha=0.45)
    for style, column in _styled(axes, per_output):
        axes.stairs(_density(column, edges), edges, linewidth=1, **style)
    axes.set_xlabel("PIT, P(Y ≤ y)", usetex=False)
    axes.set(ylabel="density", title="Where targets fall", xlim=(0, 1))
    axes.set_ylim(bottom=0)


def _draw_coverage(axes: "Axes", pooled: Values, per_output: Columns) -> None:
    ink = canvas.ink(axes)
    low, high = binomial_band(len(pooled), LEVELS)
    axes.fill_between(LEVELS, low, high, color=ink, alpha=0.12, linewidth=0, label="if calibrated")
    axes.plot([0, 1], [0, 1], "--", marker="none", color=ink, linewidth=1)
    (line,) = axes.plot(LEVELS, coverage_by_level(pooled), "-", marker="none", label="all targets")
    line.set_zorder(3)
    for style, column in _styled(axes, per_output):
        axes.plot(LEVELS, coverage_by_level(column), "-", marker="none", linewidth=1, **style)
    axes.set(xlabel="nominal probability", ylabel="share of targets inside", title="Coverage")
    axes.set(xlim=(0, 1), ylim=(0, 1.02))


def _density(pit: Values, edges: NDArray[np.float64]) -> Values:
    return np.histogram(pit, edges)[0] / len(pit) * (len(edges) - 1)


def _styled(axes: "Axes", per_output: Columns) -> list[tuple[dict[str, Any], Values]]:
    """A colour and a name for each output; one for all where they are too many to tell apart.

    One output alone is all targets already.
    """
    if len(per_output) == 1:
        return []
    if len(per_output) <= _TOLD_APART:
        return [
            ({"color": canvas.next_color(axes), "label": name}, column)
            for name, column in per_output
        ]
    together = {"color": canvas.ink(axes), "alpha": 0.35}
    return [
        (together | {"label": "each output" if k == 0 else None}, column)
        for k, (_, column) in enumerate(per_output)
    ]
