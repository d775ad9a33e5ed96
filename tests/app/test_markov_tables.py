"""What a state-space model on the command line can and cannot use: settings, columns, sizes."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import deeplfm as dlfm
from app.panels import COLUMNS, STEPS, invoke, panel, small
from deeplfm.app import runs

__all__ = ["small"]  # a fixture
pytestmark = pytest.mark.usefixtures("without_shape_checks")


BAD: dict[str, tuple[list[str], str]] = {
    "hidden functions": (["--model", "markov", "--hidden-dim", "3"], "no hidden layer; got 3"),
    "batches": (["--model", "markov", "--batch-size", "9"], "batch_size=None for a MarkovDLFM"),
    "starts": (["--model", "markov", "--restarts", "2"], "restarts=1 for a MarkovDLFM"),
    "two inputs": (["--model", "markov", "--inputs", "t,u"], "X must be one input, the time"),
    "series of layers": (
        ["--model", "fourier", "--series", "id"],
        "series must be None for this recipe",
    ),
    "known inputs of layers": (
        ["--model", "fourier", "--known", "u"],
        "known must be None for this recipe",
    ),
    "an unknown column": (["--model", "markov", "--series", "who"], "Correct 'who'"),
    "a column twice": (["--known", "u", "--outputs", "u"], "got 'u' twice"),
    "an unknown model": (["--model", "lstm"], "['auto', 'markov', 'fourier', 'inducing']; got"),
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
    options = ["--model", "fourier", "--steps", "1", "--samples", "1", "--hidden-dim", "1"]
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
