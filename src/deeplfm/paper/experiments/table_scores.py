"""The experiment `tables`: the default for several inputs beside what users of tables have.

    ratio of a table = RMSE of ours / RMSE of tuned trees, each the mean over splits

The bar: 90 % intervals cover 0.84 to 0.96 of each table, and the mean of ratios is 1.15 at most.
The start alone is run beside, to tell what the training adds.
"""

from dataclasses import replace

import numpy as np

from deeplfm.models.automatic import recipe_for_table
from deeplfm.paper.datasets.tables import SIZES
from deeplfm.paper.experiments.models import Estimator, make
from deeplfm.paper.experiments.table import Results, Row, Table
from deeplfm.training.automatic import training_for_table

OURS, START, RIVAL = "dlfm-table", "dlfm-table-start", "tuned-trees"
_OTHERS = (START, "ridge", "constant")
MODELS = (OURS, RIVAL, *_OTHERS)
_STILL = 1e-12  # a rate at which one step leaves the start as it is


def table_estimator(model: str, record: str) -> Estimator:
    """A new estimator of a model of this experiment, for one of its tables."""
    if model not in (OURS, START):
        return make(model)
    size = SIZES[record]
    training = training_for_table(size.training_rows)
    if model == START:
        training = replace(training, steps=1, learning_rate=_STILL)
    recipe = recipe_for_table(size.training_rows, size.inputs)
    return make(model, model=recipe, training=training)


def score_tables(results: Results) -> list[Table]:
    """One row per table, and one of the means of the ratios."""
    rows: list[Row] = []
    ratios: dict[str, list[float]] = {}
    for record in SIZES:
        own = {
            model: [r for r in results if (r["dataset"], r["model"]) == (record, model)]
            for model in MODELS
        }
        if not own[OURS] or not own[RIVAL]:
            continue
        rmse = {model: _mean(runs, "rmse") for model, runs in own.items() if runs}
        cells = [f"{_mean(own[OURS], 'coverage_90'):.3f}"]
        for model, error in rmse.items():
            ratios.setdefault(model, []).append(error / rmse[RIVAL])
        cells += [f"{rmse[OURS]:.4g}", f"{rmse[RIVAL]:.4g}"]
        cells += [f"{rmse[m] / rmse[RIVAL]:.3f}" if m in rmse else "" for m in (OURS, *_OTHERS)]
        cells.append(f"{_mean(own[START], 'coverage_90'):.3f}" if own[START] else "")
        cells.append(f"{_mean(own[RIVAL], 'coverage_90'):.3f}")
        cells.append(f"{np.median([run['seconds'] for run in own[OURS]]):.0f}")
        rows.append((record, str(len(own[OURS])), *cells))
    if rows:
        means = [f"{np.mean(ratios[m]):.3f}" if m in ratios else "" for m in (OURS, *_OTHERS)]
        rows.append(("mean", "", "", "", "", *means, "", "", ""))
    headings = ("table", "splits", "90 % covers", "RMSE", "RMSE of trees", "ratio to trees",
                "ratio of the start", "of ridge", "of a constant", "the start covers",
                "trees cover", "seconds")  # fmt: skip
    caption = (
        "Tables of several inputs: the default recipe beside tuned boosted trees, means over "
        "random splits of nine tenths and one tenth."
    )
    return [Table("tables", caption, headings, rows)]


def _mean(runs: Results, name: str) -> float:
    return float(np.mean([run["metrics"]["test"][name][0] for run in runs]))
