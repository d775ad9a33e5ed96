"""The filters of an ODE beside what they make of a force, and pictures as files."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from deeplfm.data import files

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Values = NDArray[np.float64]


@dataclass(frozen=True)
class Curve:
    """One line of a plot."""

    label: str
    values: Values
    style: str = "-"


def plot_filters(
    lags: Values, filters: Sequence[Curve], times: Values, force: Curve, outputs: Sequence[Curve]
) -> "Figure":
    """Green's functions on the left; the force and what they make of it on the right."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1, 2))
    colors = [f"C{index}" for index in range(len(filters))]
    for curve, color in zip(filters, colors, strict=True):
        peak = np.abs(curve.values).max()
        left.plot(lags, curve.values / peak, curve.style, color=color, label=curve.label)
    left.set(title="Green's functions, to their peaks", xlabel="lag $t$")
    grey = {"color": "0.55", "linewidth": 4}
    right.plot(times, to_unit_range(force.values), force.style, label=force.label, **grey)
    for curve, color in zip(outputs, colors, strict=True):
        values = to_unit_range(curve.values)
        right.plot(times, values, curve.style, color=color, label=curve.label)
    right.set(title="one latent force and its responses, each scaled to [-1, 1]", xlabel="time $x$")
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
        axes.margins(x=0.01)
    right.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
    return figure


def to_unit_range(values: Values) -> Values:
    """Scaled to [-1, 1]."""
    low, high = float(values.min()), float(values.max())
    return 2 * (values - low) / (high - low) - 1


def save_figure(figure: "Figure", path: Path) -> None:
    """Write the picture, whole or not at all."""
    kind = path.suffix.removeprefix(".")
    files.write_whole(path, lambda partial: figure.savefig(partial, format=kind, dpi=150))
