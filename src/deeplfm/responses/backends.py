"""Which path sums of responses take: the fast one of their device, or the plain one.

with plain(): …        everything as it is written, for comparison
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from importlib.util import find_spec

import torch

logger = logging.getLogger(__name__)

_plain: ContextVar[bool] = ContextVar("plain", default=False)


@contextmanager
def plain(wanted: bool = True) -> Iterator[None]:
    """Within it no table and no kernel of our own is used, in this thread or task."""
    token = _plain.set(wanted)
    try:
        yield
    finally:
        _plain.reset(token)


def by_tables(x: torch.Tensor) -> bool:
    """Whether sums at `x` may come from tables."""
    return x.device.type == "cpu" and not _plain.get()


def by_kernels(x: torch.Tensor) -> bool:
    """Whether sums at `x` may be single kernels."""
    return x.device.type == "cuda" and not _plain.get() and _has_triton()


@lru_cache(maxsize=1)
def _has_triton() -> bool:
    if find_spec("triton") is not None:
        return True
    logger.warning("Triton is not installed: sums of responses take the plain path on CUDA")
    return False
