"""A data set from outside the package: one function, one registration.

It is an experiment of its own: its cells run one by one, in a sweep, in other processes and from
the command line, and its table is built. docs/add_a_baseline.md explains this file.
"""

import json
from pathlib import Path

import numpy as np
from typer.testing import CliRunner

from deeplfm.app.cli import app
from deeplfm.data import Series
from deeplfm.paper.datasets import Folder, data_set
from deeplfm.paper.datasets.locate import locate
from deeplfm.paper.experiments import Sweep, cells, choose, reproduce, run, smoke, tables


@data_set("sawtooth", records=("made", "read"), kinds=("series",), seeds=2)
def sawtooth(record: str, seed: int, path: Folder) -> Series:
    """Two channels of 120 samples: made from a seed, or read from sawtooth/sawtooth.txt."""
    t = np.linspace(0, 6, 120)
    if record == "made":
        noise = np.random.default_rng(seed).normal(scale=0.1, size=(120, 2))
        values = np.stack([t % 1, -(t % 1.5)], axis=1) + noise
    else:
        values = np.loadtxt(locate("sawtooth/sawtooth.txt", path))
    imputation, extrapolation = np.zeros((2, 120, 2), dtype=bool)
    imputation[40:55, 0] = imputation[60:75, 1] = True
    extrapolation[-10:] = True
    tests = {"imputation": imputation, "extrapolation": extrapolation}
    return Series(t, values, ("rise", "fall"), tests)


def test_models_that_suit_its_kind_are_run_on_it() -> None:
    models = {cell.model for cell in cells("sawtooth")}
    assert {"dlfm-rff", "dlfm-vip", "gp", "slmc", "mixture-gp"} <= models
    assert not {"trees", "svgp", "ar-ridge", "lag-ridge"} & models  # for tables, for grids
    names = {cell.name for cell in cells("sawtooth") if cell.model == "gp"}
    assert names == {
        f"gp_{record}_{task}_{seed}"
        for record in ("made", "read")
        for task in ("imputation", "extrapolation")
        for seed in (0, 1)
    }


def test_a_run_scores_what_the_test_hides(tmp_path: Path) -> None:
    """A score of the mean alone, from the numbers of the function itself."""
    (cell,) = choose("sawtooth", ["gp"], ["made"], ["1"])[:1]
    assert cell.tasks == ("imputation",)
    result = run(smoke(cell), tmp_path)
    series = sawtooth("made", 1, None)
    scored = series.test("imputation")
    squares = np.nanmean((scored - np.nanmean(scored, 0)) ** 2, 0)
    scores = result["metrics"]["imputation"]
    np.testing.assert_allclose(np.square(scores["rmse"]), squares * np.array(scores["nmse"]))
    assert (tmp_path / "sawtooth" / "gp_made_imputation_1.json").exists()


def test_a_sweep_reads_its_file_and_builds_its_table(tmp_path: Path) -> None:
    values = np.random.default_rng(5).normal(size=(120, 2))
    (tmp_path / "sawtooth").mkdir()
    np.savetxt(tmp_path / "sawtooth" / "sawtooth.txt", values)
    chosen = choose("sawtooth", ["gp", "dlfm-rff"], ["read"], ["0"])
    sweep = Sweep(tmp_path / "out", data=tmp_path, short=True)
    written = reproduce(chosen, "sawtooth", sweep, lambda _: None)
    assert {path.name for path in written} == {"sawtooth.md", "sawtooth.tex"}
    (table,) = tables(tmp_path / "out", "sawtooth")
    assert [row[:4] for row in table.rows] == [
        ("read", task, model, "1")
        for task in ("extrapolation", "imputation")
        for model in ("dlfm-rff", "gp")
    ]
    result = tmp_path / "out" / "sawtooth" / "gp_read_extrapolation_0.json"
    errors = json.loads(result.read_text())["metrics"]["extrapolation"]["nmse"]
    assert table.rows[1][4] == " / ".join(f"{error:.3f}" for error in errors)


def test_other_processes_run_it_too(tmp_path: Path) -> None:
    chosen = choose("sawtooth", ["gp"], ["made"], ["1"])[:1]
    assert Sweep(tmp_path, jobs=2, short=True).run(chosen, lambda _: None) == {}
    apart = json.loads((tmp_path / "sawtooth" / "gp_made_imputation_1.json").read_text())
    here = run(smoke(chosen[0]), tmp_path / "here")
    np.testing.assert_allclose(
        apart["metrics"]["imputation"]["rmse"], here["metrics"]["imputation"]["rmse"]
    )


def test_the_command_line_knows_it(tmp_path: Path) -> None:
    arguments = "reproduce sawtooth --smoke --models gp --datasets made --device cpu"
    done = CliRunner().invoke(app, [*arguments.split(), "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert "4 runs, 0 of them done before" in done.output
    assert len(list((tmp_path / "smoke" / "sawtooth").glob("gp_made_*.json"))) == 4
    assert "made" in (tmp_path / "smoke" / "tables" / "sawtooth.md").read_text()
