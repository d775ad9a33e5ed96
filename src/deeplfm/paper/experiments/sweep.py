"""Many runs: one after the other, or side by side in processes, over one device or several.

What is done is kept, so a sweep that was interrupted goes on where it stopped; a run that fails
does not stop the others, unless what is wrong is the input: a file of data that is not there, say.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.queues import SimpleQueue
from pathlib import Path
from typing import final

from deeplfm.errors import InputError
from deeplfm.paper.experiments.registry import Cell, cells, smoke
from deeplfm.paper.experiments.run import result_file, run

Say = Callable[[str], object]

_device = "cpu"  # of this worker


@final
@dataclass(frozen=True)
class Sweep:
    """Where results go, where data are, and on what to run how many at a time."""

    out: Path
    devices: Sequence[str] = ("cpu",)
    jobs: int = 1
    data: Path | None = None
    short: bool = False  # the smoke versions

    def run(self, chosen: Sequence[Cell], say: Say) -> dict[str, str]:
        """Run those of `chosen` that are not done; the reasons of those that failed, by name."""
        left = [cell for cell in chosen if not result_file(cell, self.out).exists()]
        say(f"{len(chosen)} runs, {len(chosen) - len(left)} of them done before")
        failed = {}
        outcomes = self._one_by_one(left) if self.jobs == 1 else self._side_by_side(left)
        for count, (name, reason) in enumerate(outcomes, start=1):
            say(f"{count}/{len(left)} {name}" + (f": {reason}" if reason else ""))
            if reason:
                failed[name] = reason
        return failed

    def _one_by_one(self, left: Sequence[Cell]) -> Iterator[tuple[str, str]]:
        for cell in left:
            yield cell.name, _attempt(cell, self, self.devices[0])

    def _side_by_side(self, left: Sequence[Cell]) -> Iterator[tuple[str, str]]:
        """Workers know cells by name: settings never travel between processes."""
        context = get_context("spawn")
        devices: SimpleQueue[str] = context.SimpleQueue()
        for k in range(self.jobs):
            devices.put(self.devices[k % len(self.devices)])
        threads = max(1, (os.cpu_count() or 1) // self.jobs)
        with ProcessPoolExecutor(self.jobs, context, _begin, (devices, threads)) as pool:
            running: dict[Future[str], str] = {
                pool.submit(_work, cell.experiment, cell.name, self): cell.name for cell in left
            }
            try:
                for done in as_completed(running):
                    error = done.exception()
                    if isinstance(error, InputError):
                        raise error
                    yield running[done], f"{error!r}" if error else done.result()
            finally:
                pool.shutdown(wait=True, cancel_futures=True)


def _begin(devices: "SimpleQueue[str]", threads: int) -> None:
    import torch

    global _device
    _device = devices.get()
    torch.set_num_threads(threads)


def _work(experiment: str, name: str, sweep: Sweep) -> str:
    cell = next(cell for cell in cells(experiment) if cell.name == name)
    return _attempt(cell, sweep, _device)


def _attempt(cell: Cell, sweep: Sweep, device: str) -> str:
    """Why it failed, or nothing. What is wrong with one model says nothing of the others."""
    try:
        run(smoke(cell) if sweep.short else cell, sweep.out, device=device, data=sweep.data)
    except InputError:
        raise
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""
