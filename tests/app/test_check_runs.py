"""The check of a run: printed, kept, on the page; and a run that goes on has the same one."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import deeplfm as dlfm
from app.panels import STEPS, invoke, small
from deeplfm.regressor.markov_rehearsal import REHEARSAL
from deeplfm.training.evidence import CHECKPOINT, EvidenceTrainer

__all__ = ["small"]  # a fixture
pytestmark = pytest.mark.usefixtures("without_shape_checks")


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wave that is far noisier in its last rows."""
    path, t = tmp_path_factory.mktemp("data") / "series.csv", np.arange(100.0)
    noise = np.where(t < 90, 0.1, 5.0) * np.random.default_rng(0).standard_normal(100)
    pd.DataFrame({"t": t, "y": np.sin(t / 3) + noise}).to_csv(path, index=False)
    return path


def test_it_is_printed_kept_and_on_the_page(
    table: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = tmp_path / "run"
    assert invoke(monkeypatch, "fit", table, "--out", out, *STEPS) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    assert "linear interpolation" in printed.out
    assert "WARNING: This fit may mislead: " in printed.out
    check = dlfm.load(out).check_
    assert check.is_done
    assert all(sentence in printed.out for sentence in check.sentences)
    assert invoke(monkeypatch, "report", out) == 0
    page = (out / "report.html").read_text()
    assert '<section id="check">' in page
    assert f'<p class="warning">{check.warnings[0]}</p>' in page


def test_without_a_check_it_says_so(
    table: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = tmp_path / "run"
    assert invoke(monkeypatch, "fit", table, "--out", out, *STEPS, "--no-check") == 0
    assert "Not checked: the check was switched off." in capsys.readouterr().out
    assert invoke(monkeypatch, "report", out) == 0
    assert "Not checked: the check was switched off." in (out / "report.html").read_text()
    with_check = ["fit", table, "--out", out, *STEPS, "--resume"]
    assert invoke(monkeypatch, *with_check) == 2
    assert "got other check" in capsys.readouterr().err


def test_a_run_that_was_interrupted_among_its_blocks_goes_on(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one_step = EvidenceTrainer._one_step

    def interrupted(self: EvidenceTrainer) -> None:
        if (
            self.step == 1
            and self.checkpoints is not None
            and self.checkpoints.part == f"/{REHEARSAL}"
        ):
            raise KeyboardInterrupt
        one_step(self)

    whole, out = tmp_path / "whole", tmp_path / "run"
    assert invoke(monkeypatch, "fit", table, "--out", whole, *STEPS) == 0
    with monkeypatch.context() as patch:
        patch.setattr(EvidenceTrainer, "_one_step", interrupted)
        assert invoke(patch, "fit", table, "--out", out, *STEPS) == 1
    assert (out / "checkpoints" / CHECKPOINT).exists()  # the fit itself has ended
    assert invoke(monkeypatch, "fit", table, "--out", out, *STEPS, "--resume") == 0
    first, second = dlfm.load(whole), dlfm.load(out)
    assert first.check_ == second.check_
    at = np.linspace(0, 120, 9)
    np.testing.assert_array_equal(first.predict(at, True), second.predict(at, True))
