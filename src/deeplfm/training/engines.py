"""How steps are carried out: as they are written, or recorded once as a CUDA graph and replayed.

backend "auto" on CUDA records steps; where that cannot be, the reason is logged
"""

import logging
from collections.abc import Callable, Sequence
from typing import final

import torch
from torch import Tensor

from deeplfm.sums import Backend, fastest
from deeplfm.training.graphs import Graphs
from deeplfm.training.schedule import USED

logger = logging.getLogger(__name__)


@final
class Engine:
    """Carries out steps; `used` is the place in USED of how the last one was computed."""

    def __init__(self, backend: Backend, generator: torch.Generator, *, alone: bool) -> None:
        recorded = generator.device.type == "cuda" and alone and backend == "auto"
        self._graphs = Graphs(generator) if recorded else None
        family = fastest(backend, generator.device)
        if backend not in ("auto", family):
            logger.warning("backend %s is not to be had here: steps are %s", backend, family)
        self._family = USED.index(family)
        self.used = self._family

    def forget(self) -> None:
        """After a jump to another state: what was recorded before it is not used again."""
        if self._graphs is not None:
            self._graphs.forget()

    def step(self, key: object, given: Sequence[Tensor], compute: Callable[..., Tensor]) -> Tensor:
        """`compute(*given)`; steps of one key differ in what is given and random numbers only."""
        if self._graphs is not None:
            record = self._graphs.step(key, given, compute)
            if record is not None:
                self.used = USED.index("graph")
                return record
        self.used = self._family
        return compute(*given)
