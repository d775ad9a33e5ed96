"""Where the bound of a training has stopped rising, and what is said of it.

    rise = mean loss of the window before - mean loss of the last window, in nats

After two small rises in a row the rate falls to 0 over one window more, and the training ends.
"""

import math
from collections.abc import Mapping, Sequence
from typing import final

import numpy as np
from numpy.typing import NDArray

from deeplfm.training.schedule import Training

_WINDOWS = 15  # in all steps of a training
_LEAST, _MOST = 10, 60  # steps of a window
_SMALL = 0.5  # nats: what says nothing for one model against another
_SURE = 1.0  # nats of doubt about a fall, at most
_RISING = 5.0  # nats in the last third of the steps: what a better fit would have


@final
class Ending:
    """When a training ends, and the rate of each of its steps; the losses so far decide.

    A pure function of them: a training that is resumed ends where it would have ended.
    """

    def __init__(self, training: Training) -> None:
        self._training = training
        self._window = _window(training.steps)
        self._falls_from: int | None = None
        self.step = training.steps  # the last one
        stages = [one.until for one in training.stages if one.until < 1]
        self.first = math.ceil(max([0.0, *stages]) * training.steps)  # of the last stage
        self.seen = 3 * self._window  # so many losses, the last ones, decide

    @property
    def is_open(self) -> bool:
        """Whether it may end sooner; several starts, and steps by held-out blocks, do not."""
        own = self._training
        wanted = own.stop_early and own.restarts == 1 and own.held_out == 0
        return wanted and self._falls_from is None

    def is_flat(self, losses: Sequence[float]) -> bool:
        """Whether losses so far say that the bound has stopped rising."""
        return self.is_open and is_flat(losses, self._window)

    def look(self, step: int, losses: Sequence[float]) -> None:
        """End a window after this step where the bound has stopped rising."""
        if step < self.step and self.is_flat(losses):
            self._falls_from, self.step = step, min(self.step, step + self._window)

    def is_time(self, step: int) -> bool:
        """Whether a window ends at this step: the time to look."""
        return step > 0 and step % self._window == 0

    def rate(self, step: int) -> float:
        """That of the schedule; it falls to 0 over the last window."""
        rate = self._training.learning_rate_at(step)
        if self._falls_from is None:
            return rate
        return rate * (self.step - step) / (self.step - self._falls_from)


def _window(steps: int) -> int:
    """How many steps a window has."""
    return min(_MOST, max(_LEAST, steps // _WINDOWS))


def is_flat(losses: Sequence[float], window: int) -> bool:
    """Whether the losses of the last three windows fell by next to nothing, twice, beyond doubt.

    Losses of draws are noisy: where means of windows are too, nobody can say, and training goes on.
    """
    if len(losses) < 3 * window:
        return False
    parts = np.asarray(losses[-3 * window :], dtype=np.float64).reshape(3, window)
    falls = -np.diff(parts.mean(1))
    doubts = np.sqrt((parts.var(1)[:-1] + parts.var(1)[1:]) / window)
    return bool((falls + doubts < _SMALL).all() and (doubts < _SURE).all())


def said(training: Training, losses: NDArray[np.float64]) -> str:
    """Whether the bound had stopped rising, in a sentence."""
    taken, steps = len(losses), training.steps
    if taken < steps:
        return f"The bound had stopped rising: training ended after {taken} of {steps} steps."
    third = max(1, steps // 3)
    width = max(1, min(_window(steps), third // 2))
    began, ended = losses[-third:][:width], losses[-width:]
    rise = float(began.mean() - ended.mean())
    doubt = math.sqrt(float(began.var() + ended.var()) / width)
    if rise - 2 * doubt > _RISING:
        return (
            f"The bound was still rising when its {steps} steps were over, by {rise:.0f} nats in "
            "the last third of them."
        )
    return f"The bound had nearly stopped rising after {steps} steps."


def sentence_of(training: Training, history: Mapping[str, NDArray[np.float64]]) -> str | None:
    """What a recorded training says of its end; None where nothing was recorded."""
    losses = history.get("loss", np.empty(0))
    return said(training, np.asarray(losses, dtype=np.float64)) if len(losses) else None
