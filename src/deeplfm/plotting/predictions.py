"""Predictions over one input: the mean, an interval, draws, and the data; one axes per output.

Outputs, latent forces and hidden functions are drawn alike; only the first have noise and data.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from deeplfm.errors import InputError
from deeplfm.evaluation.predictive import Predictive
from deeplfm.plotting import canvas
from deeplfm.plotting.points import Points, Values, check_predictive, inputs, points

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_predictions(
    predictive: Predictive,
    x: Any,
    *,
    observed: Any = None,
    held_out: Any = None,
    probability: float = 0.9,
    draws: int = 0,
    truth: Any = None,
    axes: Any = None,
) -> canvas.AxesArray:
    """Mean and interval of new observations, one axes per output; returns the axes [D].

    x:         where it was predicted, [N] or [N, 1], numbers or dates in any order.
    observed:  what the model saw, [N, D] at `x`, or a pair (x, y) with its own; NaN for gaps.
    held_out:  what it did not see, in the same way.
    probability: of the band; `predictive.interval` gives its edges.
    draws:     how many of the functions to draw, without noise: what is expected of y given each.
    truth:     the functions behind the data, where they are known, as `observed`.
    axes:      D axes to draw on; a new figure by default.
    """
    data = {"observed": observed, "held out": held_out, "truth": truth}
    return _draw(predictive, x, "output", data, probability, draws, axes)


def plot_latent_forces(
    predictive: Predictive,
    x: Any,
    *,
    probability: float = 0.9,
    draws: int = 0,
    truth: Any = None,
    axes: Any = None,
) -> canvas.AxesArray:
    """`model.latent_forces(x)`, one axes per force; arguments as in `plot_predictions`."""
    _check_no_noise(predictive, "latent_forces")
    return _draw(predictive, x, "force", {"truth": truth}, probability, draws, axes)


def plot_hidden_functions(
    predictive: Predictive,
    x: Any,
    *,
    probability: float = 0.9,
    draws: int = 0,
    truth: Any = None,
    axes: Any = None,
) -> canvas.AxesArray:
    """`model.hidden_functions(x)`, one axes per function; arguments as in `plot_predictions`."""
    _check_no_noise(predictive, "hidden_functions")
    return _draw(predictive, x, "hidden", {"truth": truth}, probability, draws, axes)


@dataclass(frozen=True)
class _Panel:
    """One output: x [N] in order, mean and edges [N], draws [N, draws]."""

    x: NDArray[Any]
    mean: Values
    lower: Values
    upper: Values
    draws: Values
    probability: float


def _draw(
    predictive: Predictive,
    x: Any,
    kind: str,
    data: Mapping[str, Any],
    probability: float,
    draws: int,
    axes: Any,
) -> canvas.AxesArray:
    place = inputs("x", x)
    rows, outputs = check_predictive(predictive)
    if len(place) != rows:
        raise InputError(
            f"x must have a row for each of the {rows} points of the prediction; got {len(place)}. "
            "Pass the x that was predicted at."
        )
    functions = _functions(predictive, draws)
    # Names of parameters, not of legends, where one of them is wrong.
    tables = {
        name: points(name.replace(" ", "_"), given, place, outputs)
        for name, given in data.items()
        if given is not None
    }
    order = np.argsort(place, kind="stable")
    mean, (lower, upper) = predictive.mean, predictive.interval(probability)
    panels = canvas.axes_stack(axes, outputs)
    for k, one in enumerate(panels):
        edges = lower[order, k], upper[order, k]
        own = functions[:, order, k].T
        _draw_panel(one, _Panel(place[order], mean[order, k], *edges, own, probability))
        for name, table in tables.items():
            _draw_data(one, name, table, k)
        one.set_title(canvas.name_of(predictive.names, k, kind), usetex=False)
    if axes is None:
        _finish(panels, place)
    canvas.add_legend(panels, made=axes is None)
    return panels


def _draw_panel(axes: "Axes", panel: _Panel) -> None:
    # A line is set out in full: a user's cycle may hold dashes and markers, made for few points.
    (line,) = axes.plot(panel.x, panel.mean, linestyle="-", marker="none", label="mean", zorder=2.2)
    color = line.get_color()
    axes.fill_between(
        panel.x,
        panel.lower,
        panel.upper,
        color=color,
        alpha=0.25,
        linewidth=0,
        label=f"{100 * panel.probability:g} % interval",
        zorder=1,
    )
    for k, function in enumerate(panel.draws.T):
        label = "draws" if k == 0 else None
        axes.plot(
            panel.x, function, "-", color=color, linewidth=0.7, alpha=0.6, label=label, zorder=1.5
        )


def _draw_data(axes: "Axes", name: str, table: Points, column: int) -> None:
    y = table.y[:, column]
    there = np.isfinite(y)
    if not there.any():
        return
    if name == "truth":  # a line with its gaps
        axes.plot(
            table.x, y, "--", marker="none", color=canvas.ink(axes), linewidth=1, label=name,
            zorder=2.1,
        )  # fmt: skip
        return
    size = 4.0 if there.sum() <= 150 else 2.5
    style: dict[str, Any] = {"linestyle": "none", "markersize": size, "label": name, "zorder": 3}
    if name == "observed":
        style |= {"color": canvas.ink(axes), "marker": ".", "alpha": 0.7}
    else:
        style |= {"marker": "o", "markerfacecolor": "none", "markeredgewidth": 0.8}
    axes.plot(table.x[there], y[there], **style)


def _finish(panels: canvas.AxesArray, x: NDArray[Any]) -> None:
    """What only a figure of our own gets: no empty margins, short dates."""
    for axes in panels:
        axes.margins(x=0.01)
        if x.dtype.kind == "M":
            from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

            locator = AutoDateLocator()
            axes.xaxis.set_major_locator(locator)
            axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))


def _functions(predictive: Predictive, draws: int) -> Values:
    """What is expected of y given some functions; samples are made only where they are drawn.

    They are spread out evenly: those of one member of a mixture are neighbours.
    """
    if isinstance(draws, bool) or not isinstance(draws, (int, np.integer)):
        raise InputError(f"draws must be an integer; got {draws!r}. Pass 5.")
    if draws == 0:
        return np.empty((0, *predictive.components.mean.shape[1:]))
    expected = predictive.expected_y
    if not 0 <= draws <= len(expected):
        raise InputError(
            f"draws must be 0 to {len(expected)}, the samples of the prediction; got {draws}. "
            "Predict with a larger num_samples."
        )
    return np.asarray(expected[np.linspace(0, len(expected) - 1, draws).round().astype(int)])


def _check_no_noise(predictive: Predictive, method: str) -> None:
    check_predictive(predictive)
    if predictive.components.noisy:
        raise InputError(
            "predictive must be without noise; got one of observations. Pass "
            f"model.{method}(x), or call plot_predictions."
        )
