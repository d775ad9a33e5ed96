"""Tables and figures come from the JSONs of runs, and those in the repository are up to date."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from deeplfm.data import files
from deeplfm.paper.experiments import Sweep, choose, registry, reproduce, tables
from deeplfm.paper.experiments.planted import planted_table
from deeplfm.paper.experiments.report import build, latex, markdown
from deeplfm.paper.experiments.table import Table

RESULTS = Path(__file__).parents[3] / "results"


def result(model: str, dataset: str, seed: int, **metrics: Any) -> dict[str, Any]:
    return {
        "model": model, "dataset": dataset, "seed": seed, "metrics": metrics, "seconds": 1.0,
        "learning_curve": {},
    }  # fmt: skip


def written(out: Path, experiment: str, *results: dict[str, Any]) -> None:
    for number, one in enumerate(results):
        files.save_json(out / experiment / f"{number}.json", one)


def test_means_are_over_records_and_seeds_are_no_records(tmp_path: Path) -> None:
    errors = dict(zip(registry.SCORED_ON, [0.1, 0.2, 0.3, 0.4, 0.5, 0.6], strict=True))
    runs = [
        result("dlfm-rff", record, seed, imputation={"nmse": [e + s] * 3, "mnll": [e] * 3})
        for record, e in errors.items()
        for seed, s in ((0, -0.05), (1, 0.05))
    ]
    runs += [
        result("gp", record, 0, imputation={"nmse": [0.01, 0.02, 0.03], "mnll": [1.0, 2.0, 3.0]})
        for record in registry.SCORED_ON
    ]
    runs.append(result("slmc", "3379471", 0, imputation={"nmse": [1.0] * 3, "mnll": [1.0] * 3}))
    written(tmp_path, "physio", *runs)
    table = next(t for t in tables(tmp_path, "physio") if t.name == "physio_imputation")
    assert [row[0] for row in table.rows] == ["GP", "DLFM-RFF (ours)"]  # the best first
    # Six equally spaced values: variance 0.035, its root over √6 is 0.0764.
    assert table.rows[1][1] == "0.350 (0.076)"
    assert table.rows[0][-2:] == ("0.020 (0.000)", "2.000 (0.000)")


def test_toy_tables_show_medians_and_the_worst(tmp_path: Path) -> None:
    for seed, error in enumerate((0.3, 0.1, 0.2)):
        scores = {"rmse_true": [error], "mnll": [-error], "coverage_95": [0.9 + error / 10]}
        one = result("gp", "figure", seed, imputation=scores, extrapolation=scores)
        files.save_json(tmp_path / "toy" / f"{seed}.json", one)
    (table,) = tables(tmp_path, "toy")
    assert table.rows == [
        ("GP", "3", "0.200 (0.300)", "-0.20 (-0.10)", "0.92", "0.200 (0.300)", "-0.20 (-0.10)",
         "0.92"),
    ]  # fmt: skip


def test_tables_as_text() -> None:
    table = Table("name", "50 % of `all`.", ("a_b", "c"), [("1", "≈ 0")])
    assert markdown(table) == "50 % of `all`.\n\n| a_b | c |\n| --- | --- |\n| 1 | ≈ 0 |\n"
    text = latex(table)
    assert r"a\_b & c \\" in text
    assert r"1 & $\approx$ 0 \\" in text
    assert r"50 \% of" in text


def test_a_sweep_goes_on_and_outlives_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = choose("toy", ["gp", "dgp-rff"], ["figure"], ["0", "1"])
    said: list[str] = []
    sweep = Sweep(tmp_path, short=True)
    assert sweep.run(chosen[:1], said.append) == {}

    def broken(*_: object, **__: object) -> None:
        raise ArithmeticError("no luck")

    with monkeypatch.context() as patched:
        patched.setattr("deeplfm.paper.baselines.exact_gp.ExactGP.fit", broken)
        failed = sweep.run(chosen, said.append)
    assert failed == {chosen[1].name: "ArithmeticError: no luck"}
    assert "4 runs, 1 of them done before" in said
    files_then = {path.name for path in (tmp_path / "toy").glob("*.json")}
    assert files_then == {f"{cell.name}.json" for cell in chosen if cell is not chosen[1]}
    paths = reproduce(chosen, "toy", Sweep(tmp_path, jobs=2, short=True), said.append)
    assert {path.suffix for path in paths} == {".md", ".tex", ".pdf", ".png"}
    assert all(path.stat().st_size for path in paths)
    (table,) = tables(tmp_path, "toy")
    assert [row[:2] for row in table.rows] == [("DGP-RFF", "2"), ("GP", "2")]


def test_tables_in_the_repository_are_what_its_results_give(tmp_path: Path) -> None:
    """Beside them in the folder are runs of the experiment `tables`, as JSON."""
    folder = (path for path in (RESULTS / "tables").iterdir() if path.suffix != ".json")
    kept = {path.name: path.read_text(encoding="utf-8") for path in folder}
    made: dict[str, str] = {}
    every = [table for name in registry.experiments() for table in tables(RESULTS, name)]
    for table in (*every, planted_table(RESULTS)):
        made |= {f"{table.name}.md": markdown(table), f"{table.name}.tex": latex(table)}
    assert kept == made


def test_nothing_is_built_from_nothing(tmp_path: Path) -> None:
    assert build(tmp_path, "toy") == []
    assert np.all([tables(tmp_path, name) == [] for name in registry.experiments()])
