"""The parts of the page about what was learnt: physics, forces, calibration, learning curve."""

from collections.abc import Mapping

import numpy as np

from deeplfm.regressor.estimator import DeepLFMRegressor
from deeplfm.regressor.fitted import FittedModel
from deeplfm.regressor.learnt import Response, responses
from deeplfm.regressor.markov import FittedMarkov
from deeplfm.report import charts, diagnostics, markup, modes, words
from deeplfm.report.charts import Axis, Figure
from deeplfm.report.markup import Html
from deeplfm.report.names import short
from deeplfm.report.predictions import Scored, Shown
from deeplfm.report.scores import PAIRED, Scores, pooled, score
from deeplfm.report.sections import Part, listed, part
from deeplfm.report.words import DASH, duration, number, percent

_ROWS, _SENTENCES = 200, 20  # of the physics; a page is not a data base


def physics(shown: Shown, axis: Axis) -> Part:
    """Time constants, periods, noise, Green's functions and forces."""
    own = shown.fitted
    names: dict[str, str] = {}
    if isinstance(own, FittedMarkov):
        believed = modes.modes_of(own)
        html = modes.learnt(own, believed, _time(axis), dated=axis.origin is not None)
        names = modes.mode_names(own, believed, _time(axis))
    else:
        found = responses(own)
        html = [*_sentences(shown, axis, found), _responses_table(axis, found)]
        if shown.noise:
            html.append(_noise_table(shown))
    greens: list[tuple[int, Figure]] = []
    if isinstance(own, FittedModel):
        greens = diagnostics.greens_charts(own, axis)
        html += _greens(greens, len(own.members[0].stack))
    forces, drawn = _forces(shown, axis, names)
    figures = [*(figure for _, figure in greens), *drawn]
    return part("physics", "The learnt physics", [*html, *forces], figures)


def _greens(greens: list[tuple[int, Figure]], depth: int) -> list[Html]:
    html = [markup.element("h3", markup.text("Green's functions: the answer to an impulse"))]
    places = [
        markup.chart(figure["id"], f"Layer {layer}", f"Green's functions of layer {layer}")
        for layer, figure in greens
    ]
    html.append(markup.element("div", *places, class_="pair"))
    if len(greens) < depth:
        said = "Layers without a chart have no dynamics: they answer at once."
        html.append(markup.paragraph(said, "note"))
    return html


def _time(axis: Axis) -> words.Amount:
    """How a distance along the input is written."""
    return number if axis.origin is None else duration


def _amount(axis: Axis, response: Response) -> words.Amount:
    """How a distance along the input of `response` is written."""
    return _time(axis) if response.in_units else number


def _sentences(shown: Shown, axis: Axis, found: tuple[Response, ...]) -> list[Html]:
    told = [one for one in found if one.in_units]
    own, notes = shown.fitted, []
    if own.num_members > 1:
        notes.append(f"The first of the {own.num_members} members of the mixture is described.")
    if len(told) > _SENTENCES:
        notes.append(f"{len(told) - _SENTENCES} more are in the table.")
    if len(found) > len(told):
        notes.append(
            "Layers above the first are also driven along hidden functions. Those have no units: "
            "numbers along them are multiples of their spread."
        )
    if axis.origin is None:
        notes.append(f"Distances along {listed(own.input_names)} are in their own units.")
    lines = [words.sentence(one, _amount(axis, one)) for one in told[:_SENTENCES]]
    return [markup.bullets(lines), *([markup.paragraph(" ".join(notes), "note")] if notes else [])]


def _responses_table(axis: Axis, found: tuple[Response, ...]) -> Html:
    rows = []
    for one in found[:_ROWS]:
        say = _amount(axis, one)
        period = DASH if np.isinf(one.period) else say(one.period)
        constant = say(one.time_constant) if one.poles else "0"
        ratio = number(one.damping_ratio) if one.poles else DASH
        cells = (constant, period, ratio, say(one.lengthscale))
        rows.append((str(one.layer), one.function, one.input, *cells))
    cut = f" (the first {_ROWS} of {len(found)})" if len(found) > _ROWS else ""
    words_ = ("layer", "function", "input")
    head = (*words_, "time constant", "period", "damping ratio", "force lengthscale")
    return markup.table(head, rows, f"Responses of every layer{cut}", left=3)


def _noise_table(shown: Shown) -> Html:
    rows = [
        (name, *(number(float(values[k])) for values in shown.noise.values()))
        for k, name in enumerate(shown.fitted.output_names)
    ]
    return markup.table(("output", *shown.noise), rows, "Noise, in the units of each output")


