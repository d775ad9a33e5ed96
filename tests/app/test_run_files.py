"""The files of a run on the command line: nothing is overwritten, two do not write at once."""

import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import deeplfm as dlfm
from app.panels import invoke, small
from deeplfm.app import runs
from deeplfm.data import files
from deeplfm.training.evidence import EvidenceTrainer

__all__ = ["small"]  # a fixture
pytestmark = pytest.mark.usefixtures("without_shape_checks")

STEPS = ["--model", "markov", "--steps", "4", "--checkpoint-every", "2", "--no-check"]
Refused = Callable[..., str]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "data.csv"
    times = pd.date_range("2026-01-01", periods=40, freq="h")
    pd.DataFrame({"t": times, "a": np.sin(np.arange(40.0))}).to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def whole(table: Path, tmp_path_factory: pytest.TempPathFactory, small: None) -> Path:
    out = tmp_path_factory.mktemp("runs") / "run"
    with pytest.MonkeyPatch.context() as patch:
        assert invoke(patch, "fit", table, "--out", out, *STEPS) == 0
    return out


@pytest.fixture
def run(whole: Path, tmp_path: Path) -> Path:
    return shutil.copytree(whole, tmp_path / "run")


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Refused:
    """Run a command that is refused: its sentence."""

    def ask(*arguments: object) -> str:
        capsys.readouterr()
        assert invoke(monkeypatch, *arguments) == 2
        said = capsys.readouterr().err
        assert said.count("\n") == 1
        return said

    return ask


