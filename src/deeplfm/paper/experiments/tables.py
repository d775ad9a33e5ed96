"""The paper's tables, from the JSONs of runs: means with standard errors, medians with the worst.

A mean is over records or splits; the seeds of one record are averaged first, so that they do not
count as records.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deeplfm.paper.datasets.registry import SERIES_TASKS, registered_data_sets
from deeplfm.paper.experiments.comparisons import general_tables
from deeplfm.paper.experiments.longer import longer_table
from deeplfm.paper.experiments.models import models
from deeplfm.paper.experiments.published import CHARIS, UCI
from deeplfm.paper.experiments.registry import CHOSEN_ON, PAPER_ON, SCORED_ON
from deeplfm.paper.experiments.studies import STUDIES
from deeplfm.paper.experiments.table import Results, Row, Table
from deeplfm.paper.experiments.table_scores import score_tables

Values = NDArray[np.float64]


def load_results(out: Path, experiment: str) -> Results:
    """All results of `experiment` under `out`, in the order of their names."""
    paths = sorted((out / experiment).glob("*.json"))
    return [json.loads(path.read_text(encoding="utf-8")) for path in paths]


def tables(out: Path, experiment: str) -> list[Table]:
    """The tables of an experiment, as far as there are results for them."""
    results = load_results(out, experiment)
    if experiment in _OF_THE_PAPER:
        made = _OF_THE_PAPER[experiment](results)
    elif experiment in STUDIES:
        made = STUDIES[experiment].tables(results)
    else:
        made = [overview(results, experiment)]
    return [table for table in made if table.rows]


def overview(results: Results, experiment: str) -> Table:
    """One row per model, data set and task: medians over seeds, and the worst seed."""
    groups: dict[tuple[str, str, str], list[dict[str, Any]]] = defaultdict(list)
    for result in results:
        for task, scores in result["metrics"].items():
            groups[result["dataset"], task, result["model"]].append(scores)
    all_scores = [scores for group in groups.values() for scores in group]
    error = "rmse_true" if all("rmse_true" in scores for scores in all_scores) else "nmse"
    covered = "coverage_90" if all("coverage_90" in s for s in all_scores) else "coverage_95"
    shown = (error, "mnll", covered)
    rows = []
    for (dataset, task, model), seeds in sorted(groups.items()):
        columns = [np.array([scores[name] for scores in seeds]) for name in shown]
        cells = [" / ".join(f"{v:.3f}" for v in np.median(column, axis=0)) for column in columns]
        cells.append(" / ".join(f"{value:.3f}" for value in columns[0].max(axis=0)))
        rows.append((dataset, task, model, str(len(seeds)), *cells))
    headings = ("data", "task", "model", "seeds", *shown, f"worst {shown[0]}")
    return Table(experiment, "Medians over seeds, per output.", headings, rows)


def _series(
    results: Results, experiment: str, task: str, records: Sequence[str], suffix: str
) -> Table:
    """One row per model that was run on all `records`, the best mean NMSE first."""
    rows = []
    for model, entry in models().items():
        scores = _by_dataset(results, model, task, ("nmse", "mnll"))
        if not set(records) <= set(scores):
            continue
        values = np.array([scores[record] for record in records])  # records, 2, outputs
        cells = [_mean(values[:, k, d]) for d in range(values.shape[2]) for k in range(2)]
        means = values.mean(2)
        rows.append((means[:, 0].mean(), (entry.label, *cells, *map(_mean, means.T))))
    outputs = [f"{name} {score}" for name in ("ABP", "ECG", "ICP") for score in ("NMSE", "MNLL")]
    lost = ", half of the observations gone" if experiment == "uneven" else ""
    caption = f"{task.capitalize()}{lost}: mean over {_named(records)} (standard error)."
    headings = ("model", *outputs, "mean NMSE", "mean MNLL")
    ordered = [row for _, row in sorted(rows, key=lambda pair: pair[0])]
    if experiment == "charis" and ordered:
        ordered += [(f"{model}, published", *row, "", "") for model, row in CHARIS[task].items()]
    return Table(f"{experiment}_{task}{suffix}", caption, headings, ordered)


def _toy(results: Results, generator: str) -> Table:
    """Medians over seeds with the worst: seeds differ more than most models do."""
    results = [result for result in results if result["dataset"] == generator]
    rows = []
    for model, entry in models().items():
        seeds = [result["metrics"] for result in results if result["model"] == model]
        if not seeds:
            continue
        cells = []
        for task in SERIES_TASKS:
            if not all(task in metrics for metrics in seeds):  # a model that cannot do the task
                cells += ["", "", ""]
                continue
            errors, densities, covered = (
                np.array([metrics[task][name][0] for metrics in seeds])
                for name in ("rmse_true", "mnll", "coverage_95")
            )
            cells += [f"{np.median(errors):.3f} ({errors.max():.3f})"]
            cells += [f"{np.median(densities):.2f} ({densities.max():.2f})"]
            cells += [f"{covered.mean():.2f}"]
        rows.append((entry.label, str(len(seeds)), *cells))
    scores = ("RMSE to the truth", "MNLL", "95 % covers")
    columns = [f"{task}: {score}" for task in SERIES_TASKS for score in scores]
    caption = f"Toy system `{generator}`: median over seeds (worst); coverage: mean."
    return Table(f"toy_{generator}", caption, ("model", "seeds", *columns), rows)


def _uci(results: Results, name: str) -> Table:
    """One row per model: means over the splits, beside the published ones."""
    rows: list[Row] = []
    results = [result for result in results if result["dataset"] == name]
    for model, entry in models().items():
        splits = [result for result in results if result["model"] == model]
        if not splits:
            continue
        rmse, mnll, covered = (
            np.array([result["metrics"]["test"][score][0] for result in splits])
            for score in ("rmse", "mnll", "coverage_95")
        )
        published = UCI[name].get(model, ("", ""))
        seconds = f"{np.median([result['seconds'] for result in splits]):.0f}"
        row = (_mean(rmse), _mean(mnll), f"{covered.mean():.3f}", seconds, *published)
        rows.append((entry.label, str(len(splits)), *row))
    headings = ("model", "splits", "RMSE", "MNLL", "95 % covers", "seconds", *_PUBLISHED)
    caption = f"UCI {name}: mean over splits (standard error), in the units of the data."
    return Table(f"uci_{name}", caption, headings, rows)


def _patients(results: Results, experiment: str) -> list[Table]:
    """Tables 1 and 2: on the records that count, on two for the paper's settings, on the others."""
    groups = ((SCORED_ON, ""), (PAPER_ON, "_paper"), (CHOSEN_ON, "_chosen"))
    return [
        _series(results, experiment, task, records, suffix)
        for records, suffix in groups
        for task in SERIES_TASKS
    ]


