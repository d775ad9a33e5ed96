"""Several processes train the model that one would: real ones, over the loopback of this machine.

What they do is in `companions.py`.
"""

import itertools
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

import deeplfm as dlfm
from companions import GRADIENTS, STEPS, gaps, gradients, moved, parameters, start
from deeplfm.app import cli
from deeplfm.data import cardiac, files
from deeplfm.objectives import Batch
from deeplfm.training import Processes, Trainer
from small_models import deep

SCRIPT = str(Path(__file__).parent.parent / "companions.py")


def play(size: int, folder: Path, *scenes: str) -> None:
    processes = start(size, [SCRIPT, str(folder), *scenes])
    errors = [process.communicate(timeout=120)[1] for process in processes]
    assert all(process.returncode == 0 for process in processes), errors


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("two")
    play(2, folder, "sums", "steps", "fit")
    return folder


@pytest.fixture(scope="module")
def four(two: Path) -> Path:
    """After two, whose checkpoint it goes on from."""
    play(4, two, "sums", "more")
    return two


def written(folder: Path, scene: str, size: int) -> list[dict[str, torch.Tensor]]:
    return [files.load_tensors(folder / f"{scene}_{rank}_of_{size}") for rank in range(size)]


def sizes_of_sums(training: dlfm.Training) -> torch.Tensor:
    """For every gradient the sum of |what each row adds|: its rounding is relative to that."""
    trainer = Trainer(moved(), gaps(), training, 0)
    given, batch_of = trainer._batch()
    batch = batch_of(*given)
    total = torch.zeros(())
    for row in range(len(batch.x)):
        one = slice(row, row + 1)
        alone = Batch(batch.x[one], batch.y[one], batch.observed[one], batch.total)
        stage = trainer._prepare()
        trainer.generator.manual_seed(5)
        record = trainer._gradients(alone, stage)
        found = [p.grad.flatten() for p in trainer._parameters() if p.grad is not None]
        total = total + torch.cat([record, *found]).abs() / len(batch.x)
    return total


@pytest.mark.parametrize("size", [2, 4])
@pytest.mark.parametrize("case", GRADIENTS)
def test_gradients_are_those_of_one_process(
    case: str, size: int, two: Path, request: pytest.FixtureRequest
) -> None:
    """The same draws everywhere: what differs is the order of sums, of a few hundred terms each."""
    folder = two if size == 2 else request.getfixturevalue("four")
    alone = gradients(GRADIENTS[case])
    allowed = 1000 * torch.finfo(torch.float64).eps * sizes_of_sums(GRADIENTS[case])
    if case == "clipped":  # by 0.5 / norm, which is rounded too
        free = gradients(replace(GRADIENTS[case], gradient_norm=None))[3:]
        assert free.norm() > 1
        allowed[3:] += free.abs() * allowed[3:].norm() / free.norm()
        allowed[3:] *= 0.5 / free.norm()
    for found in written(folder, "sums", size):
        assert ((found[case] - alone).abs() <= allowed).all()
    assert (alone.abs() > 1e6 * allowed).float().mean() > 0.9  # a share too many would be seen
    assert alone[2] > 1  # and a KL too many


def test_all_processes_have_the_same_parameters_and_draws_of_their_own(two: Path) -> None:
    first, second = written(two, "steps", 2)
    assert torch.equal(first["whole"], second["whole"])
    assert torch.equal(first["loss"], second["loss"])
    assert not torch.equal(first["draw"], second["draw"])
    assert not torch.equal(first["whole"], parameters(Trainer(deep(), gaps(), STEPS, 1)))


def test_a_checkpoint_goes_on_with_as_many_processes_to_the_same(two: Path) -> None:
    for found in written(two, "steps", 2):
        assert torch.equal(found["whole"], found["resumed"])


def test_a_checkpoint_goes_on_with_one_process(two: Path) -> None:
    trainer = Trainer(deep(), gaps(), STEPS, 1)
    trainer.restore(files.load_tensors(two / "checkpoint_of_2"))
    assert trainer.step == 10
    trainer.run()
    losses = trainer.history()["loss"]
    assert torch.equal(losses[:10], written(two, "steps", 2)[0]["loss"][:10])
    assert losses.isfinite().all()
    assert len(losses) == STEPS.steps


def test_a_checkpoint_goes_on_with_more_processes(four: Path) -> None:
    first, *others = written(four, "more", 4)
    for other in others:
        assert torch.equal(first["resumed"], other["resumed"])
    draws = {tuple(found["draw"].tolist()) for found in (first, *others)}
    assert len(draws) == 4
    assert first["started_at"] == 10
    assert torch.equal(first["loss"][:10], written(four, "steps", 2)[0]["loss"][:10])
    assert len(first["loss"]) == STEPS.steps


