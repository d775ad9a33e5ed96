"""The ODEs that were learnt: their Green's functions, time constants and periods.

In the user's units along the user's inputs; hidden functions have none, and the pictures say so.
"""

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from deeplfm.errors import InputError
from deeplfm.plotting import canvas
from deeplfm.regressor.base import Fitted
from deeplfm.regressor.fitted import FittedModel
from deeplfm.regressor.learnt import Response, greens_curves, responses
from deeplfm.regressor.markov import FittedMarkov

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_NAME = 24  # letters of a name where several stand in one label


def plot_greens_functions(model: Any, layer: int = 0, *, member: int = 0, ax: Any = None) -> "Axes":
    """The Green's functions of a layer along its first input, with their time constants.

    Functions that share one are drawn once. `member` chooses the model of a mixture.
    """
    fitted = _fitted(model)
    depth = len(fitted.members[0].layers) if isinstance(fitted, FittedModel) else 1
    _check_index("layer", layer, depth)
    _check_index("member", member, fitted.num_members)
    lags, values = greens_curves(fitted, layer, member)
    own = [one for one in responses(fitted, member) if one.layer == layer]
    own = [one for one in own if one.input == own[0].input]
    if isinstance(fitted, FittedMarkov):  # its modes are no answers to a force
        own = [one for one in own if math.isfinite(one.lengthscale)]
    axes = canvas.single_axes(ax, (7, 3.6))
    shared: dict[bytes, list[int]] = {}
    for k, curve in enumerate(values.T):
        shared.setdefault(curve.tobytes(), []).append(k)
    for members in shared.values():
        names = canvas.shown(canvas.written(own[k].function, _NAME) for k in members)
        first = own[members[0]]
        label = f"{names}: {_in_short(first)}"
        if first.poles:
            axes.plot(lags, values[:, members[0]], "-", marker="none", label=label)
        else:  # δ, as it is drawn by custom
            axes.plot([0, 0], [0, 1], "-", marker="^", markevery=[1], label=label)
    axes.set_xlabel(f"lag along {_input_name(own[0])}", usetex=False)
    axes.set_title(f"Green's functions of layer {layer}", usetex=False)
    canvas.as_text(axes.legend(loc="upper right"))
    return axes


def plot_time_constants(model: Any, *, member: int = 0, ax: Any = None) -> "Axes":
    """Time constants, and periods of what swings, of every response; one row for each.

    A response that follows its force at once, or never forgets it, has no place on a logarithmic
    axis: it is written. `member` chooses the model of a mixture.
    """
    fitted = _fitted(model)
    _check_index("member", member, fitted.num_members)
    rows = responses(fitted, member)
    if not rows:
        raise InputError(
            "model must have modes or ODEs to draw; got a MarkovDLFM whose modes carry nothing. "
            "Train it for more steps, or give it a greens_function."
        )
    axes = canvas.single_axes(ax, (8, min(40.0, 1.3 + 0.27 * len(rows))))
    ink = canvas.ink(axes)
    colors = [canvas.next_color(axes) for _ in range(rows[-1].layer + 1)]
    _set_log_scale(axes, [t for one in rows for t in (one.time_constant, one.period)])
    for height, one in enumerate(rows):
        color = colors[one.layer]
        both = [value for value in (one.time_constant, one.period) if 0 < value < math.inf]
        axes.plot(both, [height] * len(both), "-", marker="none", color=color, alpha=0.4)
        if 0 < one.time_constant < math.inf:
            axes.plot(one.time_constant, height, "o", color=color)
        else:
            _write_limit(axes, one, height, color)
        if math.isfinite(one.period):
            axes.plot(one.period, height, "D", color=color, markerfacecolor="none")
    labels = [f"layer {one.layer}: {_row_name(one)}" for one in rows]
    axes.set_yticks(range(len(rows)), labels, usetex=False)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.grid(axis="y", alpha=0.3)
    handles = [axes.plot([], [], "o", color=ink, label="time constant")[0]]
    if any(math.isfinite(one.period) for one in rows):
        (period,) = axes.plot([], [], "D", color=ink, markerfacecolor="none", label="period")
        handles.append(period)
    axes.set_xlabel("in units of the input", usetex=False)
    axes.legend(handles=handles, loc="lower right", bbox_to_anchor=(1, 1), ncols=2, frameon=False)
    return axes


def _set_log_scale(axes: "Axes", values: list[float]) -> None:
    """Write plain numbers on a logarithmic axis, also inside the decades if these are few."""
    from matplotlib.ticker import LogLocator, NullFormatter

    logs = [math.log10(value) for value in values if 0 < value < math.inf]
    few = not logs or max(logs) - min(logs) < 3
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if few else (1,)))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter(NullFormatter())


def _write_limit(axes: "Axes", one: Response, height: int, color: Any) -> None:
    at_once = not one.poles
    axes.text(
        0.01 if at_once else 0.99,
        height,
        "at once" if at_once else "never forgets",
        transform=axes.get_yaxis_transform(),
        color=color,
        va="center",
        ha="left" if at_once else "right",
    )


def _in_short(one: Response) -> str:
    if not one.poles:
        return "at once"
    if math.isinf(one.time_constant):
        words = "never forgets"
    else:
        words = f"time constant {one.time_constant:.3g}"
    return words if math.isinf(one.period) else f"{words}, period {one.period:.3g}"


def _row_name(one: Response) -> str:
    return f"{canvas.written(one.function, _NAME)} along {_input_name(one)}"


def _input_name(one: Response) -> str:
    return canvas.written(one.input, _NAME) + ("" if one.in_units else " (no units)")


def _fitted(model: Any) -> Fitted:
    """The fitted model of an estimator, or a fitted model itself."""
    found = getattr(model, "fitted_", model)
    if not isinstance(found, Fitted):
        raise InputError(
            f"model must be a fitted model; got {type(model).__name__} without a fit. Call fit "
            "first."
        )
    return found


def _check_index(name: str, value: Any, count: int) -> None:
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not whole or not 0 <= value < count:
        raise InputError(f"{name} must be 0 to {count - 1}; got {value!r}. Choose one of them.")
