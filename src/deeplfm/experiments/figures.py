"""The paper's figures 3 to 5 and the learning curves, from what runs left behind.

Grey points were seen, orange ones score imputation, red ones extrapolation; a purple mean, two
standard deviations around it in grey: the colours of the paper.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from deeplfm.datasets import Observations
from deeplfm.errors import InputError
from deeplfm.experiments.models import MODELS
from deeplfm.experiments.registry import TASKS, Cell, cells
from deeplfm.experiments.run import observations_of, predictions_file, result_file

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_TEST_COLORS = {"imputation": "tab:orange", "extrapolation": "tab:red"}
_SHOWN = {"imputation": slice(None), "extrapolation": slice(-100, None)}  # rows, as in the paper
_CURVES = {"toy": "figure", "physio": "3379471", "uneven": "3379471", "charis": "charis6"}


def figures(out: Path, experiment: str, data: Path | None = None) -> dict[str, "Figure"]:
    """By the name of its file; those whose runs are there and whose data can be found."""
    if experiment not in ("toy", "physio", "uneven", "charis", "uci"):
        return {}
    drawn: dict[str, Figure] = {}
    known = [cell for cell in cells(experiment) if result_file(cell, out).exists()]
    pictured = [cell for cell in known if cell.pictured and predictions_file(cell, out).exists()]
    if experiment == "toy":
        for generator in ("figure", "equations"):
            panels = [cell for cell in pictured if cell.dataset == generator]
            if panels:
                drawn[f"toy_{generator}"] = _toy(panels, out)
    else:
        drawn |= _series(pictured, out, data)
    return drawn | _learning(experiment, known, out)


def _toy(panels: Sequence[Cell], out: Path) -> "Figure":
    """Figure 3: one panel per model, three in a row."""
    from matplotlib.figure import Figure

    rows = -(-len(panels) // 3)
    figure = Figure(figsize=(12, 2.8 * rows), layout="constrained")
    axes = figure.subplots(rows, 3, sharex=True, sharey=True, squeeze=False)
    for one, cell in zip(axes.flat, panels, strict=False):
        _panel(one, observations_of(cell, None), _read(predictions_file(cell, out)), TASKS, 0)
        one.set_title(MODELS[cell.model].label)
    for empty in axes.flat[len(panels) :]:
        empty.remove()
    low, high = np.nanpercentile(observations_of(panels[0], None).values, [0, 100])
    axes.flat[0].set_ylim(low - 1, high + 1)
    return figure


def _series(pictured: Sequence[Cell], out: Path, data: Path | None) -> dict[str, "Figure"]:
    """Figures 4 and 5: one per model and task, an axes per output."""
    from matplotlib.figure import Figure

    drawn = {}
    for cell in pictured:
        try:
            observed = observations_of(cell, data)
        except InputError:  # tables can be built where the data are not
            continue
        (task,) = cell.tasks
        rows = _SHOWN[task]
        wide = task == "imputation"
        count = len(observed.names)
        figure = Figure(figsize=(11 if wide else 6, 1.7 * count), layout="constrained")
        for output, axes in enumerate(figure.subplots(count, 1, sharex=True)):
            found = _read(predictions_file(cell, out))
            _panel(axes, observed, found, cell.tasks, output, rows)
            axes.set_ylabel(observed.names[output])
        figure.suptitle(f"{MODELS[cell.model].label}: {task}, record {cell.dataset}")
        drawn[f"{cell.experiment}_{task}_{cell.model}"] = figure
    return drawn


def _panel(
    axes: "Axes",
    observed: Observations,
    found: Mapping[str, Any],
    tasks: Sequence[str],
    output: int,
    rows: slice = slice(None),
) -> None:
    x = observed.inputs[rows]
    mean, std = (np.asarray(found[name])[rows, output] for name in ("mean", "std"))
    axes.fill_between(x, mean - 2 * std, mean + 2 * std, color="0.85", linewidth=0)
    seen = observed.training(*tasks)[rows, output]
    axes.plot(x, seen, ".", color="0.5", markersize=2.5)
    for task in tasks:
        axes.plot(x, observed.test(task)[rows, output], ".", color=_TEST_COLORS[task], markersize=3)
    axes.plot(x, mean, color="tab:purple", linewidth=1)
    axes.spines[["top", "right"]].set_visible(False)
    axes.margins(x=0.01)


def _learning(experiment: str, known: Sequence[Cell], out: Path) -> dict[str, "Figure"]:
    """The loss over the steps of one run per model and task, from its level at the end."""
    from matplotlib.figure import Figure

    chosen = [
        cell
        for cell in known
        if cell.seed == 0 and cell.dataset == _CURVES.get(experiment, cell.dataset)
    ]
    groups = sorted({(cell.dataset, cell.tasks) for cell in chosen})
    if not groups:
        return {}
    figure = Figure(figsize=(5.5 * len(groups), 3.6), layout="constrained")
    for axes, group in zip(figure.subplots(1, len(groups), squeeze=False)[0], groups, strict=True):
        for cell in chosen:
            curve = _read(result_file(cell, out))["learning_curve"]
            if (cell.dataset, cell.tasks) != group or len(curve.get("loss", ())) < 3:
                continue
            steps, loss = np.asarray(curve["step"], float), np.asarray(curve["loss"], float)
            spread = np.ptp(loss) or 1.0
            axes.plot(
                steps / steps[-1],
                (loss - loss.min()) / spread,
                label=f"{MODELS[cell.model].label}, {steps[-1]:.0f} steps",
                linewidth=1,
            )
        axes.set(title=" ".join([group[0], *group[1]]), xlabel="share of the steps")
        axes.set_ylabel("loss, from its least to its largest")
        axes.set_yscale("symlog", linthresh=1e-2)
        axes.legend(fontsize="x-small", frameon=False)
    return {f"{experiment}_learning": figure}


def _read(file: Path) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return read
