"""How the time of a step grows with each of its sizes, and a figure of it.

`python benchmarks/scaling.py [--device cuda] [--smoke] [--out scaling.json] [--figure f.svg]`. One
size is doubled several times from a common shape; all shapes are timed in turn, medians over
rounds. Linear growth is 1 at most; the number of rows at a fixed batch should not matter at all.
`--from` draws the figure from files of earlier runs, on several devices.
"""

import argparse
import json
import statistics
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from deeplfm import FourierDLFM, InducingDLFM
from deeplfm.models import Recipe
from deeplfm.training import Trainer
from one_step import milliseconds
from step_cases import PAPER, PAPER_VIP, SMALL, SMALL_VIP, Case

NAMES = {
    "batch": "batch size",
    "samples": "samples S",
    "features": "features R, inducing points M",
    "rows": "rows N, batch 500",
}
Row = dict[str, Any]


@dataclass(frozen=True)
class Shape:
    """One size among those that grow."""

    model: str
    grown: str
    size: int
    case: Case


def shapes(device: str, smoke: bool) -> list[Shape]:
    """From a common shape, one size at a time."""
    doublings = 2 if smoke else 5
    large = device != "cpu"
    found = []
    recipes = (SMALL, SMALL_VIP) if smoke else (PAPER, PAPER_VIP)
    for model, recipe in zip(("Fourier", "inducing"), recipes, strict=True):
        base = Case(device, recipe, 4000, 2, 1, 64 if large else 8, batch=2000 if large else 250)
        if smoke:
            base = replace(base, rows=200, samples=2, batch=20)
        for k in range(doublings):
            grown = {
                "batch": ((base.batch or 1) * 2**k // 2, "batch"),
                "samples": (base.samples * 2**k // 2, "samples"),
                "rows": (1000 * 10**k, "rows"),
            }
            if smoke:
                grown = {name: grown[name] for name in ("samples", "rows")}
            for name, (size, field) in grown.items():
                case = replace(base, **{field: max(size, 2)})
                if name == "batch":
                    case = replace(case, rows=max(base.rows, 2 * size))
                if name == "rows":
                    if k > 3 or (smoke and k > 1):
                        continue
                    case = replace(case, batch=min(500, size // 2))
                found.append(Shape(model, name, size, case))
            if smoke:
                continue
            features = 25 * 2**k
            found.append(
                Shape(model, "features", features, replace(base, recipe=of_size(recipe, features)))
            )
    return found


def of_size(recipe: Recipe, size: int) -> Recipe:
    if isinstance(recipe, FourierDLFM):
        return replace(recipe, num_features=size)
    return replace(recipe, num_inducing=size) if isinstance(recipe, InducingDLFM) else recipe


def timed(some: list[Shape], device: str, rounds: int) -> list[Row]:
    """Medians of each, in rounds over all of them."""
    trainers: list[Trainer] = []
    together = 2 if device == "cpu" else 20
    for shape in some:
        trainer = shape.case.trainer(device, "auto")
        trainer.run(until=together)
        trainers.append(trainer)
    times: list[list[float]] = [[] for _ in some]
    for _ in range(rounds):
        for trainer, found in zip(trainers, times, strict=True):
            last = trainer.step + together
            found += milliseconds(lambda t=trainer, u=last: t.run(until=u), 1, device, together)  # type: ignore[misc]
    return [
        {"model": shape.model, "grown": shape.grown, "size": shape.size, "device": device}
        | {"ms": statistics.median(found), "ms_low": min(found), "ms_high": max(found)}
        for shape, found in zip(some, times, strict=True)
    ]


def slope(rows: list[Row]) -> float:
    """Of the last doubling: how many times as long over how many times as much."""
    before, last = rows[-2], rows[-1]
    return float((last["ms"] / before["ms"] - 1) / (last["size"] / before["size"] - 1))


def series(rows: list[Row]) -> dict[tuple[str, str, str], list[Row]]:
    found: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        found.setdefault((row["device"], row["model"], row["grown"]), []).append(row)
    return found


def draw(rows: list[Row], path: Path) -> None:
    """One panel per size; a dotted line through each first point is linear growth."""
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(1, 4, figsize=(12, 3.2), layout="constrained")
    for (device, model, grown), own in series(rows).items():
        panel = panels[list(NAMES).index(grown)]
        sizes, times = ([row[key] for row in own] for key in ("size", "ms"))
        colour = {"Fourier": "C0", "inducing": "C1"}[model]
        style = {"cpu": "o-", "cuda": "s--"}[device]
        panel.loglog(sizes, times, style, color=colour, markersize=4, label=f"{model}, {device}")
        if grown != "rows":
            line = [times[-1] * size / sizes[-1] for size in sizes]
            panel.loglog(sizes, line, ":", color="0.7", linewidth=1, zorder=0)
    for panel, name in zip(panels, NAMES.values(), strict=True):
        panel.set_xlabel(name)
        panel.grid(alpha=0.2)
        panel.xaxis.set_major_formatter(
            lambda size, _: f"{size:g}" if size < 1e4 else f"{size:.0e}"
        )
        panel.xaxis.set_minor_formatter(lambda size, _: "")
    panels[0].set_ylabel("one step, ms")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=4, frameon=False)
    figure.savefig(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--figure", type=Path)
    parser.add_argument("--from", dest="files", type=Path, nargs="*")
    options = parser.parse_args()
    if options.files:
        rows = [row for file in options.files for row in json.loads(file.read_text())]
    else:
        rounds = 1 if options.smoke else options.rounds
        rows = timed(shapes(options.device, options.smoke), options.device, rounds)
    table = Table(title="growth of the last doubling (1: linear, 0: none)")
    for heading in ("device", "model", "size", "ms", "growth"):
        table.add_column(heading)
    for (device, model, grown), own in series(rows).items():
        times = ", ".join(f"{row['ms']:.2f}" for row in own)
        table.add_row(device, model, NAMES[grown], times, f"{slope(own):.2f}")
    Console(width=120).print(table)
    if options.out is not None:
        options.out.write_text(json.dumps(rows, indent=1) + "\n")
    if options.figure is not None:
        draw(rows, options.figure)


if __name__ == "__main__":
    main()
