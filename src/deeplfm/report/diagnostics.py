"""Charts of what stands behind the predictions: Green's functions, calibration, learning."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deeplfm.regressor.fitted import FittedModel
from deeplfm.regressor.learnt import greens_curves
from deeplfm.report.charts import GREY, PALETTE, Axis, Figure, Trace, escaped, figure, numbers
from deeplfm.report.predictions import evenly
from deeplfm.report.scores import BINS, LEVELS, Scores
from deeplfm.report.words import duration_unit

Values = NDArray[np.float64]

LINES = 12  # of one chart; the others are in the tables
_DASHES = ("solid", "dash", "dot")
_STEPS = 2000
# Columns of a history, of layers or of states, as the legend says them.
_LEARNT = {
    "loss": "loss",
    "expected_log_likelihood": "expected log likelihood",
    "kl": "KL",
    "log_evidence": "log evidence",
    "log_prior": "log prior",
}


def greens_charts(fitted: FittedModel, axis: Axis) -> list[tuple[int, Figure]]:
    """One per layer that has dynamics."""
    found = []
    stack = fitted.members[0].stack
    for layer in range(len(stack)):
        if stack[layer].greens_function.order == 0:
            continue
        lags, values = greens_curves(fitted, layer)
        title = axis.name if layer == 0 else "hidden 0, which has no units"
        if layer == 0 and axis.origin is not None:
            length, unit = duration_unit(float(lags[-1]))
            lags, title = lags / length, unit
        last = layer == len(stack) - 1
        names = fitted.output_names if last else [f"hidden {k}" for k in range(values.shape[1])]
        x = numbers(lags)
        traces = [
            _line(k, name, x, numbers(values[:, k])) for k, name in enumerate(list(names)[:LINES])
        ]
        label = {"title": {"text": f"lag ({escaped(title, 40)})"}}
        chart = figure(f"greens-{layer}", traces, False, xaxis=label, **_legend(traces))
        found.append((layer, chart))
    return found


def calibration_charts(
    names: Sequence[str], scores: Sequence[Scores], all_: Scores
) -> list[Figure]:
    """The histogram of the PIT and the coverage curve."""
    centers = (np.arange(BINS) + 0.5) / BINS
    bars: Trace = {"type": "bar", "x": numbers(centers), "y": numbers(all_.histogram())}
    bars |= {"name": "all outputs", "marker": {"color": PALETTE[0]}, "width": 0.92 / BINS}
    pit = [bars, _guide([0, 1], [1, 1], "calibrated")]
    levels = [0.0, *LEVELS.tolist(), 1.0]
    cover = [_guide([0, 1], [0, 1], "calibrated")]
    several = len(names) > 1
    for k, (name, own) in enumerate(zip(names, scores, strict=True)):
        if not own.count or not several or k >= LINES:
            continue
        edges, steps = (
            np.repeat(np.linspace(0, 1, BINS + 1), 2)[1:-1],
            np.repeat(own.histogram(), 2),
        )
        hidden = {"visible": "legendonly"}
        pit.append(_line(k + 1, name, numbers(edges), numbers(steps)) | hidden)
        cover.append(_line(k + 1, name, levels, _covered(own)))
    whole = _line(0, "all outputs", levels, _covered(all_))
    cover.append(whole | {"line": {"color": PALETTE[0], "width": 3}, "mode": "lines+markers"})
    share = {"range": [0, 1], "tickformat": ".0%"}
    return [
        figure(
            "pit",
            pit,
            xaxis={"title": {"text": "P(Y ≤ y) of the observation y"}, "range": [0, 1]},
            yaxis={"title": {"text": "density"}, "rangemode": "tozero"},
            **_legend(pit),
        ),
        figure(
            "coverage",
            cover,
            xaxis={"title": {"text": "probability of the interval"}, **share},
            yaxis={"title": {"text": "observations inside"}, **share},
            **_legend(cover),
        ),
    ]


def learning_chart(history: Mapping[str, np.ndarray]) -> Figure:
    """The loss by step; its two parts can be switched on in the legend."""
    rows = evenly(np.arange(len(history["step"])), _STEPS)
    steps = numbers(history["step"][rows], digits=None)
    traces = []
    for k, (key, name) in enumerate(_LEARNT.items()):
        if key in history:
            trace = _line(k, name, steps, numbers(history[key][rows]))
            traces.append(trace | ({} if key == "loss" else {"visible": "legendonly"}))
    label = {"title": {"text": "step"}}
    return figure("learning", traces, xaxis=label, **_legend(traces))


def _covered(scores: Scores) -> list[float | None]:
    return numbers(np.array([0.0, *(scores.coverage(float(level)) for level in LEVELS), 1.0]))


def _line(number: int, name: str, x: Any, y: list[float | None]) -> Trace:
    dash = _DASHES[number // len(PALETTE) % len(_DASHES)]
    line = {"color": PALETTE[number % len(PALETTE)], "dash": dash, "width": 1.8}
    return {"x": x, "y": y, "name": escaped(name), "mode": "lines", "line": line}


def _guide(x: list[float], y: list[float], name: str) -> Trace:
    look = {"line": {"color": GREY, "dash": "dash", "width": 1}, "hoverinfo": "skip"}
    return {"x": x, "y": y, "name": name, "mode": "lines"} | look


def _legend(traces: Sequence[Trace]) -> dict[str, Any]:
    """Room below the chart for as many names as there are."""
    rows = -(-len(traces) // 3)
    return {"showlegend": True, "height": 330 + 20 * rows, "hovermode": "closest"}
