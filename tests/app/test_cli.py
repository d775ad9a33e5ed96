"""The command line: what it prints, what it writes, its exit codes."""

import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

import deeplfm
from deeplfm.app import cli, demo
from deeplfm.errors import InputError, NumericalError


def deeplfm_command(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "deeplfm", *arguments]
    return subprocess.run(command, capture_output=True, text=True)


def test_demo_scores_draws_and_reports(tmp_path: Path) -> None:
    out = tmp_path / "new"
    small = ["--points", "100", "--steps", "3", "--out", str(out)]
    done = deeplfm_command("demo", *small, "--models", "auto,inducing")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""  # what a check warns of is a sentence among the others
    shown = ("auto, MarkovDLFM: ", "inducing, InducingDLFM: ", "ICP", "NMSE", "report.html")
    for expected in (*shown, "90 % interval covers"):
        assert expected in done.stdout
    for name in ("auto", "inducing"):
        assert (out / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert (out / name / "report.html").stat().st_size > 1e6  # with the charting library in it
        assert deeplfm.load(out / name).predict(pd.DataFrame({"t": [1.0]})).shape == (1, 3)


def test_reproduce_runs_what_was_asked_for(tmp_path: Path) -> None:
    options = ["--smoke", "--models", "dlfm-rff", "--seeds", "0", "--out", str(tmp_path)]
    options += ["--datasets", "figure"]
    result = CliRunner().invoke(cli.app, ["reproduce", "toy", *options])
    assert result.exit_code == 0, result.output
    assert "RMSE" in result.output
    assert [path.name for path in (tmp_path / "smoke" / "toy").glob("*.json")] == [
        "dlfm-rff_figure_imputation_extrapolation_0.json"
    ]
    assert (tmp_path / "smoke" / "tables" / "toy_figure.tex").exists()
    again = CliRunner().invoke(cli.app, ["reproduce", "toy", *options, "--report-only"])
    assert "0 runs" in again.output
    done = deeplfm_command("reproduce", "toy", "--models", "nothing")
    assert done.returncode == 2
    assert "must leave something to run" in done.stderr
    places = ["--data", str(tmp_path), "--out", str(tmp_path)]
    done = deeplfm_command("reproduce", "physio", *places, "--jobs", "2")
    assert done.returncode == 2  # the first of all runs says it for all
    assert done.stderr.count("physio/3083337.csv must be on this machine") == 1


def test_bad_usage_is_2() -> None:
    assert deeplfm_command("demo", "--sead", "1").returncode == 2
    assert deeplfm_command("domo").returncode == 2


def test_version() -> None:
    result = CliRunner().invoke(cli.app, ["--version"])
    assert result.exit_code == 0
    assert result.stdout.strip() == deeplfm.__version__


@pytest.mark.parametrize(
    ("error", "code"),
    [(InputError("bad x"), 2), (NumericalError("bad K"), 1), (OSError("no space"), 1)],
)
def test_errors_are_one_sentence_and_a_code(
    error: Exception, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(demo, "demonstrate", fail)
    monkeypatch.setattr(sys, "argv", ["deeplfm", "demo"])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    assert stopped.value.code == code
    printed = capsys.readouterr().err.strip().splitlines()
    assert len(printed) == 1
    assert str(error) in printed[0]
