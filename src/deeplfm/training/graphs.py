"""Steps as CUDA graphs: recorded once, replayed without waiting for Python.

A step that was recorded draws, scores, differentiates and updates in place, with fresh random
numbers at each replay. What changes from step to step (rows, rate) is written into tensors first.
"""

import logging
import threading
from collections.abc import Callable, Sequence
from typing import final

import torch
from torch import Tensor

logger = logging.getLogger(__name__)

_WARM = 2  # steps that run as usual before one is recorded: kernels are compiled in them
_recording = threading.Lock()  # starts that train side by side record one after the other


@final
class Graphs:
    """Recorded steps by what makes them differ; where recording fails, none, and the reason."""

    def __init__(self, generator: torch.Generator) -> None:
        self.generator = generator
        self.failed = False
        self._seen: dict[object, int] = {}
        self._recorded: dict[object, _Recorded] = {}

    def forget(self) -> None:
        """After a jump to another state: what was recorded before it is not used again."""
        self._seen.clear()
        self._recorded.clear()

    def step(
        self, key: object, given: Sequence[Tensor], compute: Callable[..., Tensor]
    ) -> Tensor | None:
        """What `compute(*given)` gives, by a replay; none where the caller must do it himself.

        What is given to another step is copied to where that of the recorded one was.
        """
        known = self._recorded.get(key)
        if known is None:
            seen = self._seen[key] = self._seen.get(key, 0) + 1
            if self.failed or seen <= _WARM:
                return None
            known = self._record(key, given, compute)
            if known is None:
                return None
        return known.replay(given)

    def _record(
        self, key: object, given: Sequence[Tensor], compute: Callable[..., Tensor]
    ) -> "_Recorded | None":
        with _recording:
            before = self.generator.clone_state()
            try:
                known = _Recorded(given, compute, self.generator)
            except RuntimeError as error:  # an operation that cannot be recorded, or no room
                self.failed = True
                # Else it would wait for the end of a recording that never comes.
                self.generator.graphsafe_set_state(before)
                logger.warning("steps are not recorded as a CUDA graph: %s", _first_cause(error))
                return None
        self._recorded[key] = known
        return known


def _first_cause(error: BaseException) -> str:
    """The end of a recording fails too, after what went wrong in it."""
    while error.__context__ is not None:
        error = error.__context__
    return str(error).strip().splitlines()[0]


@final
class _Recorded:
    def __init__(
        self, given: Sequence[Tensor], compute: Callable[..., Tensor], generator: torch.Generator
    ) -> None:
        self.given = [tensor.clone() for tensor in given]
        self.graph = torch.cuda.CUDAGraph()
        self.graph.register_generator_state(generator)
        # On a stream of its own, if it has one: PyTorch's stream for recordings is one of the few
        # that it hands out in turn, and work of another start on it would be recorded as well.
        current = torch.cuda.current_stream(generator.device)
        shared = current == torch.cuda.default_stream(generator.device)
        with torch.cuda.graph(
            self.graph, stream=None if shared else current, capture_error_mode="thread_local"
        ):
            self.record = compute(*self.given)

    def replay(self, given: Sequence[Tensor]) -> Tensor:
        for known, new in zip(self.given, given, strict=True):
            known.copy_(new)
        self.graph.replay()
        return self.record.clone()
