"""Several starts of one model: trained side by side, the weak ones dropped on the way.

    after 20 % of the steps the better half goes on; for the best alone, a half of it after 50 %

Starts are compared by the ELBO. On an accelerator they run at the same time, each in a stream of
its own; every start has its own random numbers, so what it becomes does not depend on the others.
"""

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, final

import torch
from torch import Tensor

from deeplfm.data import files
from deeplfm.errors import InputError
from deeplfm.training.checkpoints import ENDING, Checkpoints
from deeplfm.training.loop import Trainer
from deeplfm.training.progress import Report

_NAME = "race"
RACE = _NAME + ENDING  # its checkpoint
_TOGETHER = 8  # starts at one time on one accelerator


@final
class Race:
    """Trainers of the same data and settings, by their number; `alive` are still in it."""

    def __init__(self, trainers: Sequence[Trainer], checkpoints: Checkpoints | None = None) -> None:
        if not trainers:
            raise InputError("trainers must hold one or more; got none. Add a start.")
        self.trainers, self.checkpoints = list(trainers), checkpoints
        self.training, self.processes = trainers[0].training, trainers[0].processes
        self.alive = list(range(len(trainers)))

    def run(self, until: int | None = None, report: Report | None = None) -> None:
        """Train up to step `until`, dropping starts at their marks, with checkpoints on the way."""
        last = self.training.steps if until is None else min(until, self.training.steps)
        while (now := self._step()) < min(last, max(self.trainers[k].end for k in self.alive)):
            target = min(self._next_stop(now), last)
            self._advance(target, report)
            kept = self._keep_at(target)
            if kept < len(self.alive):
                ranked = sorted(self.alive, key=lambda k: -self.trainers[k].bound())
                self.alive = sorted(ranked[:kept])
            if self.checkpoints is not None:
                self._save(self.checkpoints)

    def stop(self) -> None:
        """Give up the starts that have not begun; an error where none has."""
        begun = [k for k in self.alive if self.trainers[k].step > 0]
        if not begun:
            raise KeyboardInterrupt
        self.alive = begun

    def chosen(self) -> list[int]:
        """The starts to predict with: the best of those alive, or all of them."""
        if self.training.combine == "mixture" or len(self.alive) == 1:
            return list(self.alive)
        return [max(self.alive, key=lambda k: self.trainers[k].bound())]

    def resume(self) -> None:
        """Go on from the checkpoint, if there is one."""
        checkpoints = self.checkpoints
        if checkpoints is None:
            return

        def load() -> dict[str, Any] | None:
            found = checkpoints.load(_NAME)
            if found is None:
                return None
            with files.understood(checkpoints.folder / RACE):
                alive = [self._number(k) for k in found[1]["alive"]]
                return {"alive": alive, "state": found[0]}

        found = self.processes.share(load)
        if found is None:
            return
        self.alive = found["alive"]
        with files.understood(checkpoints.folder / RACE):
            for k in self.alive:
                self.trainers[k].restore(_within(f"{k}.", found["state"]))

    def _advance(self, target: int, report: Report | None) -> None:
        device = self.trainers[0].data.x.device
        side_by_side = device.type == "cuda" and len(self.alive) > 1
        side_by_side &= self.processes.size == 1  # which would have to sum in one order

        def one(k: int) -> None:
            self.trainers[k].run(until=target, report=report if k == self.alive[0] else None)

        def in_stream(k: int) -> None:
            stream = torch.cuda.Stream(device)
            stream.wait_stream(torch.cuda.default_stream(device))
            with torch.cuda.stream(stream):
                one(k)
            stream.synchronize()

        if side_by_side:
            with ThreadPoolExecutor(min(_TOGETHER, len(self.alive))) as pool:
                list(pool.map(in_stream, self.alive))
        else:
            for k in self.alive:
                one(k)

    def _save(self, checkpoints: Checkpoints) -> None:
        """All starts that are alive, in one file: an interruption leaves the state before."""
        states = {k: self.trainers[k].state() for k in self.alive}
        if self.processes.leads:
            parts = {f"{k}.{name}": v for k, one in states.items() for name, v in one.items()}
            checkpoints.save(_NAME, parts, alive=self.alive)

    def _number(self, k: object) -> int:
        if type(k) is not int or not 0 <= k < len(self.trainers):
            raise InputError(
                f"a start must be 0 to {len(self.trainers) - 1}; got {k!r}. Start anew."
            )
        return k

    def _step(self) -> int:
        return min(self.trainers[k].step for k in self.alive)

    def _marks(self) -> dict[int, int]:
        """How many starts go on after which step."""
        count, steps = len(self.trainers), self.training.steps
        marks = {max(1, round(0.2 * steps)): math.ceil(count / 2)}
        if self.training.combine == "best":
            marks[max(1, round(0.5 * steps))] = math.ceil(count / 4)
        return marks

    def _keep_at(self, step: int) -> int:
        return self._marks().get(step, len(self.trainers))

    def _next_stop(self, step: int) -> int:
        """The next mark or checkpoint."""
        stops = [mark for mark in self._marks() if mark > step and len(self.trainers) > 1]
        if self.checkpoints is not None:
            stops.append(
                (step // self.training.checkpoint_every + 1) * self.training.checkpoint_every
            )
        return min([*stops, self.training.steps])


def _within(prefix: str, state: dict[str, Tensor]) -> dict[str, Tensor]:
    """The part of a checkpoint that `prefix` marks."""
    return {k.removeprefix(prefix): v for k, v in state.items() if k.startswith(prefix)}
