"""Do intervals hold what they promise? The README's ten lines and `make demo`, over seeds.

    python benchmarks/coverage.py readme --seeds 10
    python benchmarks/coverage.py demo --seeds 5 [--models auto,fourier,inducing]

A seed is that of the signals and of the fit. Intervals are of 95 % in the README, 90 % in the demo.
"""

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import deeplfm as dlfm
from deeplfm.data import cardiac
from deeplfm.errors import FitWarning
from deeplfm.evaluation import metrics
from deeplfm.models import ModelSettings


class _Task(NamedTuple):
    points: int
    level: float


_TASKS = {"readme": _Task(500, 0.95), "demo": _Task(1000, 0.9)}
_MODELS: dict[str, ModelSettings | str] = {
    "auto": "auto",
    "fourier": dlfm.FourierDLFM(),
    "inducing": dlfm.InducingDLFM(),
}


def measure(task: _Task, model: str, seed: int, steps: int) -> dict[str, Any]:
    """Coverage and error of one fit, by channel."""
    series = cardiac(task.points, seed=seed)
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        fitted = dlfm.DeepLFMRegressor(
            _MODELS[model], dlfm.Training(steps=steps), seed=seed, progress=False
        ).fit(series.times, series.training())
    found, hidden = fitted.predictive(series.times), series.test("imputation")
    return {
        "model": model,
        "seed": seed,
        "seconds": time.perf_counter() - started,
        "coverage": metrics.coverage(hidden, found, task.level).tolist(),
        "nmse": metrics.nmse(hidden, found.mean).tolist(),
        "spread": fitted.check_.spread.inside,
        "warned": not fitted.check_.passed,
    }


def _shown(label: str, runs: list[dict[str, Any]]) -> str:
    """A line: means over runs, and of how many of them their own check warned."""
    coverage, nmse, seconds = (
        np.mean([one[name] for one in runs], 0) for name in ("coverage", "nmse", "seconds")
    )
    covered, errors = (" ".join(f"{value:6.3f}" for value in row) for row in (coverage, nmse))
    warned = f"{sum(one['warned'] for one in runs)} of {len(runs)}"
    return f"{label:>14}  {covered}  {coverage.mean():6.3f}   {errors}   {seconds:5.1f}   {warned}"


def main() -> None:
    """Print a row per fit and, for each model, their means; gaps of all channels are as long."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("task", choices=_TASKS)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--models", default="auto")
    parser.add_argument("--steps", type=int, default=dlfm.Training.steps)
    parser.add_argument("--smoke", action="store_true", help="a few rows and steps")
    parser.add_argument("--out", type=Path, help="a JSON file for the numbers")
    asked = parser.parse_args()
    task, seeds, steps = _TASKS[asked.task], asked.seeds, asked.steps
    if asked.smoke:
        task, seeds, steps = task._replace(points=100), 1, 2
    print(f"{'':>14}  coverage: ABP, ECG, ICP, all   NMSE: ABP, ECG, ICP   seconds, warned of")
    rows = []
    for model in asked.models.split(","):
        own = []
        for seed in range(seeds):
            own.append(measure(task, model, seed, steps))
            print(_shown(f"{model} {seed}", own[-1:]), flush=True)
        print(_shown(f"{model}, all", own), flush=True)
        rows += own
    if asked.out:
        asked.out.parent.mkdir(parents=True, exist_ok=True)
        asked.out.write_text(json.dumps({"task": asked.task, "runs": rows}, indent=1))


if __name__ == "__main__":
    main()
