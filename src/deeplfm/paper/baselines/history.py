"""What a fit records: the loss after each step, and when."""

import time

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from deeplfm.errors import NumericalError

Values = NDArray[np.float64]


class History:
    """Losses stay where they were computed until the end: reading one would stall the device."""

    def __init__(self) -> None:
        self._start = time.perf_counter()
        self._losses: list[Tensor] = []
        self._seconds: list[float] = []

    def add(self, loss: Tensor | float) -> None:
        """One more step."""
        number = (
            loss.detach() if isinstance(loss, Tensor) else torch.tensor(loss, dtype=torch.float64)
        )
        self._losses.append(number)
        self._seconds.append(time.perf_counter() - self._start)

    def arrays(self) -> dict[str, Values]:
        """step (from 1), loss, seconds since the start of the fit; finite or an error."""
        losses = torch.stack(self._losses).double().cpu().numpy()
        if not np.isfinite(losses).all():
            first = int(np.flatnonzero(~np.isfinite(losses))[0]) + 1
            raise NumericalError(
                f"the loss must stay finite; it was {losses[first - 1]} at step {first}. "
                "Lower the learning rate, or use dtype='float64'."
            )
        steps = np.arange(1, len(losses) + 1, dtype=np.float64)
        return {"step": steps, "loss": losses, "seconds": np.array(self._seconds)}
