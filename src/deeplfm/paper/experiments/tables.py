"""The paper's tables, from the JSONs of runs: means with standard errors, medians with the worst.

Records and splits are what a mean is over; seeds of one record are averaged first, so that they
do not count as records.
"""

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from deeplfm.paper.experiments.models import MODELS
from deeplfm.paper.experiments.published import CHARIS, UCI
from deeplfm.paper.experiments.registry import CHOSEN_ON, PAPER_ON, SCORED_ON, TABLES, TASKS

Row = tuple[str, ...]
Values = NDArray[np.float64]
Results = list[dict[str, Any]]


@final
@dataclass(frozen=True)
class Table:
    """A table to be written: headings, rows, and what it shows in a sentence."""

    name: str
    caption: str
    headings: Row
    rows: list[Row]


def load_results(out: Path, experiment: str) -> Results:
    """All results of `experiment` under `out`, in the order of their names."""
    found = sorted((out / experiment).glob("*.json"))
    return [json.loads(file.read_text(encoding="utf-8")) for file in found]


def tables(out: Path, experiment: str) -> list[Table]:
    """The tables of an experiment, as far as there are results for them."""
    results = load_results(out, experiment)
    if experiment == "toy":
        made = [_toy(results, generator) for generator in ("figure", "equations")]
    elif experiment == "uci":
        made = [_uci(results, name) for name in TABLES]
    elif experiment in ("physio", "uneven"):
        made = [
            _series(results, experiment, task, records, suffix)
            for records, suffix in ((SCORED_ON, ""), (PAPER_ON, "_paper"), (CHOSEN_ON, "_chosen"))
            for task in TASKS
        ]
    elif experiment == "charis":
        made = [_series(results, experiment, task, ("charis6",), "") for task in TASKS]
    else:
        made = [overview(results, experiment)]
    return [table for table in made if table.rows]


def overview(results: Results, experiment: str) -> Table:
    """One row per model, data set and task: medians over seeds, and the worst seed."""
    groups: dict[tuple[str, str, str], list[dict[str, Any]]] = defaultdict(list)
    for result in results:
        for task, scores in result["metrics"].items():
            groups[result["dataset"], task, result["model"]].append(scores)
    every = [scores for group in groups.values() for scores in group]
    error = "rmse_true" if all("rmse_true" in scores for scores in every) else "nmse"
    share = "coverage_90" if all("coverage_90" in scores for scores in every) else "coverage_95"
    shown = (error, "mnll", share)
    rows = []
    for (dataset, task, model), scores in sorted(groups.items()):
        columns = [np.array([one[name] for one in scores]) for name in shown]
        cells = [" / ".join(f"{v:.3f}" for v in np.median(column, axis=0)) for column in columns]
        cells.append(" / ".join(f"{value:.3f}" for value in columns[0].max(axis=0)))
        rows.append((dataset, task, model, str(len(scores)), *cells))
    headings = ("data", "task", "model", "seeds", *shown, f"worst {shown[0]}")
    return Table(experiment, "Medians over seeds, per output.", headings, rows)


def _series(
    results: Results, experiment: str, task: str, records: Sequence[str], suffix: str
) -> Table:
    """One row per model that was run on all `records`, the best mean NMSE first."""
    rows = []
    for model in MODELS:
        scores = _by_dataset(results, model, task, ("nmse", "mnll"))
        if not set(records) <= set(scores):
            continue
        values = np.array([scores[record] for record in records])  # records, 2, outputs
        cells = [_mean(values[:, k, d]) for d in range(values.shape[2]) for k in range(2)]
        means = values.mean(2)
        rows.append((means[:, 0].mean(), (MODELS[model].label, *cells, *map(_mean, means.T))))
    outputs = [f"{name} {score}" for name in ("ABP", "ECG", "ICP") for score in ("NMSE", "MNLL")]
    lost = ", half of the observations gone" if experiment == "uneven" else ""
    caption = f"{task.capitalize()}{lost}: mean over {_named(records)} (standard error)."
    headings = ("model", *outputs, "mean NMSE", "mean MNLL")
    ordered = [row for _, row in sorted(rows, key=lambda pair: pair[0])]
    if experiment == "charis" and ordered:
        ordered += [(f"{model}, published", *row, "", "") for model, row in CHARIS[task].items()]
    return Table(f"{experiment}_{task}{suffix}", caption, headings, ordered)


def _toy(results: Results, generator: str) -> Table:
    """Medians over seeds with the worst, as the spread between seeds is larger than most."""
    results = [result for result in results if result["dataset"] == generator]
    rows = []
    for model in MODELS:
        own = [result["metrics"] for result in results if result["model"] == model]
        if not own:
            continue
        cells = []
        for task in TASKS:
            errors, densities, shares = (
                np.array([scores[task][name][0] for scores in own])
                for name in ("rmse_true", "mnll", "coverage_95")
            )
            cells += [f"{np.median(errors):.3f} ({errors.max():.3f})"]
            cells += [f"{np.median(densities):.2f} ({densities.max():.2f})"]
            cells += [f"{shares.mean():.2f}"]
        rows.append((MODELS[model].label, str(len(own)), *cells))
    scores = ("RMSE to the truth", "MNLL", "95 % covers")
    columns = [f"{task}: {score}" for task in TASKS for score in scores]
    caption = f"Toy system `{generator}`: median over seeds (worst); coverage: mean."
    return Table(f"toy_{generator}", caption, ("model", "seeds", *columns), rows)


def _uci(results: Results, name: str) -> Table:
    rows: list[Row] = []
    results = [result for result in results if result["dataset"] == name]
    for model in MODELS:
        own = [result for result in results if result["model"] == model]
        if not own:
            continue
        rmse, mnll, share = (
            np.array([result["metrics"]["test"][score][0] for result in own])
            for score in ("rmse", "mnll", "coverage_95")
        )
        published = UCI[name].get(model, ("", ""))
        seconds = f"{np.median([result['seconds'] for result in own]):.0f}"
        row = (_mean(rmse), _mean(mnll), f"{share.mean():.3f}", seconds, *published)
        rows.append((MODELS[model].label, str(len(own)), *row))
    headings = ("model", "splits", "RMSE", "MNLL", "95 % covers", "seconds", *_PUBLISHED)
    caption = f"UCI {name}: mean over splits (standard error), in the units of the data."
    return Table(f"uci_{name}", caption, headings, rows)


_PUBLISHED = ("RMSE, published", "MNLL, published")


def _by_dataset(results: Results, model: str, task: str, names: Sequence[str]) -> dict[str, Values]:
    """Scores [names, D] by data set, the mean over its seeds."""
    found: dict[str, list[list[list[float]]]] = defaultdict(list)
    for result in results:
        if result["model"] == model and task in result["metrics"]:
            found[result["dataset"]].append([result["metrics"][task][name] for name in names])
    return {dataset: np.mean(seeds, axis=0) for dataset, seeds in found.items()}


def _mean(values: Values) -> str:
    """The mean and its standard error, where there are several."""
    if len(values) == 1:
        return f"{values[0]:.3f}"
    return f"{values.mean():.3f} ({values.std(ddof=1) / np.sqrt(len(values)):.3f})"


def _named(records: Sequence[str]) -> str:
    return f"record{'s' * (len(records) > 1)} {', '.join(records)}"
