"""An experiment from one command: choose its runs, make what is missing, build the report."""

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
    """The runs of an experiment; an empty choice is all."""
    chosen = [
        cell
        for cell in cells(experiment)
        if (not models or cell.model in models)
        and (not datasets or cell.dataset in datasets)
        and (not seeds or str(cell.seed) in seeds)
    ]
    if not chosen:
        every = cells(experiment)
        raise InputError(
            "models, datasets and seeds must leave something to run; got none. Choose among "
            f"{sorted({cell.model for cell in every})}, {sorted({c.dataset for c in every})} and "
            f"{sorted({cell.seed for cell in every})}."
        )
    return chosen


def reproduce(chosen: list[Cell], experiment: str, sweep: Sweep, say: Say) -> list[Path]:
    """Run what is not done, then write tables and figures; an error at the end if some failed."""
    failed = sweep.run(chosen, say)
    written = build(sweep.out, experiment, sweep.data)
    if failed:
        raise DeepLFMError(
            f"{len(failed)} of {len(chosen)} runs failed: {'; '.join(failed)}. The others are "
            "kept; start again to repeat those."
        )
    return written
