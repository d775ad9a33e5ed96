"""The parts of the page about the fit and its predictions, and how to get the model back."""

import platform
import shlex
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch

import deeplfm
from deeplfm.data import Dataset
from deeplfm.report import charts, markup, words
from deeplfm.report.charts import Axis, Figure
from deeplfm.report.markup import Html
from deeplfm.report.names import short
from deeplfm.report.predictions import Shown
from deeplfm.report.words import DASH, duration, percent


@dataclass(frozen=True)
class Part:
    """A section and its charts."""

    identity: str
    title: str
    html: Html
    figures: list[Figure] = field(default_factory=list)


def part(identity: str, title: str, html: list[Html], figures: list[Figure] | None = None) -> Part:
    """A section with these parts."""
    return Part(identity, title, markup.section(identity, title, *html), figures or [])


def fitted(shown: Shown, axis: Axis) -> Part:
    """Recipe, training, data, versions."""
    own, data = shown.fitted, shown.data
    seconds = own.histories[0].get("seconds", np.empty(0))
    device, dtype = own.place
    facts = [
        ("Recipe", type(own.recipe).__name__),
        ("Rows", "not kept" if data is None else f"{len(data):,}"),
        ("Inputs", listed(own.input_names)),
        ("Outputs", listed(own.output_names)),
        ("Steps", f"{own.steps:,} of {own.training.steps:,}. {own.convergence}"),
        ("Training took", duration(float(seconds[-1])) if len(seconds) else DASH),
        ("Seed", str(own.seed)),
        ("Numbers", dtype),
        ("Device", device),
        ("Parameters", f"{own.num_parameters:,}"),
        ("deeplfm", deeplfm.__version__),
        ("torch", torch.__version__),
        ("Python", platform.python_version()),
    ]
    if axis.origin is not None:
        facts.insert(3, ("Time", f"seconds since {axis.origin.isoformat(sep=' ')}"))
    if data is not None and data.known is not None:
        facts.insert(3, ("Known inputs", listed(tuple(map(short, data.known.names)))))
    if data is not None and data.panel is not None:
        labels = tuple(map(short, data.panel.labels))
        facts.insert(2, ("Series", f"{len(labels)}: {listed(labels)}"))
    if own.num_members > 1:
        facts.append(("Mixture", f"of {own.num_members} members"))
    if shown.held_out is not None:
        facts.insert(2, ("Rows held out", f"{len(shown.held_out):,}"))
    html = [markup.listing(facts)]
    if data is None:
        html.append(
            markup.paragraph(
                "The data it was fitted to were not kept with the model: missing values cannot be "
                "counted, and predictions are drawn over the range that the model remembers.",
                "note",
            )
        )
    else:
        html.append(_missing_table(shown))
    for title, config in (("Recipe", own.recipe), ("Training", own.training)):
        rows = words.settings(config)
        caption = f"{title}: {type(config).__name__}"
        inner = markup.table(("setting", "value"), rows, caption, left=2)
        summary = markup.element("summary", markup.text(f"All settings of the {title.lower()}"))
        html.append(markup.element("details", summary, inner))
    return part("fitted", "What was fitted", html)


def listed(names: tuple[str, ...], most: int = 8) -> str:
    """The first of them, and how many more."""
    unnamed = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + unnamed


def _missing_table(shown: Shown) -> Html:
    data = shown.data
    rows = []
    for d, name in enumerate(shown.fitted.output_names):
        seen = 0 if data is None else int(data.observed[:, d].sum())
        total = 0 if data is None else len(data)
        share = percent((total - seen) / total) if total else DASH
        rows.append((name, f"{seen:,}", f"{total - seen:,}", share))
    head = ("output", "observed", "missing", "share missing")
    return markup.table(head, rows, "Values per output")


def predictions(shown: Shown, axis: Axis) -> Part:
    """A chart per output, and the check boxes that switch its parts."""
    figures = charts.output_charts(shown, axis)
    names = shown.fitted.output_names
    html = []
    if shown.grid is None and shown.data is None and shown.held_out is None:
        html.append(
            markup.paragraph(
                "With several inputs predictions are drawn against observations, and the data were "
                "not kept with the model: there is nothing to draw.",
                "note",
            )
        )
        return part("predictions", "Predictions", html)
    html.append(markup.paragraph(_how_to_read(shown)))
    html += [markup.paragraph(note, "note") for note in _thinned(shown)]
    html.append(_switches(shown))
    for figure, name in zip(figures, names, strict=True):
        said = f"Prediction of {name}" + ("" if shown.grid is None else f" along {axis.name}")
        html.append(markup.chart(figure["id"], name, said, "chart output"))
    return part("predictions", "Predictions", html, figures)


