"""The runs and the table of the experiment `longer`: does more training make densities worse?

Defaults with one, three and ten times their steps, on ICU records that settings may be chosen on
and on one gap and one forecast of every series of `general`, the middle ones.
"""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from deeplfm.paper.datasets.choosing import CHOOSING
from deeplfm.paper.datasets.general import RECORDS, SOURCES, TASK, parts_of
from deeplfm.paper.datasets.registry import SERIES_TASKS
from deeplfm.paper.experiments.table import Results, Row, Table

FACTORS = (1, 3, 10)
MODELS = ("dlfm-markov", "dlfm-rff", "dlfm-vip")
_WORSE = 0.03  # nats of a held-out value


class Longer(NamedTuple):
    """A fit with `factor` times the steps: on a record of a data set, scored on a task."""

    model: str
    factor: int
    source: str
    record: str
    task: str
    panel: bool = False

    @property
    def name(self) -> str:
        """The model and its steps, as results name them."""
        return f"{self.model}-{self.factor}x"


def longer_fits() -> Iterator[Longer]:
    """Every fit of the experiment."""
    for model in MODELS:
        for factor in FACTORS:
            for task in SERIES_TASKS:
                for record in CHOOSING:
                    yield Longer(model, factor, "choosing", record, task)
            for record in middle_records():
                panel = SOURCES[parts_of(record)[0]].panel
                if not panel or model == MODELS[0]:
                    yield Longer(model, factor, "general", record, TASK, panel)


def middle_records() -> list[str]:
    """Of each series of `general` the gap and the forecast in the middle of its list."""
    by_cell: dict[tuple[str, str], list[str]] = defaultdict(list)
    for record in RECORDS:
        name, kind, _ = parts_of(record)
        by_cell[name, kind].append(record)
    return [records[len(records) // 2] for records in by_cell.values()]


def longer_table(results: Results) -> Table:
    """One row per model and kind of data: MNLL with the default steps, and how more change it."""
    densities: dict[tuple[str, str], dict[tuple[str, int], float]] = defaultdict(dict)
    for result in results:
        model, _, factor = result["model"].rpartition("-")
        for task, scores in result["metrics"].items():
            density = float(np.mean(scores["mnll"]))
            densities[model, _kind(result, task)][result["dataset"], int(factor[:-1])] = density
    rows: list[Row] = []
    for (model, kind), found in densities.items():
        first = {name: value for (name, factor), value in found.items() if factor == FACTORS[0]}
        row = [model, kind, str(len(first)), f"{np.mean(list(first.values())):.3f}"]
        for factor in FACTORS[1:]:
            change = np.array([found.get((name, factor), np.nan) - first[name] for name in first])
            if np.isnan(change).any():  # not all were run
                row += ["", "", ""]
                continue
            row += [f"{change.mean():+.3f}", f"{np.median(change):+.3f}"]
            row += [str(int((change > _WORSE).sum()))]
        rows.append(tuple(row))
    headings: Row = ("model", "data", "records", "MNLL")
    for factor in FACTORS[1:]:
        headings += (f"change, {factor} × steps", "median", f"worse by more than {_WORSE}")
    caption = "Held-out MNLL with the default steps, and its change with more of them."
    return Table("longer", caption, headings, rows)


def _kind(result: dict[str, Any], task: str) -> str:
    return "general" if task == TASK else f"ICU, {task}"
