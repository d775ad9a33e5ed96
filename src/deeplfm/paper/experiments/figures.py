"""The paper's figures 3 to 5 and the learning curves, from the files that runs wrote.

In the colours of the paper, grey points were seen, orange ones score imputation and red ones
extrapolation; the mean is purple, with two standard deviations around it in grey.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from deeplfm.data import Observations
from deeplfm.errors import InputError
from deeplfm.paper.datasets.registry import registered_data_sets
from deeplfm.paper.experiments.models import models
from deeplfm.paper.experiments.registry import Cell, cells
from deeplfm.paper.experiments.run import observations_of, predictions_file, result_file

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_TEST_COLORS = {"imputation": "tab:orange", "extrapolation": "tab:red"}
_SHOWN = {"imputation": slice(None), "extrapolation": slice(-100, None)}  # rows, as in the paper
_LEAST_STEPS = 10  # steps that a learning curve needs to be shown
# The record whose learning curves are shown; None: every one.
_CURVES = {
    "toy": "figure",
    "physio": "3379471",
    "uneven": "3379471",
    "charis": "charis6",
    "uci": None,
}


def figures(out: Path, experiment: str, data: Path | None = None) -> dict[str, "Figure"]:
    """The figures of an experiment by the names of their files.

    Runs that are not done are left out, and so are figures whose data files are missing.
    """
    if experiment not in _CURVES:
        return {}
    drawn: dict[str, Figure] = {}
    done = [cell for cell in cells(experiment) if result_file(cell, out).exists()]
    pictured = [cell for cell in done if cell.pictured and predictions_file(cell, out).exists()]
    if experiment == "toy":
        for generator in registered_data_sets()["toy"].records:
            panels = [cell for cell in pictured if cell.dataset == generator]
            if panels:
                drawn[f"toy_{generator}"] = _toy(panels, out)
    else:
        drawn |= _series(pictured, out, data)
    return drawn | _learning(experiment, done, out)


def _toy(panels: Sequence[Cell], out: Path) -> "Figure":
    """Figure 3: one panel per model, three in a row."""
    from matplotlib.figure import Figure

    rows = -(-len(panels) // 3)
    figure = Figure(figsize=(12, 2.8 * rows), layout="constrained")
    axes = figure.subplots(rows, 3, sharex=True, sharey=True, squeeze=False)
    for panel, cell in zip(axes.flat, panels, strict=False):
        prediction = _read(predictions_file(cell, out))
        _panel(panel, observations_of(cell, None), prediction, cell.tasks, 0)
        panel.set_title(models()[cell.model].label)
    for empty in axes.flat[len(panels) :]:
        empty.remove()
    low, high = np.nanpercentile(observations_of(panels[0], None).values, [0, 100])
    axes.flat[0].set_ylim(low - 1, high + 1)
    return figure


def _series(pictured: Sequence[Cell], out: Path, data: Path | None) -> dict[str, "Figure"]:
    """Figures 4 and 5: one figure per model and task, with one panel per output."""
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
            prediction = _read(predictions_file(cell, out))
            _panel(axes, observed, prediction, cell.tasks, output, rows)
            axes.set_ylabel(observed.names[output])
        figure.suptitle(f"{models()[cell.model].label}: {task}, record {cell.dataset}")
        drawn[f"{cell.experiment}_{task}_{cell.model}"] = figure
    return drawn


def _panel(
    axes: "Axes",
    observed: Observations,
    prediction: Mapping[str, Any],
    tasks: Sequence[str],
    output: int,
    rows: slice = slice(None),
) -> None:
    """One output over time: what was seen, what is scored, and the prediction."""
    x = observed.inputs[rows]
    mean, std = (np.asarray(prediction[name])[rows, output] for name in ("mean", "std"))
    axes.fill_between(x, mean - 2 * std, mean + 2 * std, color="0.85", linewidth=0)
    seen = observed.training(*tasks)[rows, output]
    axes.plot(x, seen, ".", color="0.5", markersize=2.5)
    for task in tasks:
        axes.plot(x, observed.test(task)[rows, output], ".", color=_TEST_COLORS[task], markersize=3)
    axes.plot(x, mean, color="tab:purple", linewidth=1)
    axes.spines[["top", "right"]].set_visible(False)
    axes.margins(x=0.01)


def _learning(experiment: str, done: Sequence[Cell], out: Path) -> dict[str, "Figure"]:
    """The loss over the steps, a panel per model; the fall of the first tenth is not shown."""
    from matplotlib.figure import Figure

    curves = [
        (f"{models()[cell.model].label}, {cell.dataset}", _curve(cell, out))
        for cell in done
        if cell.seed == 0
        and _CURVES[experiment] in (None, cell.dataset)
        and cell.tasks[0] in ("imputation", "test")
    ]
    curves = [(label, curve) for label, curve in curves if curve.shape[1] >= _LEAST_STEPS]
    if not curves:
        return {}
    rows = -(-len(curves) // 4)
    figure = Figure(figsize=(12, 2.1 * rows), layout="constrained")
    panels = figure.subplots(rows, 4, squeeze=False)
    for axes, (label, (steps, loss)) in zip(panels.flat, curves, strict=False):
        axes.plot(steps, loss, linewidth=1)
        late = loss[len(loss) // 10 :]
        margin = 0.1 * (np.ptp(late) or 1.0)
        axes.set_ylim(late.min() - margin, late.max() + margin)
        axes.set_title(label, fontsize="small")
        axes.tick_params(labelsize="x-small")
    for empty in panels.flat[len(curves) :]:
        empty.remove()
    return {f"{experiment}_learning": figure}


def _curve(cell: Cell, out: Path) -> NDArray[np.float64]:
    """The steps and the losses of a run, [2, T]."""
    history = _read(result_file(cell, out))["learning_curve"]
    return np.array([history.get("step", ()), history.get("loss", ())], dtype=float)


def _read(file: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return content
