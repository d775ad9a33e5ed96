"""Tables of the experiment `general`: our default against each rival, and cell by cell.

    ratio of a cell = score of ours / score of the rival,   of a rival = exp mean log ratio of cells

A cell is the gaps or the forecasts of one series. Its NMSE and CRPS are means over outputs, seeds
and places; coverage is pooled. Wrong and sure is NMSE > 1 and coverage < 0.6.
"""

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from deeplfm.paper.datasets.general import TASK, parts_of
from deeplfm.paper.experiments.general import MAKER, OURS
from deeplfm.paper.experiments.models import models
from deeplfm.paper.experiments.table import Results, Row, Table

_WRONG, _SURE = 1.0, 0.6


@final
@dataclass(frozen=True)
class Scores:
    """NMSE, CRPS and coverage of 90 % intervals of one model in one cell.

    points, runs: how many targets were scored, and how many fits there were.
    warned:       in how many of them the check of the model warned.
    misled:       how many were wrong and sure without a warning.
    """

    nmse: float
    crps: float
    coverage: float
    points: int
    runs: int
    warned: int = 0
    misled: int = 0

    @property
    def wrong_and_sure(self) -> bool:
        """Whether a user would be misled."""
        return self.nmse > _WRONG and self.coverage < _SURE


Cells = dict[str, dict[str, Scores]]  # by cell, by model


def general_tables(results: Results) -> list[Table]:
    """The table of rivals, that of cells, and that of models that made the data."""
    cells = cells_of(results)
    return [_rivals(cells), _cells(cells), _makers(cells)]


def cells_of(results: Results) -> Cells:
    """Scores by cell and model, over those runs of a cell that all its models have done."""
    seen: dict[str, dict[str, dict[tuple[str, int], dict[str, Any]]]] = {}
    for result in results:
        name, kind, _ = parts_of(result["dataset"])
        of_cell = seen.setdefault(f"{name}, {kind}", {}).setdefault(result["model"], {})
        of_cell[result["dataset"], result["seed"]] = result
    shared = {cell: set.intersection(*map(set, runs.values())) for cell, runs in seen.items()}
    return {
        cell: {
            model: _scores([runs[key] for key in sorted(shared[cell])])
            for model, runs in by_model.items()
        }
        for cell, by_model in seen.items()
        if OURS in by_model and shared[cell]
    }


def _scores(results: Results) -> Scores:
    """Means over outputs and runs; CRPS in standard deviations of the training values."""
    each = [_of_run(result) for result in results]
    misled = sum(one.wrong_and_sure and not one.warned for one in each)
    return Scores(
        nmse=float(np.mean([one.nmse for one in each])),
        crps=float(np.mean([one.crps for one in each])),
        coverage=_pooled(each),
        points=sum(one.points for one in each),
        runs=len(each),
        warned=sum(one.warned for one in each),
        misled=misled,
    )


def _of_run(result: dict[str, Any]) -> Scores:
    """Means over the outputs of one run."""
    run, warned = result["metrics"][TASK], bool(result.get("warnings"))
    nmse = float(np.mean(run["nmse"]))
    crps = float(np.mean(np.divide(run["crps"], run["training_std"])))
    covered = float(np.average(run["coverage_90"], weights=run["points"]))
    return Scores(nmse, crps, covered, int(sum(run["points"])), 1, int(warned))


def _rivals(cells: Cells) -> Table:
    """One row per model: ratios over the cells that it was run on, and its own coverage."""
    rows: list[Row] = []
    for model, entry in models().items():
        own = [(scores[OURS], scores[model]) for scores in cells.values() if model in scores]
        if not own:
            continue
        ratios = [_geometric([_ratio(a, b, name) for a, b in own]) for name in ("nmse", "crps")]
        covered = [f"{_pooled([pair[k] for pair in own]):.2f}" for k in range(2)]
        sure = sum(scores.wrong_and_sure for _, scores in own)
        numbers = ["", ""] if model == OURS else [f"{ratio:.2f}" for ratio in ratios]
        rows.append((entry.label, str(len(own)), *numbers, *covered[::-1], str(sure)))
    headings = ("model", "cells", "NMSE of ours / its", "CRPS of ours / its", "90 % covers",
                "of ours there", "wrong and sure")  # fmt: skip
    caption = (
        "Series without a heart in them: geometric means over the cells that a rival can run of "
        "the ratio of our default to it; below 1 ours is better."
    )
    return Table("general_rivals", caption, headings, rows)


def _cells(cells: Cells) -> Table:
    """One row per cell: our scores, and the rival that is best there by each score."""
    rows: list[Row] = []
    for cell, scores in cells.items():
        own = scores[OURS]
        others = {m: s for m, s in scores.items() if m not in (OURS, MAKER)}
        row = [cell, str(own.runs), f"{own.nmse:.3f}", f"{own.crps:.3g}", f"{own.coverage:.2f}"]
        for name in ("nmse", "crps"):
            if not others:
                row += ["", ""]
                continue
            best = min(others, key=lambda model: getattr(others[model], name))
            row += [models()[best].label, f"{_ratio(own, others[best], name):.2f}"]
        said = ("yes" if own.wrong_and_sure else "", str(own.warned), str(own.misled))
        rows.append((*row, *said))
    headings = ("cell", "runs", "NMSE", "CRPS", "90 % covers", "best by NMSE", "NMSE of ours / its",
                "best by CRPS", "CRPS of ours / its", "wrong and sure", "runs that warn",
                "runs wrong and sure without")  # fmt: skip
    caption = "Our default in every cell, beside the best rival of that cell."
    return Table("general_cells", caption, headings, rows)


def _makers(cells: Cells) -> Table:
    """One row per cell whose data were drawn from a model that can be fitted, and their mean."""
    pairs = {cell: (s[OURS], s[MAKER]) for cell, s in cells.items() if MAKER in s}
    rows: list[Row] = []
    for cell, (own, maker) in pairs.items():
        ratios = [f"{_ratio(own, maker, name):.2f}" for name in ("nmse", "crps")]
        numbers = (f"{own.nmse:.3f}", f"{maker.nmse:.3f}", f"{own.coverage:.2f}")
        rows.append((cell, *numbers, f"{maker.coverage:.2f}", *ratios))
    if rows:
        ratios = [
            f"{_geometric([_ratio(*pair, name) for pair in pairs.values()]):.2f}"
            for name in ("nmse", "crps")
        ]
        rows.append(("geometric mean", "", "", "", "", *ratios))
    headings = ("cell", "NMSE", "NMSE of the maker", "90 % covers", "of the maker", "NMSE ratio",
                "CRPS ratio")  # fmt: skip
    caption = "Our default against the model that made the data, with its true numbers."
    return Table("general_makers", caption, headings, rows)


def _ratio(own: Scores, other: Scores, name: str) -> float:
    return float(getattr(own, name) / getattr(other, name))


def _geometric(ratios: list[float]) -> float:
    return float(np.exp(np.mean(np.log(ratios))))


def _pooled(scores: list[Scores]) -> float:
    """Coverage over all targets of these cells."""
    return float(np.average([s.coverage for s in scores], weights=[s.points for s in scores]))