def _forces(shown: Shown, axis: Axis, names: Mapping[str, str]) -> tuple[list[Html], list[Figure]]:
    """`names` are what the page calls forces, where the model has other words."""
    forces, own = shown.forces, shown.fitted
    several = len(own.input_names) > 1
    title, none = "Latent forces of layer 0", "No latent force drives this layer."
    units = "Forces have no units."
    if isinstance(own, FittedMarkov):
        if own.model.smooth is not None:
            title, units = "The smooth part of every output, in its units", ""
        elif own.model.driven is None:
            title = "What each mode adds to the outputs, in their units"
            none, units = "There is no mode to draw.", ""
        else:
            title = "Latent forces"
            units = "Forces are in units in which the gain of the first output is 1."
    html = [markup.element("h3", markup.text(title))]
    if forces is None:
        return [*html, markup.paragraph(none)], []
    figures = charts.force_charts(forces, axis, synced=not several)
    said = f"Mean, 50 % and 90 % intervals and five draws. {units}".strip()
    if several:
        said += f" Along {axis.name}, with the other inputs at their medians."
    if shown.series is not None:
        said += f" Of the series {short(shown.series)}."
    if forces.total > len(forces.names):
        said += f" {len(forces.names)} of {forces.total} are drawn."
    html.append(markup.paragraph(said))
    for figure, name in zip(figures, forces.names, strict=True):
        said = f"Latent force: {name}, along {axis.name}"
        html.append(markup.chart(figure["id"], names.get(name, name), said))
    return html, figures


def calibration(shown: Shown) -> Part:
    """PIT, coverage, scores; on what was held out if anything was."""
    title, identity = "Calibration and scores", "calibration"
    sets: list[tuple[str, Scored, list[Scores]]] = []
    for scored, name in ((shown.held_out_scored, "held-out"), (shown.training_scored, "training")):
        if scored is not None:
            sets.append((name, scored, score(scored.y, scored.predictive)))
    if not sets:
        missing = "Nothing to score: the data were not kept with the model, and none were held out."
        return part(identity, title, [markup.paragraph(missing, "note")])
    name, scored, scores = sets[0]
    said = {
        "held-out": "On held-out data, which the model was not fitted to.",
        "training": "On the training data: a model that fits them too closely looks good here too.",
    }[name]
    said += (
        " If the intervals are honest the histogram is flat and the coverage lies on the diagonal."
    )
    if shown.counts:
        said += (
            " P(Y ≤ y) of a count is a random point of its step at y: calibrated predictions are "
            "flat then too."
        )
    html = [markup.paragraph(said)]
    for label, one, _ in sets:
        if one.thinned:
            note = f"Scored on {len(one.y):,} {label} rows, evenly chosen."
            html.append(markup.paragraph(note, "note"))
    names = shown.fitted.output_names
    figures = diagnostics.calibration_charts(names, scores, pooled(scores))
    places = [
        markup.chart("pit", "PIT histogram", f"Histogram of the PIT on {name} data"),
        markup.chart("coverage", "Coverage", f"Coverage of central intervals on {name} data"),
    ]
    html.append(markup.element("div", *places, class_="pair"))
    html.append(_scores_table(names, sets))
    drawn = "" if shown.closed_crps else ", estimated from draws"
    html.append(
        markup.paragraph(
            "NMSE: squared error over the variance of the observations, a dash where they are "
            "constant. RMSE and CRPS are in the units of the output. MNLL: mean negative log "
            f"density. CRPS: of at most {PAIRED} evenly chosen values per output{drawn}.",
            "note",
        )
    )
    return part(identity, title, html, figures)


def _scores_table(names: tuple[str, ...], sets: list[tuple[str, Scored, list[Scores]]]) -> Html:
    rows = []
    for label, _, own in sets:
        every = [*zip(names, own, strict=True)]
        if len(names) > 1:
            every.append(("all outputs (mean)", pooled(own)))
        for output, s in every:
            values = (number(v) for v in (s.nmse, s.rmse, s.mnll, s.crps))
            rows.append((output, label, f"{s.count:,}", *values, percent(s.coverage(0.9))))
    head = ("output", "data", "values", "NMSE", "RMSE", "MNLL", "CRPS", "90 % coverage")
    caption = "Scores: lower is better; coverage is best at 90 %"
    return markup.table(head, rows, caption, left=2)


def learning(model: DeepLFMRegressor) -> Part:
    """The loss by step."""
    history = model.history_
    title, identity = "Learning curve", "learning-curve"
    if not len(history.get("step", ())):
        return part(identity, title, [markup.paragraph("No steps were recorded.", "note")])
    figure = diagnostics.learning_chart(history)
    html = [
        markup.paragraph(
            "The loss that training lowers. Its two parts are in the legend. "
            f"{model.fitted_.convergence}"
        ),
        markup.chart(figure["id"], "Loss by step", "Loss by training step"),
    ]
    return part(identity, title, html, [figure])
