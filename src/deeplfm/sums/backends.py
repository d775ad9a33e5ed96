"""Which path sums of responses take: the fastest of their device, or one that is asked for.

    with up_to("plain"): …    everything as it is written, for comparison
    with up_to("fused"): …    tables on a CPU and kernels on CUDA, but nothing compiled before

In float32 a CPU has compiled kernels, where they were built (`native`).
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from importlib.util import find_spec
from typing import Literal, TypeAlias

import torch

from deeplfm.sums.c import library

logger = logging.getLogger(__name__)

Level: TypeAlias = Literal["plain", "fused", "native"]

_level: ContextVar[Level] = ContextVar("level", default="native")


@contextmanager
def up_to(level: Level) -> Iterator[None]:
    """Within it no path beyond this one is taken, in this thread or task."""
    token = _level.set(level)
    try:
        yield
    finally:
        _level.reset(token)


def natively(x: torch.Tensor, weights: torch.Tensor) -> bool:
    """Whether sums at `x` with such weights may be compiled kernels of the CPU."""
    fits = x.device.type == "cpu" and x.dtype == weights.dtype == torch.float32 and x.numel() > 0
    return fits and _level.get() == "native" and library.is_built()


def by_tables(x: torch.Tensor) -> bool:
    """Whether sums at `x` may come from tables."""
    return x.device.type == "cpu" and _level.get() != "plain"


def by_kernels(x: torch.Tensor) -> bool:
    """Whether sums at `x` may be single kernels of CUDA."""
    return x.device.type == "cuda" and _level.get() != "plain" and _has_triton()


@lru_cache(maxsize=1)
def _has_triton() -> bool:
    if find_spec("triton") is not None:
        return True
    logger.warning("Triton is not installed: sums of responses take the plain path on CUDA")
    return False
