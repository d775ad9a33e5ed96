"""A long record with a Markov state: time and memory of a fit, and of mean, spread and quantiles.

    python benchmarks/long_series.py --rows 500000 1000000 --modes 30 [--device cuda]

The synthetic cardiac signals, whose rate drifts by 5 %; blocks of a second are held out.
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
from deeplfm.data import cardiac

Values = NDArray[np.float64]

_BLOCK = 25  # rows that are held out together: a second
_PLACES = 8  # where short records are taken from the long one


def measure(
    rows: int, recipe: dlfm.MarkovDLFM, steps: int, device: str, places: int = 1
) -> dict[str, Any]:
    """Seconds, GiB above the idle interpreter, and scores on what was held out.

    With several `places`, the mean over as many records of that length out of a long one.
    """
    idle, found = _memory(), []
    whole = cardiac(rows if places == 1 else 50_000, drift=0.05)
    for place in np.linspace(0, len(whole.times) - rows, places).astype(int):
        one = slice(place, place + rows)
        found.append(_measured(whole.times[one], whole.values[one], recipe, steps, device))
    scores = {name: np.mean([one[name] for one in found], 0).tolist() for name in found[0]}
    return {"rows": rows, "places": places, **scores, "gib": _memory() - idle}


def _measured(
    t: Values, y: Values, recipe: dlfm.MarkovDLFM, steps: int, device: str
) -> dict[str, Any]:
    blocks = len(t) // _BLOCK
    chosen = np.random.default_rng(1).choice(
        np.arange(2, blocks - 2), min(200, max(4, blocks // 10)), replace=False
    )
    hidden = np.isin(np.arange(len(t)) // _BLOCK, chosen)
    started = time.perf_counter()
    model = dlfm.DeepLFMRegressor(recipe, dlfm.Training(steps=steps), device=device, progress=False)
    model.fit(t, np.where(hidden[:, None], np.nan, y))
    fitted = time.perf_counter()
    found = model.fitted_.summary(t, levels=(0.05, 0.5, 0.95))
    done = time.perf_counter()
    inside = (y > found.quantiles[0.05]) & (y < found.quantiles[0.95])
    error = ((y - found.mean)[hidden] ** 2).mean(0) / y[hidden].var(0)
    return {
        "fit_s": fitted - started,
        "predict_s": done - fitted,
        "nmse": error,
        "coverage_90": inside[hidden].mean(0),
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
        places = _PLACES if rows <= 1000 else 1
        found.append(measure(rows, recipe, steps, options.device, places))
        print(json.dumps(found[-1]), flush=True)
    if options.out is not None:
        options.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
