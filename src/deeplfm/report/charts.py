"""Charts of predictions, observations and forces as plain dictionaries for plotly.js.

A trace's `meta` says what a check box switches; its `x` may be the name of a shared list. Colours
are Okabe and Ito's, told apart by all eyes, in shades that show on white and on black.
"""

import html
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from deeplfm.report.names import short
from deeplfm.report.predictions import Curves, Forces, Scored, Shown, evenly

Values = NDArray[np.float64]
Figure = dict[str, Any]
Trace = dict[str, Any]

BLUE, ORANGE, VERMILLION, PURPLE, GREY = "#2e86c8", "#e69f00", "#e0621b", "#cc79a7", "#8a8f98"
PALETTE = (BLUE, ORANGE, "#009e73", PURPLE, "#56b4e9", VERMILLION)
POINTS = 5000  # observations of an output that are drawn
_OPACITY = {0.9: 0.18, 0.5: 0.3}
_GAPS = 40  # shaded at most, the widest first


@dataclass(frozen=True)
class Axis:
    """The first input: its name, and the time stamp it counts seconds from, if it does."""

    name: str
    origin: pd.Timestamp | None = None

    def values(self, x: Values) -> list[Any]:
        """Numbers in full, or dates as ISO strings."""
        if self.origin is None:
            return numbers(x, digits=None)
        start = self.origin.tz_localize(None).to_datetime64().astype("datetime64[us]")
        dates = start + np.round(np.asarray(x) * 1e6).astype("timedelta64[us]")
        return [str(date) for date in dates]

    def layout(self, x: Values) -> dict[str, Any]:
        """The axis for plotly: it shows all of `x`, and a little room beside it."""
        kind = "linear" if self.origin is None else "date"
        room = 0.01 * (x[-1] - x[0])
        span = self.values(np.array([x[0] - room, x[-1] + room]))
        return {"title": {"text": escaped(self.name, 40)}, "type": kind, "range": span}


def escaped(name: str, longest: int = 30) -> str:
    """Text for plotly, which reads tags and entities in it, and mathematics between dollars."""
    return html.escape(short(name, longest), quote=False).replace("$", "&#36;")


def numbers(values: Values, digits: int | None = 6) -> list[float | None]:
    """Numbers for JSON: null where not finite, `digits` of what varies; None keeps them all."""
    array = np.asarray(values, dtype=float).ravel()
    finite = array[np.isfinite(array)]
    spread = float(np.ptp(finite)) if len(finite) else 0.0
    if digits is not None and 1e-200 < spread < 1e200:
        array = np.round(array, digits - 1 - int(np.floor(np.log10(spread))))
    return [float(value) if np.isfinite(value) else None for value in array]


def figure(identity: str, data: list[Trace], synced: bool = False, **layout: Any) -> Figure:
    """One chart; `synced` ones share the range of x."""
    return {"id": identity, "data": data, "layout": layout, "synced": synced}


def output_charts(shown: Shown, axis: Axis) -> list[Figure]:
    """One per output: a series, or predicted against observed where there are several inputs."""
    outputs = range(len(shown.fitted.output_names))
    if shown.grid is None:
        return [_against(shown, d) for d in outputs]
    return [_series(shown, shown.grid, axis, d) for d in outputs]


def force_charts(forces: Forces, axis: Axis, synced: bool) -> list[Figure]:
    """One per force, small."""
    return [
        figure(
            f"force-{k}",
            curves(forces.curves, k, "forces", PURPLE),
            synced,
            xaxis=axis.layout(forces.curves.x),
            height=210,
            hovermode="x unified",
        )
        for k in range(len(forces.names))
    ]


def curves(of: Curves, column: int, x: str, color: str) -> list[Trace]:
    """Interval bands, draws and the mean; `x` names the shared list of inputs."""
    traces: list[Trace] = []
    for probability, (lower, upper) in of.bands.items():
        tails = (50 * (1 - probability), 50 * (1 + probability))
        edges = [(lower, tails[0], {}), (upper, tails[1], {"fill": "tonexty"})]
        for values, tail, fill in edges:
            trace: Trace = {
                "x": x,
                "y": numbers(values[:, column]),
                "name": f"{tail:.3g} %",
                **fill,
            }
            trace |= {"mode": "lines", "line": {"width": 0}, "meta": "interval"}
            trace["fillcolor"] = _faint(color, _OPACITY[probability])
            if probability != max(of.bands):
                trace["hoverinfo"] = "skip"
            traces.append(trace)
    for draw in of.draws:
        trace = {"x": x, "y": numbers(draw[:, column]), "name": "draw", "meta": "draws"}
        trace |= {"mode": "lines", "line": {"width": 0.8, "color": ORANGE}, "opacity": 0.75}
        traces.append(trace | {"hoverinfo": "skip"})
    mean: Trace = {"x": x, "y": numbers(of.mean[:, column]), "name": "mean", "meta": "mean"}
    return [*traces, mean | {"mode": "lines", "line": {"width": 2, "color": color}}]


