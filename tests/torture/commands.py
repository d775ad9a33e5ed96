"""Commands in children of a process that has imported everything, killed where one likes.

A child is forked, so a command takes the time of its work; the parent never computes a gradient.
"""

import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

import deeplfm as dlfm
from deeplfm.app import cli, runs

KILLED = 137
_PATIENCE = 120.0  # seconds for a command
_ROUTES: dict[str, list[str]] = {
    "markov": ["--steps", "6", "--checkpoint-every", "2"],
    "fourier": ["--steps", "6", "--checkpoint-every", "2", "--samples", "1", "--restarts", "2"],
    "rows": ["--steps", "6", "--checkpoint-every", "2", "--samples", "1", "--batch-size", "20"],
}
ROUTES = tuple(_ROUTES)


class Ended(NamedTuple):
    """How a command ended: its code and what it said of an error."""

    code: int
    said: str

    @property
    def one_sentence(self) -> bool:
        return self.said.startswith("deeplfm: ") and self.said.count("\n") == 1


def tables(folder: Path) -> None:
    """A table with dates, and the times to predict at."""
    times = pd.date_range("2026-01-01", periods=48, freq="h")
    hours = np.arange(48.0)
    frame = pd.DataFrame({"t": times, "a": np.sin(hours / 3), "b": 5 + np.cos(hours / 4)})
    frame.loc[7:9, "a"] = np.nan
    frame.to_csv(folder / "data.csv", index=False)
    frame.to_parquet(folder / "data.parquet", row_group_size=16)
    pd.DataFrame({"t": times[::9] + pd.Timedelta("7min")}).to_csv(folder / "at.csv", index=False)


def fit(route: str, home: Path, out: Path, *more: str) -> list[str]:
    """A fit of a small model, as somebody types it."""
    data = home / ("data.parquet" if route == "rows" else "data.csv")
    model = "markov" if route == "markov" else "fourier"
    return ["fit", str(data), "--out", str(out), "--model", model, *_ROUTES[route], *more]


def start(arguments: list[str], before: Callable[[], object] | None = None) -> tuple[int, Path]:
    """The process of a command, and the file of its errors."""
    descriptor, name = tempfile.mkstemp()
    os.close(descriptor)
    pid = os.fork()
    if pid == 0:
        code = 70
        try:
            _become(arguments, Path(name), before)
            cli.main()
            code = 0
        except SystemExit as stopped:
            code = int(stopped.code or 0)
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)
    return pid, Path(name)


def end(process: tuple[int, Path]) -> Ended:
    """Wait for a command."""
    pid, errors = process
    began = time.monotonic()
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            break
        if time.monotonic() - began > _PATIENCE:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            status = 71 << 8
            break
        time.sleep(0.005)
    said = errors.read_text()
    errors.unlink()
    return Ended(KILLED if os.WIFSIGNALED(status) else os.waitstatus_to_exitcode(status), said)


def run(arguments: list[str], before: Callable[[], object] | None = None) -> Ended:
    return end(start(arguments, before))


def answer(out: Path, home: Path) -> bytes | Ended:
    """The predictions of a run as they are written, or how it ended."""
    predictions = home / f"{out.name}.predictions.csv"
    predictions.unlink(missing_ok=True)
    ended = run(["predict", str(out), "--at", str(home / "at.csv"), "--out", str(predictions)])
    return predictions.read_bytes() if ended.code == 0 else ended


def listing(out: Path) -> list[str]:
    return sorted(str(path.relative_to(out)) for path in out.rglob("*"))


def crash_before(operation: int, out: Path, counted: Path | None = None) -> None:
    """End this process before its n-th operation that changes files under `out`."""
    place, done = str(out), 0

    def changes(event: str, args: tuple[Any, ...]) -> bool:
        if event == "open":
            path, flags = args[0], args[2] or 0
            writes = flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
            return bool(writes) and str(path).startswith(place)
        if event in ("os.rename", "os.mkdir", "os.truncate"):
            return str(args[0]).startswith(place)
        if event in ("os.remove", "os.rmdir"):  # of a whole tree: relative to an open folder
            return str(args[0]).startswith(place) or args[1] not in (None, -1)
        return False

    def hook(event: str, args: tuple[Any, ...]) -> None:
        nonlocal done
        if not changes(event, args):
            return
        if done == operation:
            os._exit(KILLED)
        done += 1
        if counted is not None:
            os.pwrite(1000, b"x", done)

    if counted is not None:
        os.dup2(os.open(counted, os.O_RDWR | os.O_CREAT), 1000)
    sys.addaudithook(hook)


def copied(source: Path, target: Path) -> Path:
    shutil.rmtree(target, ignore_errors=True)
    return shutil.copytree(source, target)


def _become(arguments: list[str], errors: Path, before: Callable[[], object] | None) -> None:
    sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - until the process ends
    sys.stderr = errors.open("w")
    sys.argv = ["deeplfm", *arguments]
    runs.LARGE = 100 if "--batch-size" in arguments else runs.LARGE
    cli._RECIPES["markov"] = lambda: dlfm.MarkovDLFM(modes=2)
    cli._RECIPES["fourier"] = lambda: dlfm.FourierDLFM(num_features=4, hidden_dim=1)
    if before is not None:
        before()
