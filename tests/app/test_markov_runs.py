"""State-space models on the command line: panels, known inputs, new rows, and going on exactly."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import deeplfm as dlfm
from deeplfm.app import cli, runs
from deeplfm.training import evidence

STEPS = ["--model", "markov", "--steps", "4", "--checkpoint-every", "2"]
pytestmark = pytest.mark.usefixtures("without_shape_checks")


@pytest.fixture(scope="module", autouse=True)
def small() -> Iterator[None]:
    """The recipe of the command line, with modes for a few rows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(cli._RECIPES, "markov", lambda: dlfm.MarkovDLFM(modes=2))
        yield


def panel(rows: int = 30) -> pd.DataFrame:
    """Two patients, 7 and 007, with a known input each and gaps."""
    parts = []
    for k, name in enumerate(("007", "7")):
        random = np.random.default_rng(k)
        t = np.arange(rows) * 0.25
        u = (t > 3).astype(float)
        y = np.sin(2 * t + k) + 0.5 * u + 0.05 * random.standard_normal(rows)
        parts.append(pd.DataFrame({"t": t, "id": name, "u": u, "a": y, "b": 2 - y}))
    found = pd.concat(parts, ignore_index=True)
    found.loc[5:9, "a"] = np.nan
    return found


def invoke(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    monkeypatch.setattr(sys, "argv", ["deeplfm", *map(str, arguments)])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    return int(stopped.value.code or 0)


COLUMNS = ["--series", "id", "--known", "u"]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "panel.csv"
    panel().to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def run(table: Path, tmp_path_factory: pytest.TempPathFactory, small: None) -> Path:
    out = tmp_path_factory.mktemp("runs") / "run"
    with pytest.MonkeyPatch.context() as patch:
        assert invoke(patch, "fit", table, "--out", out, *STEPS, *COLUMNS) == 0
    return out


def test_a_run_of_a_panel_is_the_fit_in_python(
    run: Path, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = json.loads((run / "run.json").read_text())
    assert (request["series"], request["known"]) == ("id", ["u"])
    assert (request["inputs"], request["outputs"]) == (["t"], ["a", "b"])
    assert sorted(path.name for path in run.iterdir()) == [
        "model.json", "model.safetensors", "run.json"
    ]  # fmt: skip
    frame = panel()
    training = dlfm.Training(steps=4, checkpoint_every=2)
    model = dlfm.DeepLFMRegressor(dlfm.MarkovDLFM(modes=2), training, progress=False)
    model.fit(frame[["t"]], frame[["a", "b"]], known=frame[["u"]], series=frame["id"])
    grid = pd.DataFrame({"u": [1.0, 0.0, 1.0], "id": ["7", "007", "007"], "t": [8.5, 9.0, 1.1]})
    grid.to_csv(tmp_path / "grid.csv", index=False)
    out = tmp_path / "p.csv"
    assert invoke(monkeypatch, "predict", run, "--at", tmp_path / "grid.csv", "--out", out) == 0
    found = pd.read_csv(out, dtype={"id": str})
    assert list(found.columns)[:4] == ["t", "id", "a_mean", "a_std"]
    assert found["id"].tolist() == ["7", "007", "007"]
    p = model.predictive(grid[["t"]], known=grid[["u"]], series=grid["id"])
    np.testing.assert_array_equal(found[["a_mean", "b_mean"]], p.mean)
    np.testing.assert_array_equal(found[["a_p05", "b_p05"]], p.quantile(0.05))


def test_tables_without_ids_or_known_inputs(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "p.csv"
    for content, message in (
        ("t,u\n1,0\n", "it has 't', 'u'. Correct 'id'"),
        ("t,id\n1,7\n", "it has 't', 'id'. Correct 'u'"),
        ("t,u,id\n1,0,8\n", "must be among the 2 of the fit; got ['8']"),
        ("t,u,id\n1,0,\n2,0,7\n", "id 'id' of"),
        ("t,u,id\n1,,7\n", "known must be finite"),
    ):
        (tmp_path / "grid.csv").write_text(content)
        at = ["--at", tmp_path / "grid.csv", "--out", out]
        assert invoke(monkeypatch, "predict", run, *at) == 2
        printed = capsys.readouterr().err.strip()
        assert message in printed
        assert "\n" not in printed
    assert not out.exists()


def test_a_killed_run_goes_on_to_the_same_numbers(
    run: Path,
    table: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = tmp_path / "run"
    fit = ["fit", table, "--out", out, *STEPS, *COLUMNS]
    one_step = evidence.EvidenceTrainer._one_step

    def fail(self: evidence.EvidenceTrainer) -> None:
        if self.step == 3:
            raise KeyboardInterrupt
        one_step(self)

    with monkeypatch.context() as patch:
        patch.setattr(evidence.EvidenceTrainer, "_one_step", fail)
        assert invoke(patch, *fit) == 1
    assert "--resume" in capsys.readouterr().err
    assert (out / "checkpoints" / evidence.CHECKPOINT).exists()
    for other, name in (
        (["--known", "u,b"], "outputs and known"),
        (["--series", "b"], "outputs and series"),
    ):
        assert invoke(monkeypatch, *fit, *other, "--resume") == 2
        assert f"got other {name}" in capsys.readouterr().err
    assert invoke(monkeypatch, *fit, "--resume") == 0
    assert "no checkpoint yet" not in capsys.readouterr().out
    assert not (out / "checkpoints").exists()
    one, two = dlfm.load(run).fitted_.tensors(), dlfm.load(out).fitted_.tensors()
    for name, value in one.items():
        np.testing.assert_array_equal(value.numpy(), two[name].numpy(), err_msg=name)


def test_an_interrupt_before_the_first_step_leaves_no_state(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(self: evidence.EvidenceTrainer) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(evidence.EvidenceTrainer, "_one_step", interrupt)
    assert invoke(monkeypatch, "fit", table, "--out", tmp_path / "run", *STEPS, *COLUMNS) == 1
    assert not (tmp_path / "run" / "checkpoints").exists()


def test_new_rows_are_taken_in(
    run: Path,
    table: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    later = panel(32).query("t >= 7.25")  # one row of each was fitted, two of each are new
    later.loc[later.index[-1], "b"] = np.nan
    new = tmp_path / "new.csv"
    later.to_csv(new, index=False)
    out = tmp_path / "updated"
    assert invoke(monkeypatch, "update", run, new, "--out", out) == 0
    printed = capsys.readouterr().out
    assert printed == f"4 new rows, 64 in all: {out}\n"
    frame = later.query("t > 7.25")
    beside = {"known": frame[["u"]], "series": frame["id"]}
    model = dlfm.load(run).update(frame[["t"]], frame[["a", "b"]], **beside)
    found, expected, before = (
        one.predict(frame[["t"]] + 0.1, series=frame["id"])
        for one in (dlfm.load(out), model, dlfm.load(run))
    )
    np.testing.assert_array_equal(found, expected)
    assert not np.allclose(found, before)
    one = panel(33).query("t == 8.0 and id == '7'")  # a single row, in the folder of the run
    one.to_csv(new, index=False)
    assert invoke(monkeypatch, "update", out, new) == 0
    assert capsys.readouterr().out == f"1 new row, 65 in all: {out}\n"
    assert len(dlfm.load(out).fitted_.data) == 65
    assert invoke(monkeypatch, "update", out, new) == 2
    assert "must hold observations that are new" in capsys.readouterr().err
    assert invoke(monkeypatch, "update", run, new, "--out", out) == 2
    assert "holds a run already" in capsys.readouterr().err
    one.drop(columns="u").to_csv(new, index=False)
    assert invoke(monkeypatch, "update", run, new) == 2
    assert "Correct 'u'" in capsys.readouterr().err


def test_a_report_of_a_panel_with_rows_that_were_held_out(
    run: Path,
    table: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    unseen, page = tmp_path / "unseen.csv", tmp_path / "page.html"
    panel(34).query("t >= 7.5").to_csv(unseen, index=False)
    report = ["report", run, "--out", page, "--held-out"]
    assert invoke(monkeypatch, *report, unseen) == 0
    text = page.read_text()
    assert "The first of 2 series is drawn: 007." in text
    assert "On held-out data" in text
    page.unlink()
    assert invoke(monkeypatch, *report, table) == 2
    assert "must hold observations that were not fitted" in capsys.readouterr().err
    panel(34).drop(columns="id").to_csv(unseen, index=False)
    assert invoke(monkeypatch, *report, unseen) == 2
    assert "Correct 'id'" in capsys.readouterr().err
    assert not page.exists()


def test_dates_and_new_series(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    times = pd.date_range("2026-01-01", periods=40, freq="h")
    frame = pd.DataFrame({"when": times, "who": "a", "y": np.sin(np.arange(40.0))})
    data, out, new = tmp_path / "data.csv", tmp_path / "run", tmp_path / "new.csv"
    frame[:36].to_csv(data, index=False)
    assert invoke(monkeypatch, "fit", data, "--out", out, *STEPS, "--series", "who") == 0
    added = pd.concat([frame[36:], frame[:5].assign(who="b")])
    added.to_csv(new, index=False)
    assert invoke(monkeypatch, "update", out, new, "--out", tmp_path / "both") == 0
    capsys.readouterr()
    own = dlfm.load(tmp_path / "both").fitted_.data
    assert own.panel.labels == ("a", "b")
    assert own.x[36:40, 0].tolist() == [3600.0 * k for k in range(36, 40)]
    at = ["--at", new, "--out", tmp_path / "p.parquet"]
    assert invoke(monkeypatch, "predict", tmp_path / "both", *at) == 0
    assert pd.read_parquet(tmp_path / "p.parquet")["who"].tolist() == ["a"] * 4 + ["b"] * 5


BAD: dict[str, tuple[list[str], str]] = {
    "hidden functions": (["--model", "markov", "--hidden-dim", "3"], "no hidden layer; got 3"),
    "batches": (["--model", "markov", "--batch-size", "9"], "batch_size=None for a MarkovDLFM"),
    "starts": (["--model", "markov", "--restarts", "2"], "restarts=1 for a MarkovDLFM"),
    "two inputs": (["--model", "markov", "--inputs", "t,u"], "X must be one input, the time"),
    "series of layers": (["--series", "id"], "series must be None for this recipe"),
    "known inputs of layers": (["--known", "u"], "known must be None for this recipe"),
    "an unknown column": (["--model", "markov", "--series", "who"], "Correct 'who'"),
    "a column twice": (["--known", "u", "--outputs", "u"], "got 'u' twice"),
    "an unknown model": (["--model", "lstm"], "['markov', 'fourier', 'inducing']; got 'lstm'"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_a_model_cannot_use_is_one_sentence_and_leaves_nothing(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    options, message = BAD[case]
    data, out = tmp_path / "data.csv", tmp_path / "run"
    frame = panel(6)
    frame["id"] = (frame["id"] == "7").astype(int)  # a number where it is an output
    frame.to_csv(data, index=False)
    assert invoke(monkeypatch, "fit", data, "--out", out, *options) == 2
    printed = capsys.readouterr().err.strip()
    assert message in printed
    assert "\n" not in printed
    assert not out.exists()


def test_only_state_space_models_take_new_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    data, out = tmp_path / "data.csv", tmp_path / "run"
    panel(6)[["t", "a"]].to_csv(data, index=False)
    options = ["--steps", "1", "--samples", "1", "--hidden-dim", "1"]
    assert invoke(monkeypatch, "fit", data, "--out", out, *options) == 0
    assert invoke(monkeypatch, "update", out, data) == 2
    assert "holds a FourierDLFM. Fit with --model markov" in capsys.readouterr().err
    at = ["--at", data, "--out", tmp_path / "p.csv"]
    assert invoke(monkeypatch, "predict", out, *at) == 0


def test_a_large_table_needs_no_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    frame = panel(30)
    path = tmp_path / "data.parquet"
    frame.query("id == '7'")[["t", "a", "b"]].to_parquet(path)
    models = []
    for large in (2**27, 10):
        monkeypatch.setattr(runs, "LARGE", large)
        out = tmp_path / f"run{large}"
        assert invoke(monkeypatch, "fit", path, "--out", out, *STEPS) == 0
        models.append(dlfm.load(out))
    assert "30 rows are read from disk.\n" in capsys.readouterr().out
    at = pd.DataFrame({"t": [0.1, 9.0]})
    # Means of chunks are not means to the last digit.
    np.testing.assert_allclose(models[0].predict(at), models[1].predict(at), rtol=1e-6)
    frame.to_parquet(path)  # with ids it is read as it is
    assert invoke(monkeypatch, "fit", path, "--out", tmp_path / "ids", *STEPS, *COLUMNS) == 0
    inputs = ["--inputs", "t,a", "--outputs", "b"]
    frame[["t", "a", "b"]].to_parquet(path)
    assert invoke(monkeypatch, "fit", path, "--out", tmp_path / "two", *STEPS, *inputs) == 2
    assert not (tmp_path / "two").exists()
