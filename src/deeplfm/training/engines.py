"""How the arithmetic of a step is carried out: as it is written, fused, compiled, or replayed.

    auto is graph on CUDA, native on a CPU;   both are fused where they cannot be had

What cannot be had is logged with its reason, and the next best is taken.
"""

import logging
from collections.abc import Callable, Sequence
from typing import Any, final

import torch
from torch import Tensor

from deeplfm.sums.backends import Level, up_to
from deeplfm.sums.c import library
from deeplfm.training.graphs import Graphs
from deeplfm.training.schedule import BACKENDS, Backend

logger = logging.getLogger(__name__)

_LEVELS: dict[Backend, Level] = {"plain": "plain", "compile": "plain", "fused": "fused"}


@final
class Engine:
    """Carries out steps; `used` is the place in BACKENDS of how the last one was."""

    def __init__(self, backend: Backend, generator: torch.Generator, *, alone: bool) -> None:
        self.backend: Backend = backend
        recorded = generator.device.type == "cuda" and alone and backend in ("auto", "graph")
        self._graphs = Graphs(generator) if recorded else None
        self._compiled: Callable[..., Any] | None = None
        self._cpu = generator.device.type == "cpu"
        if backend == "native" and not (self._cpu and library.is_built()):
            logger.warning("no compiled kernels for this device: steps are fused")
        self.used = BACKENDS.index("fused")

    def forget(self) -> None:
        """After a jump to another state: what was recorded before it is not used again."""
        if self._graphs is not None:
            self._graphs.forget()

    def step(self, key: object, given: Sequence[Tensor], compute: Callable[..., Tensor]) -> Tensor:
        """`compute(*given)`; steps of one key differ in what is given and random numbers only."""
        if self._graphs is not None:
            record = self._graphs.step(key, given, compute)
            if record is not None:
                self.used = BACKENDS.index("graph")
                return record
        # A compiler sees through plain operations; tables and kernels of our own it cannot fuse.
        level = _LEVELS.get(self.backend, "native")
        with up_to(level):
            record = compute(*given)
        self.used = BACKENDS.index(self.backend if level == "plain" else self._fast(level))
        return record

    def _fast(self, level: Level) -> str:
        return "native" if level == "native" and self._cpu and library.is_built() else "fused"

    def score(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """`function(*arguments)`, compiled if asked for."""
        if self.backend != "compile":
            return function(*arguments)
        if self._compiled is None:
            self._compiled = torch.compile(function, dynamic=False)
        try:
            return self._compiled(*arguments)
        except RuntimeError as error:  # no compiler on this machine, or what it cannot translate
            reason = str(error).strip().splitlines()[0]
            logger.warning("steps are not compiled: %s", reason)
            self.backend = "fused"
            return function(*arguments)
