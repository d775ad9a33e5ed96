"""One run: fit a cell, score it, write its JSON. A run whose JSON is there is not repeated."""

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

from deeplfm.data import Observations, cardiac, files
from deeplfm.evaluation import metrics
from deeplfm.evaluation.predictive import Predictive
from deeplfm.paper.datasets import charis, physio, toy, uci, uneven
from deeplfm.paper.experiments.models import Estimator
from deeplfm.paper.experiments.registry import CHOSEN_ON, SCORED_ON, TABLES, Cell
from deeplfm.regressor.devices import checked_device
from deeplfm.regressor.settings import to_json

_CURVE = 50  # points kept of a learning curve
_DIGITS = 4  # kept of a prediction that a figure shows
_OF_THE_RUN = ("seed", "device", "progress")  # parameters that are no settings of the model


def result_file(cell: Cell, out: Path) -> Path:
    """Where its JSON is."""
    return out / cell.experiment / f"{cell.name}.json"


def predictions_file(cell: Cell, out: Path) -> Path:
    """Where the predictions of a cell for a figure are."""
    return out / cell.experiment / "predictions" / f"{cell.name}.json"


def run(
    cell: Cell, out: Path, *, device: str = "cpu", data: Path | str | None = None
) -> dict[str, Any]:
    """Fit and score `cell`; the result, as it is written to `out`/<experiment>/<name>.json."""
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
    """What a cell is fitted to and scored on."""
    if cell.dataset in ("figure", "equations"):
        return toy(cell.dataset, seed=cell.seed)  # type: ignore[arg-type]
    if cell.dataset == "cardiac":
        return cardiac(seed=cell.seed)
    if cell.dataset in TABLES:
        return uci(cell.dataset, cell.seed, data)  # type: ignore[arg-type]
    if cell.experiment == "charis":
        return charis(cell.dataset, path=data)
    series = physio(cell.dataset, data)
    if cell.experiment == "uneven":  # every model loses the same observations of a record
        return uneven(series, seed=(*CHOSEN_ON, *SCORED_ON).index(cell.dataset))
    return series


def _score(
    estimator: Estimator, observations: Observations, task: str, samples: int
) -> dict[str, Any]:
    """All scores per output, in the units of the data, which are standardised for series."""
    y = observations.test(task)
    rows = ~np.isnan(y).all(1)
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
    truth = getattr(observations, "truth", None)
    if truth is not None:
        known = np.where(observations.tests[task], truth, np.nan)[rows]
        scores["rmse_true"] = metrics.rmse(known, p.mean)
    return {name: values.tolist() for name, values in scores.items()}


def _rounded(p: Predictive) -> dict[str, list[Any]]:
    """Mean and standard deviation, to the digits that a figure can show."""
    shown = {"mean": p.mean, "std": p.std}
    return {name: np.round(values, _DIGITS).tolist() for name, values in shown.items()}


def _curve(estimator: Estimator) -> dict[str, list[float]]:
    history = {k: v for k, v in estimator.history_.items() if np.issubdtype(v.dtype, np.number)}
    count = len(history.get("loss", ()))
    kept = np.unique(np.linspace(0, count - 1, min(count, _CURVE)).astype(int))
    return {name: column[kept].tolist() for name, column in history.items()}


def _versions() -> dict[str, str]:
    found = {"python": sys.version.split()[0]}
    for name in ("deeplfm", "torch", "numpy", "scipy", "gpytorch"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:  # run from a source tree
            found[name] = "unknown"
    return found


def _commit() -> str:
    """The commit of the source tree, if it is one; a given one where git is not at hand."""
    if given := os.environ.get("DEEPLFM_COMMIT"):
        return given
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
    if device.startswith("cuda"):
        return torch.cuda.get_device_name(device)
    return f"cpu, {torch.get_num_threads()} threads"


def _peak_memory(device: str) -> int:
    """Bytes: of the accelerator, or of the process so far."""
    if device.startswith("cuda"):
        return int(torch.cuda.max_memory_allocated(device))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak
