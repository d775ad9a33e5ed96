"""The command line: what it prints, what it writes, its exit codes."""

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import deeplfm
from deeplfm import cli, demo
from deeplfm.errors import InputError, NumericalError
from deeplfm.responses import path_response


def deeplfm_command(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "deeplfm", *arguments]
    return subprocess.run(command, capture_output=True, text=True)


def test_demo_prints_errors_and_saves_the_picture(tmp_path: Path) -> None:
    done = deeplfm_command("demo", "--out", str(tmp_path / "new"))
    assert done.returncode == 0, done.stderr
    for expected in ("first order, γ = 200", "second order, critical", "relative error", "below"):
        assert expected in done.stdout
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["forces_and_responses.png"]
    assert (tmp_path / "new" / "forces_and_responses.png").read_bytes().startswith(b"\x89PNG")


def test_reproduce_runs_what_was_asked_for(tmp_path: Path) -> None:
    options = ["--smoke", "--models", "dlfm-rff", "--seeds", "0", "--out", str(tmp_path)]
    result = CliRunner().invoke(cli.app, ["reproduce", "toy", *options])
    assert result.exit_code == 0, result.output
    assert "rmse_t" in result.output
    assert [path.name for path in (tmp_path / "smoke" / "toy").iterdir()] == [
        "dlfm-rff_figure_imputation_extrapolation_0.json"
    ]
    done = deeplfm_command("reproduce", "toy", "--models", "nothing")
    assert done.returncode == 2
    assert "must leave something to run" in done.stderr


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
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(demo, "demonstrate", fail)
    monkeypatch.setattr(sys, "argv", ["deeplfm", "demo"])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    assert stopped.value.code == code
    printed = capsys.readouterr().err.strip().splitlines()
    assert len(printed) == 1
    assert str(error) in printed[0]


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    done = deeplfm_command("demo", "--out", str(blocked / "inside"))
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "could not read or write" in done.stderr


def test_the_demonstration_fails_loudly_where_closed_form_and_quadrature_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo, "path_response", lambda *a: path_response(*a) * (1 + 1e-6))
    with pytest.raises(NumericalError, match="must agree with quadrature"):
        demo.demonstrate(tmp_path)
    assert not list(tmp_path.iterdir())