def test_what_breaks_in_one_process_takes_all_back(four: Path) -> None:
    for found in written(four, "more", 4):
        assert torch.equal(found["restored"], found["good"])


def test_a_fit_decides_the_same_everywhere(two: Path) -> None:
    first, second = written(two, "fit", 2)
    assert torch.equal(first["mean"], second["mean"])
    assert torch.equal(first["stored"], second["stored"])
    assert torch.equal(first["stored"], first["in memory"])  # one piece: the same sums
    assert first["steps"] == second["steps"]
    assert first["refused"]
    assert second["refused"]
    assert (two / "fit" / "race.safetensors").exists()


def test_shares_differ_by_one_row_at_most() -> None:
    for count, size in [(7, 2), (13, 4), (8, 4), (5, 5)]:
        shares = [list(range(count))[Processes(rank, size).part(count)] for rank in range(size)]
        assert sorted(itertools.chain(*shares)) == list(range(count))
        assert max(map(len, shares)) - min(map(len, shares)) <= 1
    with pytest.raises(dlfm.InputError, match=r"at least as many as processes \(4\); got 3"):
        Processes(0, 4).part(3)


def test_a_process_that_does_not_answer_ends_the_wait(tmp_path: Path) -> None:
    first, second = start(2, [SCRIPT, str(tmp_path), "silence"])
    _, error = first.communicate(timeout=60)
    second.kill()
    second.communicate()
    assert first.returncode == 0, error
    seconds, said = (tmp_path / "silence.txt").read_text().split(maxsplit=1)
    assert float(seconds) < 10
    assert said.startswith("all processes of a run must stay to its end")


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    series = cardiac(40)
    frame = pd.DataFrame({"t": series.times, "abp": series.training()[:, 0]})
    path = tmp_path_factory.mktemp("data") / "data.csv"
    frame.to_csv(path, index=False)
    return path


OPTIONS = ["--model", "fourier", "--samples", "1", "--hidden-dim", "1"]
OPTIONS += ["--checkpoint-every", "5"]


def invoke(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    monkeypatch.setattr(sys, "argv", ["deeplfm", *map(str, arguments)])
    try:
        cli.main()
    except SystemExit as stopped:
        return int(stopped.code or 0)
    return 0


def test_a_killed_process_ends_the_run_which_goes_on_from_its_checkpoint(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "run"
    fit = ["fit", str(table), "--out", str(out), "--steps", "100", *OPTIONS]
    first, second = start(2, ["-m", "deeplfm", *fit])
    while not (out / "checkpoints" / "race.safetensors").exists() and first.poll() is None:
        time.sleep(0.01)
    second.send_signal(signal.SIGKILL)
    killed = time.monotonic()
    _, error = first.communicate(timeout=60)
    second.communicate()
    assert time.monotonic() - killed < 10
    assert first.returncode == 1
    assert error.count("\n") == 1
    assert "another one has ended or does not answer" in error
    assert "Go on from the last checkpoint (--resume)" in error
    assert invoke(monkeypatch, *fit, "--resume") == 0
    history = dlfm.load(out).history_
    assert len(history["loss"]) == 100
    assert np.isfinite(history["loss"]).all()


def test_torchrun_makes_a_run_that_can_be_read(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, predictions = tmp_path / "run", tmp_path / "predictions.csv"
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2", "-m"]
    torchrun += ["deeplfm", "fit", str(table), "--out", str(out), "--steps", "10", *OPTIONS]
    paths = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run(torchrun, capture_output=True, text=True, env=paths)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("10 steps in ") == done.stdout.count("Model: ") == 1  # one writer
    assert invoke(monkeypatch, "predict", out, "--at", table, "--out", predictions) == 0
    found = pd.read_csv(predictions)
    assert len(found) == 40
    assert np.isfinite(found["abp_mean"]).all()


def test_errors_are_told_once(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "run.json").write_text("{}")
    processes = start(2, ["-m", "deeplfm", "fit", str(table), "--out", str(tmp_path), *OPTIONS])
    errors = [process.communicate(timeout=60)[1] for process in processes]
    assert [process.returncode for process in processes] == [2, 2]
    assert errors[0].startswith("deeplfm: --out must be a new folder")
    assert errors[1] == ""
    monkeypatch.setenv("RANK", "1")
    assert invoke(monkeypatch, "predict", tmp_path, "--at", table, "--out", "p.csv") == 2
    assert "only fit can run in several processes; got ['predict']" in capsys.readouterr().err