_PUBLISHED = ("RMSE, published", "MNLL, published")
_OF_THE_PAPER: dict[str, Callable[[Results], list[Table]]] = {
    "toy": lambda results: [_toy(results, name) for name in registered_data_sets()["toy"].records],
    "uci": lambda results: [_uci(results, name) for name in registered_data_sets()["uci"].records],
    "physio": lambda results: _patients(results, "physio"),
    "uneven": lambda results: _patients(results, "uneven"),
    "general": general_tables,
    "longer": lambda results: [longer_table(results)],
    "tables": score_tables,
    "charis": lambda results: [
        _series(results, "charis", task, ("charis6",), "") for task in SERIES_TASKS
    ],
}


def _by_dataset(results: Results, model: str, task: str, names: Sequence[str]) -> dict[str, Values]:
    """Scores [names, D] by data set, each the mean over its seeds."""
    by_dataset: dict[str, list[list[list[float]]]] = defaultdict(list)
    for result in results:
        if result["model"] == model and task in result["metrics"]:
            scores = result["metrics"][task]
            by_dataset[result["dataset"]].append([scores[name] for name in names])
    return {dataset: np.mean(seeds, axis=0) for dataset, seeds in by_dataset.items()}


def _mean(values: Values) -> str:
    """The mean, and in brackets its standard error where there are several values."""
    if len(values) == 1:
        return f"{values[0]:.3f}"
    return f"{values.mean():.3f} ({values.std(ddof=1) / np.sqrt(len(values)):.3f})"


def _named(records: Sequence[str]) -> str:
    """The records in words, for a caption."""
    return f"record{'s' * (len(records) > 1)} {', '.join(records)}"
