"""Many runs: one after the other, or side by side in processes, over one device or several.

Runs that are done are kept, so a sweep that was interrupted goes on where it stopped. A run that
fails does not stop the others, unless its input is wrong: a data file that does not exist, say.
"""

import os
import pickle
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.queues import SimpleQueue
from pathlib import Path
from typing import final

from deeplfm.errors import InputError
from deeplfm.paper.baselines import registered_baselines
from deeplfm.paper.datasets import registered_data_sets
from deeplfm.paper.experiments.registry import Cell, cells, smoke
from deeplfm.paper.experiments.run import result_file, run

Say = Callable[[str], object]

_device = "cpu"  # the device of this worker


@final
@dataclass(frozen=True)
class Sweep:
    """The settings with which many cells are run.

    out:     the folder of the results.
    devices: the devices that runs are shared out over.
    jobs:    how many runs at a time, in processes.
    data:    the folder of data files.
    short:   run the smoke versions.
    """

    out: Path
    devices: Sequence[str] = ("cpu",)
    jobs: int = 1
    data: Path | None = None
    short: bool = False

    def run(self, chosen: Sequence[Cell], say: Say) -> dict[str, str]:
        """Do those runs of `chosen` that are missing; why runs failed, by their names."""
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
        """Workers know cells by name: settings never travel between processes.

        Classes and functions that were registered from outside do, by reference: a worker that
        reads a reference imports its module, which registers them there too.
        """
        from_outside = _registered_from_outside()
        context = get_context("spawn")
        devices: SimpleQueue[str] = context.SimpleQueue()
        for k in range(self.jobs):
            devices.put(self.devices[k % len(self.devices)])
        threads = max(1, (os.cpu_count() or 1) // self.jobs)
        with ProcessPoolExecutor(
            self.jobs, context, _begin, (devices, threads, from_outside)
        ) as pool:
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


def _registered_from_outside() -> list[Callable[..., object]]:
    """Baselines and data sets of the user's own modules, which workers must import."""
    everything: list[Callable[..., object]] = []
    everything += [entry.cls for entry in registered_baselines().values()]
    everything += [entry.load for entry in registered_data_sets().values()]
    outside = [made for made in everything if not made.__module__.startswith("deeplfm.")]
    for made in outside:
        try:
            pickle.dumps(made)
        except (pickle.PicklingError, AttributeError):
            raise InputError(
                f"{made.__qualname__} must be defined at the top of a file, so that other "
                "processes can import it; it is not. Move it there, or run one job at a time."
            ) from None
    return outside


def _begin(
    devices: "SimpleQueue[str]", threads: int, from_outside: list[Callable[..., object]]
) -> None:
    """Prepare a worker; `from_outside` has done its work when it was read."""
    import torch

    global _device
    _device = devices.get()
    torch.set_num_threads(threads)


def _work(experiment: str, name: str, sweep: Sweep) -> str:
    cell = next(cell for cell in cells(experiment) if cell.name == name)
    return _attempt(cell, sweep, _device)


def _attempt(cell: Cell, sweep: Sweep, device: str) -> str:
    """Run a cell; why it failed, or nothing. Other models may still be fine."""
    try:
        run(smoke(cell) if sweep.short else cell, sweep.out, device=device, data=sweep.data)
    except InputError:
        raise
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""
