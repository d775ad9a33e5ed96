"""The history of a fit: the loss after each step, and when it was recorded."""

import time

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from deeplfm.errors import NumericalError

Values = NDArray[np.float64]


class History:
    """Losses stay on their device until the end: reading one would make the device wait."""

    def __init__(self) -> None:
        self._start = time.perf_counter()
        self._losses: list[Tensor] = []
        self._seconds: list[float] = []

    def add(self, loss: Tensor | float) -> None:
        """Record the loss of one more step."""
        self._losses.append(torch.as_tensor(loss, dtype=torch.float64).detach())
        self._seconds.append(time.perf_counter() - self._start)

    def arrays(self) -> dict[str, Values]:
        """The columns step (from 1), loss, and seconds since the start of the fit.

        A loss that is not finite is an error. A baseline that recorded no step has empty columns.
        """
        losses = torch.stack(self._losses).cpu().numpy() if self._losses else np.empty(0)
        if not np.isfinite(losses).all():
            first = int(np.flatnonzero(~np.isfinite(losses))[0]) + 1
            raise NumericalError(
                f"the loss must stay finite; it was {losses[first - 1]} at step {first}. "
                "Lower the learning rate, or use dtype='float64'."
            )
        steps = np.arange(1, len(losses) + 1, dtype=np.float64)
        return {"step": steps, "loss": losses, "seconds": np.array(self._seconds)}
