"""Tables from the JSONs of an experiment: medians over seeds, and the worst seed beside them."""

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

Row = tuple[str, ...]


def load_results(out: Path, experiment: str) -> list[dict[str, Any]]:
    """All results of `experiment` under `out`, in the order of their names."""
    files = sorted((out / experiment).glob("*.json"))
    return [json.loads(file.read_text(encoding="utf-8")) for file in files]


def table(results: list[dict[str, Any]]) -> tuple[Row, list[Row]]:
    """Headings and rows: one per model, data set and task."""
    groups: dict[tuple[str, str, str], list[dict[str, Any]]] = defaultdict(list)
    for result in results:
        for task, scores in result["metrics"].items():
            groups[result["dataset"], task, result["model"]].append(scores)
    truth = any("rmse_true" in scores for group in groups.values() for scores in group)
    shown = ("rmse_true", "mnll", "coverage_95") if truth else ("nmse", "mnll", "coverage_95")
    pooled = all("coverage_90" in scores for group in groups.values() for scores in group)
    rows = []
    for (dataset, task, model), scores in sorted(groups.items()):
        columns = [np.array([one[name] for one in scores]) for name in shown]
        cells = [" / ".join(f"{v:.3f}" for v in np.median(column, axis=0)) for column in columns]
        cells.append(" / ".join(f"{value:.3f}" for value in columns[0].max(axis=0)))
        if pooled:  # tests of one size in every output and seed: the mean is the pooled share
            cells.append(f"{np.mean([one['coverage_90'] for one in scores]):.3f}")
        rows.append((dataset, task, model, str(len(scores)), *cells))
    last = (f"worst {shown[0]}", "coverage_90, pooled")[: 1 + pooled]
    return ("data", "task", "model", "seeds", *shown, *last), rows


def markdown(headings: Row, rows: list[Row]) -> str:
    """The same as a Markdown table."""
    lines = [headings, tuple("---" for _ in headings), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"
