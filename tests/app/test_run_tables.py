"""What tables may hold on the command line: dates that come back, names that mean harm."""

from pathlib import Path

import numpy as np
import pandas as pd
from typer.testing import CliRunner

import deeplfm as dlfm
from deeplfm.app import cli

STEPS = ["--model", "fourier", "--samples", "2", "--hidden-dim", "2"]


def test_dates_go_in_and_come_back(tmp_path: Path) -> None:
    times = pd.date_range("2026-01-01", periods=60, freq="h", tz="UTC")
    frame = pd.DataFrame({"when": times.strftime("%Y-%m-%dT%H:%M:%SZ"), "y": np.sin(np.arange(60))})
    frame.to_csv(tmp_path / "data.csv", index=False)
    runner = CliRunner()
    out = tmp_path / "run"
    done = runner.invoke(
        cli.app, ["fit", str(tmp_path / "data.csv"), "--out", str(out), *STEPS, "--steps", "2"]
    )
    assert done.exit_code == 0, done.output
    predictions = tmp_path / "p.parquet"
    done = runner.invoke(
        cli.app,
        ["predict", str(out), "--at", str(tmp_path / "data.csv"), "--out", str(predictions)],
    )
    assert done.exit_code == 0, done.output
    assert pd.read_parquet(predictions)["when"].tolist() == frame["when"].tolist()
    model = dlfm.load(out)
    assert model.data_ is not None
    assert model.data_.x[1, 0] == 3600.0


HOSTILE = ["<script>alert(1)</script>", "=cmd()", "../../x", "n" * 10_000, "\U0001f600"]


def test_hostile_names(tmp_path: Path) -> None:
    numbers = np.random.default_rng(0).normal(size=(30, len(HOSTILE) + 1))
    frame = pd.DataFrame(numbers, columns=["../t", *HOSTILE])
    data = tmp_path / "home" / "data.csv"
    data.parent.mkdir()
    frame.to_csv(data, index=False)
    before = set(tmp_path.rglob("*"))
    out = tmp_path / "home" / "run"
    runner = CliRunner()
    for arguments in (
        ["fit", data, "--out", out, *STEPS, "--steps", "2"],
        ["predict", out, "--at", data, "--out", out / "p.csv"],
        ["report", out],
    ):
        done = runner.invoke(cli.app, [str(one) for one in arguments])
        assert done.exit_code == 0, done.output
    made = set(tmp_path.rglob("*")) - before
    assert all(path == out or out in path.parents for path in made)
    header = (out / "p.csv").read_text().splitlines()[0]
    assert "'=cmd()_mean" in header
    assert ",=cmd" not in header
    assert "<script>alert(1)</script>" not in (out / "report.html").read_text()
