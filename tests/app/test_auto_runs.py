"""Runs whose model the table chooses: named where they are looked at, and resumed."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import deeplfm as dlfm
from app.panels import COLUMNS, invoke, panel

pytestmark = pytest.mark.usefixtures("without_shape_checks")
STEPS = ["--steps", "2", "--samples", "1", "--checkpoint-every", "1", "--no-check"]


@pytest.mark.parametrize(
    ("options", "kind", "said"),
    [
        (["--outputs", "a,b"], "MarkovDLFM", "1 input: fitted with a MarkovDLFM, in 2 steps."),
        (["--outputs", "a", *COLUMNS, "--model", "auto"], "MarkovDLFM", "1 input: fitted with"),
        (["--inputs", "t,u", "--outputs", "a"], "FourierDLFM", "2 inputs: fitted with a Fourier"),
    ],
)
def test_a_run_names_the_model_it_chose(
    options: list[str],
    kind: str,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    data, out = tmp_path / "data.csv", tmp_path / "run"
    panel().to_csv(data, index=False)
    fit = ["fit", data, "--out", out, *options, *STEPS]
    assert invoke(monkeypatch, *fit) == 0
    assert said in capsys.readouterr().out
    assert json.loads((out / "run.json").read_text())["model"]["type"] == kind
    model = dlfm.load(out)
    assert type(model.fitted_.recipe).__name__ == kind
    assert invoke(monkeypatch, *fit, "--resume") == 0
    assert "there is nothing to resume" in capsys.readouterr().out.replace("\n", " ")
    assert invoke(monkeypatch, "predict", out, "--at", data, "--out", tmp_path / "p.csv") == 0
    assert np.isfinite(pd.read_csv(tmp_path / "p.csv")["a_mean"]).all()
    assert invoke(monkeypatch, "report", out) == 0
    assert kind in (out / "report.html").read_text()


BAD = {
    "a width": (["--hidden-dim", "2"], "--hidden-dim must be left out with --model auto"),
    "batches of a series": (["--outputs", "a", "--batch-size", "5"], 'with model="auto" and one'),
    "a panel of tables": (["--inputs", "t,u", "--series", "id"], "X must be one input, the time"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_it_cannot_use_is_one_sentence_and_leaves_nothing(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    options, message = BAD[case]
    data, out = tmp_path / "data.csv", tmp_path / "run"
    panel(6).to_csv(data, index=False)
    assert invoke(monkeypatch, "fit", data, "--out", out, *options) == 2
    printed = capsys.readouterr().err.strip()
    assert message in printed
    assert "\n" not in printed
    assert not out.exists()
