"""One run: fit a cell, score it, write its JSON. A run whose JSON exists is not repeated."""

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.base import clone

from deeplfm.data import Observations, files
from deeplfm.evaluation import metrics
from deeplfm.evaluation.predictive import Predictive
from deeplfm.paper.experiments import provenance
from deeplfm.paper.experiments.models import Estimator
from deeplfm.paper.experiments.registry import Cell
from deeplfm.paper.experiments.subjects import fit, predictive
from deeplfm.regressor.devices import checked_device
from deeplfm.regressor.estimator import DeepLFMRegressor
from deeplfm.regressor.settings import to_json

_AHEAD = 100  # rows of a forecast, of which each is said to be inside of its interval or not
_DIGITS = 4  # digits that are kept of a prediction for a figure
_OF_THE_RUN = ("seed", "device", "progress")  # parameters that are no settings of the model


def result_file(cell: Cell, out: Path) -> Path:
    """The path of the JSON of a cell."""
    return out / cell.experiment / f"{cell.name}.json"


def predictions_file(cell: Cell, out: Path) -> Path:
    """The path of the predictions that a figure shows of a cell."""
    return out / cell.experiment / "predictions" / f"{cell.name}.json"


def run(
    cell: Cell, out: Path, *, device: str = "cpu", data: Path | str | None = None
) -> dict[str, Any]:
    """Fit and score `cell`, and write the result to `out`/<experiment>/<name>.json.

    data: the folder of data files.
    """
    file = result_file(cell, out)
    if file.exists():
        kept: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        return kept
    device = checked_device(device)
    estimator = clone(cell.estimator).set_params(seed=cell.seed, device=device, progress=False)
    if device.startswith("cuda"):
        torch.cuda.reset_peak_memory_stats(device)
    seconds, scores = _fit_and_score(cell, estimator, data)
    settings = cell.estimator.get_params(deep=False)
    result = {
        "experiment": cell.experiment,
        "model": cell.model,
        "dataset": cell.dataset,
        "seed": cell.seed,
        "config": {
            "estimator": type(cell.estimator).__name__,
            **{name: to_json(v) for name, v in settings.items() if name not in _OF_THE_RUN},
        },
        "versions": provenance.versions(),
        "commit": provenance.commit(),
        "device": provenance.device_in_words(device),
        "seconds": seconds,
        "peak_memory": provenance.peak_memory(device),
        "metrics": scores,
        "learning_curve": provenance.curve(estimator),
    }
    if isinstance(estimator, DeepLFMRegressor) and estimator.check:
        result["warnings"] = list(estimator.check_.warnings)
    if cell.pictured:
        inputs = observations_of(cell, data).inputs
        shown = estimator.predictive(inputs, num_samples=cell.samples)
        files.save_json(predictions_file(cell, out), _rounded(shown))
    files.save_json(file, result)
    return result


def observations_of(cell: Cell, data: Path | str | None) -> Observations:
    """The observations that a cell is fitted to and scored on."""
    return cell.data_set.load(cell.dataset, cell.seed, data)


def _fit_and_score(
    cell: Cell, estimator: Estimator, data: Path | str | None
) -> tuple[float, dict[str, Any]]:
    """Seconds of the fit, and the scores: those of tests, or those that the study of a cell has."""
    if cell.study is not None:
        simulated = cell.study.load(cell.dataset, cell.seed)
        started = time.perf_counter()
        cell.study.fit(estimator, simulated)
        seconds = time.perf_counter() - started
        return seconds, cell.study.score(estimator, simulated)
    observations = observations_of(cell, data)
    started = time.perf_counter()
    fit(estimator, observations.inputs, observations.training(*cell.tasks), cell.panel)
    seconds = time.perf_counter() - started
    return seconds, {task: _score(estimator, observations, task, cell) for task in cell.tasks}


def _score(
    estimator: Estimator, observations: Observations, task: str, cell: Cell
) -> dict[str, Any]:
    """All scores per output that the task hides, in the units of the data.

    Those of the paper's series are standardised.
    """
    y = observations.test(task)
    rows, outputs = (np.asarray(~np.isnan(y).all(axis)) for axis in (1, 0))
    y = y[rows][:, outputs]
    subjects = len(outputs) if cell.panel else None
    p = predictive(estimator, observations.inputs[rows], cell.samples, subjects)
    p = p if outputs.all() else p.select(outputs=outputs)
    scores = {
        "nmse": metrics.nmse(y, p.mean),
        "rmse": metrics.rmse(y, p.mean),
        "mnll": metrics.mnll(y, p),
        "crps": metrics.crps(y, p),
        "coverage_50": metrics.coverage(y, p, 0.5),
        "coverage_90": metrics.coverage(y, p, 0.9),
        "coverage_95": metrics.coverage(y, p, 0.95),
        "points": (~np.isnan(y)).sum(0),
        "training_std": np.nanstd(observations.training(task), axis=0)[outputs],
    }
    if rows[-1] and len(y) <= _AHEAD:  # a forecast: how sure it is depends on how far it goes
        lower, upper = p.interval(0.9)
        scores["inside_90"] = ((y > lower) & (y < upper)).astype(int)
    truth = getattr(observations, "truth", None)
    if truth is not None:
        hidden_truth = np.where(observations.tests[task], truth, np.nan)[rows][:, outputs]
        scores["rmse_true"] = metrics.rmse(hidden_truth, p.mean)
    return {name: values.tolist() for name, values in scores.items()}


def _rounded(p: Predictive) -> dict[str, list[Any]]:
    """Mean and standard deviation, to the digits that a figure can show."""
    shown = {"mean": p.mean, "std": p.std}
    return {name: np.round(values, _DIGITS).tolist() for name, values in shown.items()}