def _series(shown: Shown, grid: Curves, axis: Axis, output: int) -> Figure:
    traces = curves(grid, output, "grid", BLUE)
    for data, name, marker in (
        (shown.drawn[0], "observed", {"size": 4, "color": GREY}),
        (shown.drawn[1], "held out", {"size": 6, "color": VERMILLION, "symbol": "diamond-open"}),
    ):
        if data is None:
            continue
        rows = evenly(np.flatnonzero(data.observed[:, output]), POINTS)
        points = {"x": axis.values(data.x[rows, 0]), "y": numbers(data.y[rows, output])}
        trace = {"name": name, "meta": name, "mode": "markers", "marker": marker}
        traces.append(points | trace)
    layout: dict[str, Any] = {"xaxis": axis.layout(grid.x), "hovermode": "x unified", "height": 320}
    own = shown.drawn[0]
    if own is not None:
        seen = own.observed[:, output]
        layout["shapes"] = [_shade(axis, *gap) for gap in gaps(own.x[seen, 0])]
    return figure(f"output-{output}", traces, True, **layout)


def gaps(x: Values) -> list[tuple[float, float]]:
    """Where nothing was observed for long: over 5 usual steps and 1 % of the range."""
    ordered = np.sort(x)
    steps = np.diff(ordered)
    if not len(steps):
        return []
    usual = float(np.median(steps))
    wide = np.flatnonzero(steps > max(5 * usual, 0.01 * float(ordered[-1] - ordered[0])))
    wide = np.sort(wide[np.argsort(-steps[wide], kind="stable")][:_GAPS])
    return [(float(ordered[k]), float(ordered[k + 1])) for k in wide]


def _shade(axis: Axis, start: float, stop: float) -> dict[str, Any]:
    first, last = axis.values(np.array([start, stop]))
    where = {"type": "rect", "xref": "x", "yref": "paper", "x0": first, "x1": last, "y0": 0}
    look = {"y1": 1, "line": {"width": 0}, "fillcolor": _faint(GREY, 0.14), "layer": "below"}
    return where | look


def _against(shown: Shown, output: int) -> Figure:
    traces: list[Trace] = []
    for scored, name, marker in (
        (shown.training_scored, "observed", {"size": 5, "color": BLUE}),
        (shown.held_out_scored, "held out", {"size": 7, "color": VERMILLION, "symbol": "diamond"}),
    ):
        if scored is not None:
            traces.append(_points_against(scored, output, name, marker))
    known = [y for trace in traces for y in trace["x"] if y is not None]
    if known:
        ends = [min(known), max(known)]
        line = {"x": ends, "y": ends, "mode": "lines", "name": "predicted = observed"}
        look = {"line": {"dash": "dash", "width": 1, "color": GREY}, "hoverinfo": "skip"}
        traces.insert(0, line | look)
    axes = {"xaxis": {"title": {"text": "observed"}}, "yaxis": {"title": {"text": "predicted"}}}
    return figure(f"output-{output}", traces, False, **axes, hovermode="closest", height=380)


def _points_against(scored: Scored, output: int, name: str, marker: dict[str, Any]) -> Trace:
    rows = np.flatnonzero(~np.isnan(scored.y[:, output]))
    found = scored.predictive
    mean = found.mean[rows, output]
    lower, upper = (edge[rows, output] for edge in found.interval(0.9))
    bars = {"type": "data", "symmetric": False, "array": numbers(upper - mean)}
    bars |= {"arrayminus": numbers(mean - lower), "thickness": 1, "width": 0}
    bars["color"] = _faint(str(marker["color"]), 0.4)
    points = {"x": numbers(scored.y[rows, output]), "y": numbers(mean), "error_y": bars}
    return points | {"name": name, "meta": name, "mode": "markers", "marker": marker}


def _faint(color: str, opacity: float) -> str:
    red, green, blue = (int(color[k : k + 2], 16) for k in (1, 3, 5))
    return f"rgba({red},{green},{blue},{opacity})"