def _how_to_read(shown: Shown) -> str:
    if shown.grid is None:
        return (
            "Predicted against observed values, with the intervals that hold 90 % of new "
            "observations. Drag to zoom, double click to go back."
        )
    return (
        "The mean, the intervals that hold 50 % and 90 % of new observations, and five functions "
        "drawn from the model (without noise). Shaded: long gaps without observations, which the "
        "prediction runs through. Drag to zoom all charts, double click to go back."
    )


def _thinned(shown: Shown) -> list[str]:
    notes = []
    if shown.series is not None and shown.data is not None and shown.data.panel is not None:
        notes.append(
            f"The first of {len(shown.data.panel.labels)} series is drawn: {short(shown.series)}. "
            "Scores below are of all series."
        )
    for data, name in zip(shown.drawn, ("observed", "held-out"), strict=True):
        most = 0 if data is None or not len(data) else int(data.observed.sum(0).max())
        if shown.grid is not None and most > charts.POINTS:
            notes.append(
                f"Of up to {most:,} {name} values per output {charts.POINTS:,} are drawn, evenly "
                "chosen."
            )
    for scored, name in ((shown.training_scored, "training"), (shown.held_out_scored, "held-out")):
        if scored is not None and scored.thinned and shown.grid is None:
            notes.append(f"{len(scored.y):,} {name} rows are drawn, evenly chosen.")
    return notes


def _switches(shown: Shown) -> Html:
    kinds = [("observed", "observed", "point")] if shown.data is not None else []
    if shown.held_out is not None:
        kinds.append(("held out", "held out", "diamond"))
    if shown.grid is not None:
        kinds = [
            ("mean", "mean", "line"),
            ("interval", "50 % and 90 % intervals", "band"),
            ("draws", "draws", "thin"),
            *kinds,
        ]
    boxes = [_switch("kind", key, label, look) for key, label, look in kinds]
    parts = [markup.element("legend", markup.text("Show")), *boxes]
    html = markup.element("fieldset", *parts)
    names = shown.fitted.output_names
    if len(names) > 1:
        outputs = [_switch("output", f"output-{d}", name, "") for d, name in enumerate(names)]
        legend = markup.element("legend", markup.text("Outputs"))
        html = Html(html + markup.element("fieldset", legend, *outputs))
    return markup.element("form", html, class_="switches", autocomplete="off")


def _switch(kind: str, key: str, label: str, look: str) -> Html:
    box = Html(
        f'<input type="checkbox" checked data-{kind}="{key}">'  # both are words of ours
    )
    swatch = markup.element("span", class_=f"swatch {look}") if look else Html("")
    return markup.element("label", box, swatch, markup.text(label))


def reload(place: Path, origin: "pd.Timestamp | None", data: Dataset | None = None) -> Part:
    """How to get the model back from the folder it is in; `data` say what predictions need."""
    folder = place.resolve().name or "."
    # Bytes that are no UTF-8 cannot be written on the page.
    folder = folder.encode("utf-8", "replace").decode()
    # A folder that starts with a dash would be read as an option.
    typed = shlex.quote(f"./{folder}" if folder.startswith("-") else folder)
    beside = "" if data is None or data.known is None else ", known=U_new"
    beside += "" if data is None or data.panel is None else ", series=ids"
    python = [
        "import deeplfm as dlfm",
        *([] if origin is None else ["import pandas as pd"]),
        "",
        f"model = dlfm.load({folder!r})",
        *(
            []
            if origin is None
            else [f"X_new = (dates - pd.Timestamp('{origin}')) / pd.Timedelta('1s')"]
        ),
        f"mean, std = model.predict(X_new, return_std=True{beside})",
        f"p = model.predictive(X_new{beside})  # p.interval(0.9), p.samples, p.log_density(y)",
    ]
    shell = [
        f"deeplfm predict {typed} --at grid.csv --out predictions.csv",
        f"deeplfm report {typed}",
    ]
    html = [
        markup.paragraph("From the folder that holds the folder of the model, in Python:"),
        markup.code(python),
        markup.paragraph("On the command line:"),
        markup.code(shell),
    ]
    return part("reload", "How to reload", html)
