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

from deeplfm import files, metrics
from deeplfm.configs import to_json
from deeplfm.data import dataset
from deeplfm.datasets import Series, cardiac, physio, toy
from deeplfm.experiments.registry import Cell
from deeplfm.fitted import FittedModel
from deeplfm.fitting import fit

_SAMPLES = 200
_CURVE = 50  # points kept of a learning curve


def run(
    cell: Cell, out: Path, *, device: str = "cpu", data: Path | str | None = None
) -> dict[str, Any]:
    """Fit and score `cell`; the result, as it is written to `out`/<experiment>/<name>.json."""
    file = out / cell.experiment / f"{cell.name}.json"
    if file.exists():
        kept: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        return kept
    series = _series(cell, data)
    started = time.perf_counter()
    training = dataset(series.times, series.training(*cell.tasks))
    model = fit(
        training,
        cell.recipe,
        cell.training,
        seed=cell.seed,
        device=device,
        dtype=getattr(torch, cell.dtype),
    )
    seconds = time.perf_counter() - started
    result = {
        "experiment": cell.experiment,
        "model": cell.model,
        "dataset": cell.dataset,
        "seed": cell.seed,
        "config": {
            "recipe": to_json(cell.recipe),
            "training": to_json(cell.training),
            "dtype": cell.dtype,
        },
        "versions": _versions(),
        "commit": _commit(),
        "device": _device(device),
        "seconds": seconds,
        "peak_memory": _peak_memory(device),
        "metrics": {task: _score(model, series, task) for task in cell.tasks},
        "learning_curve": _curve(model),
    }
    files.save_json(file, result)
    return result


def _series(cell: Cell, data: Path | str | None) -> Series:
    if cell.dataset in ("figure", "equations"):
        return toy(cell.dataset, seed=cell.seed)  # type: ignore[arg-type]
    if cell.dataset == "cardiac":
        return cardiac(seed=cell.seed)
    return physio(cell.dataset, data)


def _score(model: FittedModel, series: Series, task: str) -> dict[str, Any]:
    """All scores per output, in the units of the data, which are standardised for series."""
    rows = series.tests[task].any(1)
    y = series.test(task)[rows]
    p = model.predictive(series.times[rows], num_samples=_SAMPLES)
    scores = {
        "nmse": metrics.nmse(y, p.mean),
        "rmse": metrics.rmse(y, p.mean),
        "mnll": metrics.mnll(y, p),
        "crps": metrics.crps(y, p),
        "coverage_50": metrics.coverage(y, p, 0.5),
        "coverage_90": metrics.coverage(y, p, 0.9),
        "coverage_95": metrics.coverage(y, p, 0.95),
    }
    if series.truth is not None:
        truth = np.where(series.tests[task], series.truth, np.nan)[rows]
        scores["rmse_true"] = metrics.rmse(truth, p.mean)
    return {name: values.tolist() for name, values in scores.items()}


def _curve(model: FittedModel) -> dict[str, list[float]]:
    history = model.histories[0]
    count = len(history["loss"])
    kept = np.unique(np.linspace(0, count - 1, min(count, _CURVE)).astype(int))
    return {name: column[kept].tolist() for name, column in history.items()}


def _versions() -> dict[str, str]:
    found = {"python": sys.version.split()[0]}
    for name in ("deeplfm", "torch", "numpy", "scipy"):
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
