"""Ratios to rivals by hand: geometric means over cells, means over runs, pooled coverage."""

from typing import Any

import pytest

from deeplfm.paper.experiments.comparisons import Scores, cells_of, general_tables


def result(
    model: str, record: str, nmse: list[float], crps: list[float], covered: list[float],
    seed: int = 0, points: int = 10, unit: float = 1.0, warnings: tuple[str, ...] = (),
) -> dict[str, Any]:  # fmt: skip
    count = len(nmse)
    scores = {
        "nmse": nmse, "crps": crps, "coverage_90": covered, "points": [points] * count,
        "training_std": [unit] * count,
    }  # fmt: skip
    run = {"model": model, "dataset": record, "seed": seed, "metrics": {"held_out": scores}}
    return run | {"warnings": list(warnings)}


RESULTS = [
    result("dlfm-markov", "nile-gap@25", [0.2], [2.0], [1.0], unit=2.0),
    result("dlfm-markov", "nile-gap@50", [0.6], [6.0], [0.8], unit=2.0),
    result("interpolation", "nile-gap@25", [0.8], [4.0], [0.9], unit=2.0),
    result("interpolation", "nile-gap@50", [0.8], [4.0], [0.9], unit=2.0),
    result("interpolation", "nile-gap@75", [9.0], [9.0], [0.0]),  # ours was not run there
    result("best-gp", "nile-gap@25", [0.1], [8.0], [0.5], unit=2.0),
    result("best-gp", "nile-gap@50", [0.1], [8.0], [0.5], unit=2.0),
    result("dlfm-markov", "walk-gap@90", [1.5, 2.5], [1.0, 3.0], [0.5, 0.6], points=30),
    result("interpolation", "walk-gap@90", [0.5, 0.5], [1.0, 1.0], [0.9, 0.9], points=30),
    result("made-by", "walk-gap@90", [1.0, 1.0], [1.0, 1.0], [0.9, 0.9], points=30),
    result("structural", "sunspots-gap@80", [0.1], [0.1], [0.9]),  # ours was not run at all
]


def test_cells_are_means_over_outputs_and_runs_that_all_have() -> None:
    cells = cells_of(RESULTS)
    assert set(cells) == {"nile, gap", "walk, gap"}
    own = cells["nile, gap"]["dlfm-markov"]
    assert (own.nmse, own.crps, own.coverage) == pytest.approx((0.4, 2.0, 0.9))
    assert (own.points, own.runs) == (20, 2)
    assert cells["nile, gap"]["interpolation"].nmse == pytest.approx(0.8)
    assert cells["walk, gap"]["dlfm-markov"].wrong_and_sure
    assert not own.wrong_and_sure
    assert not Scores(2.0, 1.0, 0.7, 1, 1).wrong_and_sure  # wrong, but it says so


def test_ratios_are_geometric_means_and_coverage_is_pooled() -> None:
    rivals, _, _ = general_tables(RESULTS)
    rows = {row[0]: row[1:] for row in rivals.rows}
    # NMSE 0.4/0.8 and 2/0.5: √(0.5 · 4); CRPS 2/2 and 2/1: √2.
    # Coverage of ours: (20·.9 + 60·.55)/80.
    assert rows["interpolation or last value"] == ("2", "1.41", "1.41", "0.90", "0.64", "0")
    assert rows["exact GP, best kernel"][:2] == ("1", "4.00")
    assert rows["DLFM, state space (ours)"] == ("2", "", "", "0.64", "0.64", "1")
    assert "UnobservedComponents" not in rows


def test_cells_name_their_best_rival() -> None:
    _, cells, makers = general_tables(RESULTS)
    nile, walk = cells.rows
    assert nile[0] == "nile, gap"
    assert nile[5:] == ("exact GP, best kernel", "4.00", "interpolation or last value", "1.00",
                        "", "0", "0")  # fmt: skip
    assert walk[5:7] == ("interpolation or last value", "4.00")  # the maker is no rival
    assert walk[-3:] == ("yes", "0", "1")
    assert makers.rows == [
        ("walk, gap", "2.000", "1.000", "0.55", "0.90", "2.00", "2.00"),
        ("geometric mean", "", "", "", "", "2.00", "2.00"),
    ]


def test_a_run_that_warns_misleads_nobody() -> None:
    warned = ("Forecasts are worse than the last value.",)
    both = [
        result("dlfm-markov", "walk-gap@90", [2.0], [1.0], [0.5], seed=seed, warnings=said)
        for seed, said in enumerate(((), warned))
    ]
    cell = cells_of(both)["walk, gap"]["dlfm-markov"]
    assert (cell.runs, cell.warned, cell.misled) == (2, 1, 1)


def test_nothing_comes_of_nothing() -> None:
    assert all(not table.rows for table in general_tables([]))
