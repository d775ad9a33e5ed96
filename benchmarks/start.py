"""How long `fit` takes before its first step: the time to build a model for the data.

`python benchmarks/start.py`: every recipe, data set and number of threads in a process of its own.
"first": the first fit of the process, with what it imports; "again": one after it. Both end at the
first report, are less one step, and are of the processor (all threads) unless the clock is named.
Memory: the peak of the start.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

import deeplfm as dlfm
from deeplfm.data import Dataset, Scaling, dataset, files
from deeplfm.data.cardiac import cardiac
from deeplfm.data.series import Series
from deeplfm.likelihoods import Likelihood
from deeplfm.models import DeepLFM, Recipe
from deeplfm.paper.datasets.toy import toy
from deeplfm.regressor.fitting import fit


def series(made: Series) -> Dataset:
    return dataset(made.times, made.training())


def table(rows: int, inputs: int) -> Dataset:
    random = np.random.default_rng(0)
    x = random.standard_normal((rows, inputs))
    return dataset(x, np.sin(x @ random.standard_normal(inputs)) + 0.1 * random.normal(size=rows))


DATA: dict[str, Callable[[], Dataset]] = {
    "toy": lambda: series(toy()),
    "cardiac": lambda: series(cardiac()),
    "8611 x 4": lambda: table(8611, 4),
    "45730 x 9": lambda: table(45730, 9),
    "small": lambda: series(cardiac(60)),
}
RECIPES: dict[str, type[Recipe]] = {"Fourier": dlfm.FourierDLFM, "inducing": dlfm.InducingDLFM}


@dataclass(frozen=True)
class Watched(Recipe):
    """A recipe that notes the memory of the process when a model is built."""

    recipe: Recipe
    peaks: list[float] = field(default_factory=list)

    @property
    def likelihood(self) -> Likelihood:
        return self.recipe.likelihood

    def build(self, data: Dataset, scaling: Scaling, generator: torch.Generator) -> DeepLFM:
        model = self.recipe.build(data, scaling, generator)
        self.peaks.append(peak_memory())
        return model

    def resolved(self, data: Dataset, scaling: Scaling) -> Recipe:
        return Watched(self.recipe.resolved(data, scaling), self.peaks)

    def skeleton(self, scaling: Scaling, generator: torch.Generator | None = None) -> DeepLFM:
        return self.recipe.skeleton(scaling, generator)


def peak_memory() -> float:
    """Of this process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def until_first_step(data: Dataset, recipe: Recipe) -> dict[str, float]:
    """Seconds of the clock and of the processor; rows per step change nothing before it."""
    marks = [(time.perf_counter(), time.process_time())]
    fit(
        data,
        recipe,
        dlfm.Training(steps=3, batch_size=200),
        report=lambda step, loss: marks.append((time.perf_counter(), time.process_time())),
    )
    (begun, first, *_, before, last) = marks
    clock, processor = (first[k] - begun[k] - (last[k] - before[k]) for k in (0, 1))
    return {"seconds": clock, "processor": processor}


def measure(recipe: str, data: str, threads: int) -> dict[str, object]:
    """In this process, which must not have fitted anything."""
    torch.set_num_threads(threads)
    known, watched, before = DATA[data](), Watched(RECIPES[recipe]()), peak_memory()
    first, again = until_first_step(known, watched), until_first_step(known, watched)
    return {
        "recipe": recipe,
        "data": data,
        "threads": threads,
        "first": first["processor"],
        "first, clock": first["seconds"],
        "again": again["processor"],
        "again, clock": again["seconds"],
        "memory": watched.peaks[0] - before,
    }


def in_a_process_of_its_own(recipe: str, data: str, threads: int) -> dict[str, object]:
    command = [sys.executable, __file__, "--one", recipe, data, str(threads)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, object] = json.loads(done.stdout)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--smoke", action="store_true", help="one small data set, one thread")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--out", type=Path, help="also write the rows here, as JSON")
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one is not None:
        recipe, data, threads = options.one
        sys.stdout.write(json.dumps(measure(recipe, data, int(threads))))
        return
    names = ["small"] if options.smoke else [name for name in DATA if name != "small"]
    rows = [
        in_a_process_of_its_own(recipe, name, threads)
        for threads in ([1] if options.smoke else options.threads)
        for recipe in RECIPES
        for name in names
    ]
    shown = Table(title="from fit to the first step, in seconds; memory in MB")
    for heading in rows[0]:
        shown.add_column(heading, justify="right")
    for row in rows:
        shown.add_row(*(f"{v:.2f}" if isinstance(v, float) else str(v) for v in row.values()))
    Console().print(shown)
    if options.out is not None:
        files.save_json(options.out, rows)


if __name__ == "__main__":
    main()