def state(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_no_command_overwrites_an_input_or_a_part_of_a_run(
    run: Path, table: Path, tmp_path: Path, refused: Refused
) -> None:
    data, other = shutil.copy(table, tmp_path / "data.csv"), tmp_path / "other.csv"
    later = pd.read_csv(table).assign(t=pd.date_range("2026-03-01", periods=40, freq="h"))
    later.to_csv(other, index=False)
    (tmp_path / "link.csv").symlink_to(run / "model.safetensors")
    (tmp_path / "another").mkdir()
    shutil.copytree(run, tmp_path / "another" / "run")
    before = state(tmp_path)
    for part in ("model.json", "model.safetensors", "run.json", "manifest.json", "checkpoints"):
        assert "must be no part of a run" in refused("report", run, "--out", run / part)
    elsewhere = tmp_path / "another" / "run" / "model.json"
    assert "must be no part of a run" in refused("report", run, "--out", elsewhere)
    at = ["predict", run, "--at", other, "--out"]
    assert "must be no part of a run" in refused(*at, tmp_path / "link.csv")
    assert "must be another file than --at" in refused(*at, other)
    assert "must be another file than the data of" in refused(*at, data)
    page = ["report", run, "--held-out", other, "--out"]
    assert "must be another file than --held-out" in refused(*page, other)
    assert "or a page (.html) to replace" in refused("report", run, "--out", other)
    for name in ("model.safetensors", "manifest.json", "checkpoints/notes.txt"):
        new = tmp_path / f"new {Path(name).name}"
        (new / name).parent.mkdir(parents=True)
        (new / name).write_text("mine")
        assert "must be a new folder" in refused("fit", table, "--out", new, *STEPS)
        assert [path.read_text() for path in new.rglob("*") if path.is_file()] == ["mine"]
        shutil.rmtree(new)
    assert state(tmp_path) == before


@pytest.mark.parametrize("name", ["run.json", "model.json", "manifest.json", "model.safetensors"])
def test_a_changed_file_of_a_run_is_refused(
    name: str, run: Path, table: Path, tmp_path: Path, refused: Refused
) -> None:
    """The origin of its dates too, on which predictions hang."""
    content = (run / name).read_bytes()
    place = content.index(b"2026-01") + 3 if name == "run.json" else len(content) // 2
    flipped = bytes([content[place] ^ 1])
    (run / name).write_bytes(content[:place] + flipped + content[place + 1 :])
    said = refused("predict", run, "--at", table, "--out", tmp_path / "p.csv")
    assert "Copy the whole folder again" in said
    (run / "manifest.json").unlink()
    refused("predict", run, "--at", table, "--out", tmp_path / "p.csv")
    assert not (tmp_path / "p.csv").exists()


def test_a_run_of_an_older_version_is_read_and_gets_a_manifest(
    run: Path, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Format 3: no manifest, checksums in the settings."""
    at = ["--at", table, "--out"]
    assert invoke(monkeypatch, "predict", run, *at, tmp_path / "new.csv") == 0
    settings = json.loads((run / "model.json").read_text()) | {"format": 3}
    settings["sha256"] = files.checksum(run / "model.safetensors")
    own = {"checksum": files.sha256(files.json_text(settings).encode())}
    (run / "model.json").write_text(files.json_text(settings | own))
    request = json.loads((run / "run.json").read_text())
    del request["format"]
    (run / "run.json").write_text(json.dumps(request))
    (run / "manifest.json").unlink()
    assert invoke(monkeypatch, "predict", run, *at, tmp_path / "old.csv") == 0
    assert (tmp_path / "old.csv").read_bytes() == (tmp_path / "new.csv").read_bytes()
    dlfm.load(run).save(run)  # in today's format
    assert files.names(run) == {"model.json", "model.safetensors"}
    assert invoke(monkeypatch, "predict", run, *at, tmp_path / "again.csv") == 0
    assert (tmp_path / "again.csv").read_bytes() == (tmp_path / "new.csv").read_bytes()


def test_who_is_at_work_in_a_run_is_told(
    run: Path, table: Path, tmp_path: Path, refused: Refused, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = tmp_path / "begun"
    begun.mkdir()
    for name in ("run.json", "manifest.json"):
        shutil.copy(run / name, begun / name)
    files.seal(begun, {"run.json": (run / "run.json").read_bytes()})
    holds = f"a fit (process {os.getpid()} on "
    with files.locked(begun, "a fit"):
        for command in (
            ["fit", table, "--out", begun, *STEPS],
            ["fit", table, "--out", begun, *STEPS, "--resume"],
            ["report", begun],
            ["predict", begun, "--at", table, "--out", tmp_path / "p.csv"],
            ["update", begun, table],
        ):
            assert holds in refused(*command)
    with files.locked(run, "a fit"):
        for command in (["report", run], ["update", run, table]):
            assert holds in refused(*command)
        at = ["--at", table, "--out", tmp_path / "p.csv"]
        assert invoke(monkeypatch, "predict", run, *at) == 0  # it only reads
    assert "its fit was interrupted" in refused("report", begun)


def test_the_next_command_clears_away_what_a_killed_one_left(
    run: Path, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clean = sorted(path.name for path in run.iterdir())
    for command in (
        ["predict", run, "--at", table, "--out", tmp_path / "p.csv"],
        ["report", run, "--out", tmp_path / "page.html"],
        ["fit", table, "--out", run, *STEPS, "--resume"],
    ):
        (run / "checkpoints" / "rows").mkdir(parents=True)
        (run / "checkpoints" / "rows" / "rows.npy").write_bytes(bytes(1000))
        (run / files.LOCK).write_text("{}")
        (run / ".model.json.sealing").write_text("half")
        assert invoke(monkeypatch, *command) == 0
        assert sorted(path.name for path in run.iterdir()) == clean


def test_an_interrupted_command_speaks_of_itself(
    run: Path,
    table: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(runs, "open_run", interrupted)
    monkeypatch.setattr(EvidenceTrainer, "_one_step", interrupted)
    for command, said in (
        (["predict", run, "--at", table, "--out", tmp_path / "p.csv"], "predict has written"),
        (["report", run], "report has written nothing, repeat it"),
        (["update", run, table], "the run is as it was before, or has all new rows"),
        (["fit", table, "--out", tmp_path / "new", *STEPS], "a fit goes on from its last"),
    ):
        assert invoke(monkeypatch, *command) == 1
        printed = capsys.readouterr().err
        assert said in printed
        assert ("a fit goes on" in printed) == (command[0] == "fit")


@pytest.mark.skipif(sys.platform != "linux", reason="names are bytes there")
def test_a_folder_whose_name_is_not_utf8(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / os.fsdecode(b"caf\xe9")
    out = home / "run"
    at = ["--at", table, "--out", home / "p.csv"]
    assert invoke(monkeypatch, "fit", table, "--out", out, *STEPS) == 0
    assert invoke(monkeypatch, "predict", out, *at) == 0
    assert invoke(monkeypatch, "report", out) == 0
    assert len(pd.read_csv(home / "p.csv")) == 40
    assert "<html" in (out / "report.html").read_text()


def test_an_update_that_is_cut_short_leaves_the_run_that_was_there(
    run: Path, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    later = pd.DataFrame({"t": pd.date_range("2026-01-03", periods=5, freq="h"), "a": 0.5})
    later.to_csv(tmp_path / "later.csv", index=False)
    before = len(dlfm.load(run).fitted_.data)

    def cut(*_: object) -> None:
        raise OSError("no space is left")

    with monkeypatch.context() as patch:
        patch.setattr("deeplfm.data.files.sealed._write_manifest", cut)
        assert invoke(patch, "update", run, tmp_path / "later.csv") == 1
    assert len(dlfm.load(run).fitted_.data) == before
    assert not files.unfinished(run)
    assert invoke(monkeypatch, "update", run, tmp_path / "later.csv") == 0
    assert len(dlfm.load(run).fitted_.data) == before + 5
    assert files.names(run) >= {"run.json", "model.json"}
