"""One run: fit a cell, score it, write its JSON. A run whose JSON exists is not repeated."""

import json
import os
import resource
import subprocess
import sys
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.base import clone

from deeplfm.data import Observations, files
from deeplfm.evaluation import metrics
from deeplfm.evaluation.predictive import Predictive
from deeplfm.paper.experiments.models import Estimator
from deeplfm.paper.experiments.registry import Cell
from deeplfm.regressor.devices import checked_device
from deeplfm.regressor.settings import to_json

_CURVE = 50  # points of a learning curve that are kept
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
    observations = observations_of(cell, data)
    estimator = clone(cell.estimator).set_params(seed=cell.seed, device=device, progress=False)
    if device.startswith("cuda"):
        torch.cuda.reset_peak_memory_stats(device)
    started = time.perf_counter()
    estimator.fit(observations.inputs, observations.training(*cell.tasks))
    seconds = time.perf_counter() - started
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
        "versions": _versions(),
        "commit": _commit(),
        "device": _device(device),
        "seconds": seconds,
        "peak_memory": _peak_memory(device),
        "metrics": {
            task: _score(estimator, observations, task, cell.samples) for task in cell.tasks
        },
        "learning_curve": _curve(estimator),
    }
    if cell.pictured:
        shown = estimator.predictive(observations.inputs, num_samples=cell.samples)
        files.save_json(predictions_file(cell, out), _rounded(shown))
    files.save_json(file, result)
    return result


def observations_of(cell: Cell, data: Path | str | None) -> Observations:
    """The observations that a cell is fitted to and scored on."""
    return cell.data_set.load(cell.dataset, cell.seed, data)


def _score(
    estimator: Estimator, observations: Observations, task: str, samples: int
) -> dict[str, Any]:
    """All scores per output, in the units of the data; those of series are standardised."""
    y = observations.test(task)
    rows = np.asarray(~np.isnan(y).all(1))
    y = y[rows]
    p = estimator.predictive(observations.inputs[rows], num_samples=samples)
    scores = {
        "nmse": metrics.nmse(y, p.mean),
        "rmse": metrics.rmse(y, p.mean),
        "mnll": metrics.mnll(y, p),
        "crps": metrics.crps(y, p),
        "coverage_50": metrics.coverage(y, p, 0.5),
        "coverage_90": metrics.coverage(y, p, 0.9),
        "coverage_95": metrics.coverage(y, p, 0.95),
    }
    if rows[-1] and len(y) <= _AHEAD:  # a forecast: how sure it is depends on how far it goes
        lower, upper = p.interval(0.9)
        scores["inside_90"] = ((y > lower) & (y < upper)).astype(int)
    truth = getattr(observations, "truth", None)
    if truth is not None:
        hidden_truth = np.where(observations.tests[task], truth, np.nan)[rows]
        scores["rmse_true"] = metrics.rmse(hidden_truth, p.mean)
    return {name: values.tolist() for name, values in scores.items()}


def _rounded(p: Predictive) -> dict[str, list[Any]]:
    """Mean and standard deviation, to the digits that a figure can show."""
    shown = {"mean": p.mean, "std": p.std}
    return {name: np.round(values, _DIGITS).tolist() for name, values in shown.items()}


def _curve(estimator: Estimator) -> dict[str, list[float]]:
    """The learning curve at evenly spaced steps."""
    history = {k: v for k, v in estimator.history_.items() if np.issubdtype(v.dtype, np.number)}
    count = len(history.get("loss", ()))
    kept = np.unique(np.linspace(0, count - 1, min(count, _CURVE)).astype(int))
    return {name: column[kept].tolist() for name, column in history.items()}


def _versions() -> dict[str, str]:
    """The versions of Python and of the packages that results depend on."""
    versions = {"python": sys.version.split()[0]}
    for name in ("deeplfm", "torch", "numpy", "scipy", "gpytorch"):
        try:
            versions[name] = version(name)
        except PackageNotFoundError:  # run from a source tree
            versions[name] = "unknown"
    return versions


def _commit() -> str:
    """The commit of the source tree; $DEEPLFM_COMMIT where git is not installed."""
    if commit := os.environ.get("DEEPLFM_COMMIT"):
        return commit
    try:
        done = subprocess.run(
            ["git", "rev-parse", "HEAD"],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return done.stdout.strip()


def _device(device: str) -> str:
    """The device in words."""
    if device.startswith("cuda"):
        return torch.cuda.get_device_name(device)
    return f"cpu, {torch.get_num_threads()} threads"


def _peak_memory(device: str) -> int:
    """The most bytes in use: on the accelerator, or by the process so far."""
    if device.startswith("cuda"):
        return int(torch.cuda.max_memory_allocated(device))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak
