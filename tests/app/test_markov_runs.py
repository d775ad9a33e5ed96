"""State-space models on the command line: panels, known inputs, new rows, and going on exactly."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import deeplfm as dlfm
from app.panels import COLUMNS, STEPS, invoke, panel, small
from deeplfm.regressor.markov_saving import markov_tensors
from deeplfm.training import evidence

__all__ = ["small"]  # a fixture
pytestmark = pytest.mark.usefixtures("without_shape_checks")


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
        "manifest.json", "model.json", "model.safetensors", "run.json"
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
    one, two = (markov_tensors(dlfm.load(place).fitted_) for place in (run, out))
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
