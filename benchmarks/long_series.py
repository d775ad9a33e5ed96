"""A long record with a Markov state: time and memory of a fit, and of mean, spread and quantiles.

    python benchmarks/long_series.py --rows 500000 1000000 --modes 30 [--device cuda]

Three cardiac signals, 25 samples a beat, whose rate drifts by 5 %; blocks of a beat are held out.
"""

import argparse
import json
import resource
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import deeplfm as dlfm

Values = NDArray[np.float64]

_PER_BEAT = 25


def signals(rows: int, first: int = 0) -> tuple[Values, Values]:
    """Times in beats of the mean rate, and pressure, ECG and intracranial pressure."""
    t = np.arange(first, first + rows) / _PER_BEAT
    rate = 1 + 0.05 * np.sin(2 * np.pi * t / 300) + 0.02 * np.sin(2 * np.pi * t / 37)
    phase = 2 * np.pi * np.cumsum(rate) / _PER_BEAT
    breath = 2 * np.pi * t / 4

    def bump(centre: float, width: float) -> Values:
        away = np.angle(np.exp(1j * (phase - centre)))
        return np.asarray(np.exp(-0.5 * (away / width) ** 2))

    pressure = 60 + 40 * bump(1.0, 0.5) + 12 * bump(2.2, 0.4) + 3 * np.sin(breath)
    ecg = 1.2 * bump(0.2, 0.15) - 0.2 * bump(0.5, 0.12) + 0.15 * bump(2.0, 0.4)
    inside = 10 + 3 * bump(1.2, 0.6) + np.sin(breath + 1)
    y = np.stack([pressure, ecg, inside], 1)
    noise = np.random.default_rng(first).standard_normal(y.shape)
    return t, y + 0.03 * y.std(0) * noise


def measure(
    rows: int, recipe: dlfm.MarkovDLFM, steps: int, device: str, first: int = 0
) -> dict[str, Any]:
    """Seconds, GiB above the idle interpreter, and scores on what was held out."""
    t, y = signals(rows, first)
    beats = rows // _PER_BEAT
    chosen = np.random.default_rng(1).choice(
        np.arange(2, beats - 2), min(200, max(4, beats // 10)), replace=False
    )
    hidden = np.isin(np.arange(rows) // _PER_BEAT, chosen)
    idle, started = _memory(), time.perf_counter()
    model = dlfm.DeepLFMRegressor(recipe, dlfm.Training(steps=steps), device=device, progress=False)
    model.fit(t, np.where(hidden[:, None], np.nan, y))
    fitted = time.perf_counter()
    found = model.fitted_.summary(t, levels=(0.05, 0.5, 0.95))
    done = time.perf_counter()
    inside = (y > found.quantiles[0.05]) & (y < found.quantiles[0.95])
    error = ((y - found.mean)[hidden] ** 2).mean(0) / y[hidden].var(0)
    return {
        "rows": rows,
        "fit_s": fitted - started,
        "predict_s": done - fitted,
        "gib": _memory() - idle,
        "nmse": error.tolist(),
        "coverage_90": inside[hidden].mean(0).tolist(),
    }


def _memory() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def main() -> None:
    """Print a line of JSON for each length, and write all of them where asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[1000, 50_000, 1_000_000])
    parser.add_argument("--modes", type=int, help="oscillators; as many as the recipe takes")
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    recipe, steps = dlfm.MarkovDLFM(modes=options.modes or "auto"), 300
    if options.smoke:
        recipe, steps, options.rows = dlfm.MarkovDLFM(modes=3), 3, [4000]
    found = []
    for rows in options.rows:
        found.append(measure(rows, recipe, steps, options.device))
        print(json.dumps(found[-1]), flush=True)
    if options.out is not None:
        options.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
