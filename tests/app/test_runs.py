"""Runs on the command line: the same as in Python, resumed exactly, and nothing half-written."""

import json
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import deeplfm as dlfm
from deeplfm.app import cli
from deeplfm.data import cardiac

STEPS = ["--model", "fourier", "--steps", "30", "--samples", "2"]
STEPS += ["--checkpoint-every", "5", "--hidden-dim", "2"]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    series = cardiac(80)
    frame = pd.DataFrame({"t": series.times}).join(
        pd.DataFrame(series.training(), columns=["abp", "ecg", "icp"])
    )
    path = tmp_path_factory.mktemp("data") / "data.csv"
    frame.to_csv(path, index=False)
    return path


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "deeplfm", *map(str, arguments)]


def run(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(*arguments), capture_output=True, text=True, **options)


def invoke(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    """As `run`, in this process: the exit code."""
    monkeypatch.setattr(sys, "argv", ["deeplfm", *map(str, arguments)])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    return int(stopped.value.code or 0)


@pytest.fixture(scope="module")
def whole(table: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An uninterrupted run."""
    out = tmp_path_factory.mktemp("runs") / "whole"
    done = run("fit", table, "--inputs", "t", "--outputs", "abp,ecg,icp", "--out", out, *STEPS)
    assert done.returncode == 0, done.stderr
    assert "30 steps" in done.stdout
    assert "missing" in done.stdout
    return out


def test_a_run_is_the_fit_in_python(whole: Path, table: Path, tmp_path: Path) -> None:
    assert sorted(path.name for path in whole.iterdir()) == [
        "data.safetensors", "manifest.json", "model.json", "model.safetensors", "run.json"
    ]  # fmt: skip
    grid = tmp_path / "grid.csv"
    pd.DataFrame({"note": ["x"] * 9, "t": np.linspace(0, 4, 9)}).to_csv(grid, index=False)
    done = run("predict", whole, "--at", grid, "--out", tmp_path / "new" / "predictions.csv")
    assert done.returncode == 0, done.stderr
    found = pd.read_csv(tmp_path / "new" / "predictions.csv")
    frame = pd.read_csv(table)
    code = f"""
import sys, pandas as pd, numpy as np, deeplfm as dlfm
frame = pd.read_csv({str(table)!r})
model = dlfm.DeepLFMRegressor(
    dlfm.FourierDLFM(hidden_dim=2), dlfm.Training(steps=30, num_samples=2), seed=0)
model.fit(frame[["t"]], frame[["abp", "ecg", "icp"]])
p = model.predictive(pd.read_csv({str(grid)!r})[["t"]])
np.savez({str(tmp_path / "python.npz")!r}, mean=p.mean, std=p.std, p05=p.quantile(0.05))
"""
    subprocess.run([sys.executable, "-c", code], check=True)
    python = np.load(tmp_path / "python.npz")
    assert list(found.columns)[:6] == ["t", "abp_mean", "abp_std", "abp_p05", "abp_p50", "abp_p95"]
    for name in ("mean", "std", "p05"):
        columns = [f"{output}_{name}" for output in frame.columns[1:]]
        np.testing.assert_array_equal(found[columns].to_numpy(), python[name])


def same_model(one: Path, two: Path) -> bool:
    grid = pd.DataFrame({"t": np.linspace(0, 4, 9)})
    return np.array_equal(dlfm.load(one).predict(grid), dlfm.load(two).predict(grid))


@pytest.mark.parametrize("after", [0.0, 0.4])
def test_killed_at_any_moment_it_resumes_to_the_same(
    whole: Path, table: Path, tmp_path: Path, after: float
) -> None:
    out = tmp_path / "run"
    fit = ["fit", table, "--inputs", "t", "--outputs", "abp,ecg,icp", "--out", out, *STEPS]
    process = subprocess.Popen(command(*fit), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not (out / "run.json").exists() and process.poll() is None:
        time.sleep(0.01)
    if after:
        while not (out / "checkpoints" / "race.safetensors").exists() and process.poll() is None:
            time.sleep(0.01)
    time.sleep(after / 10)
    process.send_signal(signal.SIGKILL)
    process.wait()
    for path in out.rglob("*.json"):
        if not path.name.startswith("."):
            json.loads(path.read_text())
    if not (out / "model.json").exists():
        opened = run("report", out)
        assert opened.returncode == 2
        assert "its fit was interrupted. Continue it with" in opened.stderr
    resumed = run(*fit, "--resume")
    assert resumed.returncode == 0, resumed.stderr
    assert same_model(whole, out)
    assert not (out / "checkpoints").exists()


def heard() -> None:
    """A job in the background of a shell ignores interrupts, and so would what it starts."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_an_interrupt_from_the_keyboard_says_how_to_go_on(table: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    process = subprocess.Popen(
        command("fit", table, "--out", out, *STEPS, "--steps", "5000"),
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        preexec_fn=heard,
    )  # fmt: skip
    while not (out / "checkpoints" / "race.safetensors").exists() and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 1
    assert error == "deeplfm: interrupted; a fit goes on from its last checkpoint with --resume\n"


def test_resume_says_what_is_wrong(
    whole: Path,
    table: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert invoke(monkeypatch, "fit", table, "--out", tmp_path / "none", *STEPS, "--resume") == 2
    assert "needs a run to continue" in capsys.readouterr().err
    assert not (tmp_path / "none").exists()
    finished = ["fit", table, "--inputs", "t", "--outputs", "abp,ecg,icp", "--out", whole]
    assert invoke(monkeypatch, *finished, *STEPS, "--seed", "1", "--resume") == 2
    assert "got other seed" in capsys.readouterr().err
    assert invoke(monkeypatch, *finished, *STEPS, "--resume") == 0
    assert "is finished: there is nothing to resume" in capsys.readouterr().out.replace("\n", " ")
    begun = tmp_path / "begun"
    begun.mkdir()
    request = json.loads((whole / "run.json").read_text())
    del request["format"]  # as it was written before there were manifests
    (begun / "run.json").write_text(json.dumps(request))
    assert invoke(monkeypatch, *finished[:-1], begun, "--seed", "1", *STEPS, "--resume") == 2
    assert "got other seed. Repeat the same command" in capsys.readouterr().err
    assert invoke(monkeypatch, *finished, *STEPS) == 2
    assert "holds a run already" in capsys.readouterr().err


BAD: dict[str, tuple[str | bytes, list[str], str]] = {
    "empty": ("", [], "is empty"),
    "binary": (b"\0\1\2", [], "is binary"),
    "text in a number column": ("t,a\n1,2\n2,x\n", [], "got 'x' in row 2"),
    "an output never seen": ("t,a,b\n1,2,\n2,3,\n", [], "got only NaN in 'b'"),
    "one row": ("t,a\n1,2\n", [], "got 1 sample"),
    "infinite": ("t,a\n1,inf\n2,3\n", [], "1 infinite entries"),
    "infinite input": ("t,a\ninf,1\n2,3\n", [], "NaN or infinite entries"),
    "an unknown column": ("t,a\n1,2\n2,3\n", ["--outputs", "b"], "it has 't', 'a'. Correct 'b'"),
    "negative steps": ("t,a\n1,2\n2,3\n", ["--steps", "-5"], "steps must be an integer"),
    "an unknown device": ("t,a\n1,2\n2,3\n", ["--device", "tpu"], "device must be one of"),
    "an unknown model": ("t,a\n1,2\n2,3\n", ["--model", "lstm"], "--model must be one of"),
    "an unknown type": ("t,a\n1,2\n2,3\n", ["--dtype", "half"], "dtype must be one of"),
    "a negative seed": ("t,a\n1,2\n2,3\n", ["--seed", "-1"], "seed must be 0 or more"),
    "all at one time": ("t,a\n1,2\n1,3\n1,4\n", [], "must differ from row to row; got 3 equal"),
    "nothing to fit": ("t\n1\n2\n", [], "a column to fit besides 't'"),
}


@pytest.mark.parametrize("case", BAD)
@pytest.mark.usefixtures("without_shape_checks")
def test_bad_input_is_one_sentence_and_leaves_nothing(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    content, options, message = BAD[case]
    data, out = tmp_path / "data.csv", tmp_path / "run"
    data.write_bytes(content.encode() if isinstance(content, str) else content)
    assert invoke(monkeypatch, "fit", data, "--out", out, *options) == 2
    printed = capsys.readouterr().err.strip()
    assert message in printed
    assert "\n" not in printed
    assert not out.exists()


def test_predict_and_report_of_what_is_no_run(
    tmp_path: Path,
    whole: Path,
    table: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    grid = tmp_path / "grid.csv"
    grid.write_text("time\n1\n")
    out = tmp_path / "p.csv"
    for arguments, message in [
        (["report", tmp_path], "must hold a saved model"),
        (["predict", whole, "--at", grid, "--out", out], "it has 'time'. Correct 't'"),
        (["predict", whole, "--at", tmp_path / "no.csv", "--out", out], "got nothing"),
        (["predict", whole, "--at", grid, "--out", grid], "must be another file than --at"),
        (["predict", whole, "--at", grid, "--out", tmp_path / "p.xlsx"], "must end in one of .csv"),
        (["report", whole, "--held-out", table], "must hold observations that were not fitted"),
    ]:
        assert invoke(monkeypatch, *arguments) == 2
        assert message in capsys.readouterr().err
    assert not out.exists()


def test_folders_that_cannot_be_written(table: Path, tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    done = run("fit", table, "--out", blocked / "inside", *STEPS)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "could not read or write" in done.stderr
    done = run("fit", table, "--out", blocked, *STEPS)
    assert done.returncode == 2
    assert "is a file" in done.stderr


def test_a_full_disk_keeps_the_last_checkpoint(whole: Path, table: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    fit = ["fit", table, "--inputs", "t", "--outputs", "abp,ecg,icp", "--out", out, *STEPS]
    # A checkpoint grows with its history: this limit lets the first ones through, and no more.
    probe = tmp_path / "probe"
    process = subprocess.Popen(
        command(*fit[:-len(STEPS) - 1], probe, *STEPS),
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    while not (probe / "checkpoints" / "race.safetensors").exists() and process.poll() is None:
        time.sleep(0.01)
    process.kill()
    process.wait()
    sizes = [path.stat().st_size for path in (probe / "checkpoints").glob("race*")]
    limit = min(sizes) + 150

    def small_files() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    done = run(*fit, preexec_fn=small_files)
    assert done.returncode == 1, done.stdout
    assert done.stderr.count("\n") == 1
    assert "could not read or write a file" in done.stderr
    assert (out / "checkpoints" / "race.safetensors").exists()
    resumed = run(*fit, "--resume")
    assert resumed.returncode == 0, resumed.stderr
    assert same_model(whole, out)
