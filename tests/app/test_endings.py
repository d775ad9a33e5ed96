"""How commands end: sentences on one line, whatever happened, and Ctrl-C at any moment."""

import os
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from deeplfm.app import cli
from deeplfm.app.endings import ended
from deeplfm.app.printing import printable
from deeplfm.errors import DataWarning


def said_by(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> tuple[int, str]:
    monkeypatch.setattr(sys, "argv", ["deeplfm", *arguments])
    try:
        cli.main()
        code = 0
    except SystemExit as stopped:
        code = int(stopped.code or 0)
    return code, capsys.readouterr().err


@pytest.mark.parametrize("make", [lambda: torch.empty(2**60), lambda: np.empty(2**58)])
def test_too_little_memory_is_a_sentence(make: object, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        ended(make)  # type: ignore[arg-type]
    assert stopped.value.code == 1
    assert capsys.readouterr().err.startswith("deeplfm: there was not enough memory; use fewer")


def test_other_errors_of_a_program_stay_errors() -> None:
    def fail() -> None:
        raise RuntimeError("a bug")

    with pytest.raises(RuntimeError, match="a bug"):
        ended(fail)


def test_warnings_of_data_are_sentences(capsys: pytest.CaptureFixture[str]) -> None:
    def warn() -> None:
        warnings.warn("Row 3\nis short.", DataWarning, stacklevel=1)

    ended(warn)
    assert capsys.readouterr().err == "deeplfm: Row 3\\nis short.\n"


def test_what_a_terminal_would_obey_is_written_out() -> None:
    assert printable("a\n\x1b[31mé\udc80") == "a\\n\\x1b[31mé\\udc80"


def test_predictions_keep_inputs_of_the_same_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    numbers = np.random.default_rng(0).normal(size=(20, 3))
    pd.DataFrame(numbers, columns=["y_mean", "u", "y"]).to_csv("d.csv", index=False)
    options = ["--inputs", "y_mean,u", "--steps", "1", "--no-check", "--out", "run"]
    assert said_by(["fit", "d.csv", *options], monkeypatch, capsys)[0] == 0
    code, said = said_by(["predict", "run", "--at", "d.csv", "--out", "p.csv"], monkeypatch, capsys)
    assert code == 0
    assert "'y_mean' is a column of the input already" in said
    found = pd.read_csv("p.csv")
    assert list(found.columns)[:4] == ["y_mean", "u", "y_mean_", "y_std"]
    assert np.allclose(found["y_mean"], numbers[:, 0])


def test_columns_without_names_are_left_out_and_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    frame = pd.DataFrame({"t": np.arange(12.0), "a": np.sin(np.arange(12))})
    frame.to_csv("d.csv")
    quick = ["--steps", "1", "--no-check"]
    code, said = said_by(["fit", "d.csv", "--out", "run", *quick], monkeypatch, capsys)
    assert code == 0
    assert "'Unnamed: 0' of d.csv has no name, as an index that was saved" in said
    request = (tmp_path / "run" / "run.json").read_text()
    assert '"t"' in request
    assert "Unnamed" not in request


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_ctrl_c_before_anything_is_done(share: float, tmp_path: Path) -> None:
    """At some moments from the start of Python to the first sentence."""
    whole = 3.0
    end_of = interrupted_after(max(0.25, share * whole), tmp_path)
    assert "Traceback" not in end_of
    assert end_of.count("\n") <= 2


def interrupted_after(seconds: float, folder: Path) -> str:
    """What a fit says on stderr that gets Ctrl-C so long after its start."""
    table = folder / "d.csv"
    table.write_text("t,a\n" + "".join(f"{k},{k % 3}\n" for k in range(400)))
    command = [sys.executable, "-m", "deeplfm", "fit", str(table), "--out", str(folder / "run")]
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=os.environ.copy()
    ) as running:
        time.sleep(seconds)
        running.send_signal(signal.SIGINT)
        _, said = running.communicate(timeout=60)
    return said
