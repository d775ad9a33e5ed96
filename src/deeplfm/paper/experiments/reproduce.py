"""An experiment from one command: choose its runs, do those that are missing, build the report."""

from collections.abc import Collection
from pathlib import Path

from deeplfm.errors import DeepLFMError, InputError
from deeplfm.paper.experiments.registry import Cell, cells
from deeplfm.paper.experiments.report import build
from deeplfm.paper.experiments.sweep import Say, Sweep


def choose(
    experiment: str,
    models: Collection[str] = (),
    datasets: Collection[str] = (),
    seeds: Collection[str] = (),
) -> list[Cell]:
    """The runs of an experiment with these models, data sets and seeds; empty: with all."""
    every_cell = cells(experiment)
    chosen = [
        cell
        for cell in every_cell
        if (not models or cell.model in models)
        and (not datasets or cell.dataset in datasets)
        and (not seeds or str(cell.seed) in seeds)
    ]
    if not chosen:
        names, records, numbers = (
            sorted({getattr(cell, field) for cell in every_cell})
            for field in ("model", "dataset", "seed")
        )
        raise InputError(
            "models, datasets and seeds must leave something to run; got none. Choose among "
            f"{names}, {records} and {numbers}."
        )
    return chosen


def reproduce(chosen: list[Cell], experiment: str, sweep: Sweep, say: Say) -> list[Path]:
    """Do the runs that are missing, then write tables and figures.

    An error at the end names the runs that failed.
    """
    failed = sweep.run(chosen, say)
    written = build(sweep.out, experiment, sweep.data)
    if failed:
        raise DeepLFMError(
            f"{len(failed)} of {len(chosen)} runs failed: {'; '.join(failed)}. The others are "
            "kept; start again to repeat those."
        )
    return written
