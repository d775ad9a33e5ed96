"""Sums over many points in chunks, so that what exists of them at a time fits the cache.

Memory that is fresh costs more than the arithmetic done in it: each thread keeps what its chunks
need, and uses it again.
"""

import math
import threading
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor


class Chunks(NamedTuple):
    """Slices of the samples and of their points, and the rows that the largest chunk has."""

    slices: list[tuple[slice, slice]]
    rows: int


def chunks(samples: int, points: int, width: int, size: int) -> Chunks:
    """Chunks of about `size` numbers, `width` a point: several samples, or equal parts of one."""
    parts = max(1, math.ceil(points * width / size))
    rows = max(1, math.ceil(points / parts))
    most = max(1, size // max(1, rows * width))
    together = max(1, math.ceil(samples / max(1, math.ceil(samples / most))))
    slices = [
        (slice(b, b + together), slice(n, n + rows))
        for b in range(0, samples, together)
        for n in range(0, points, rows)
    ]
    return Chunks(slices, together * rows)


_kept = threading.local()


def room(like: Tensor, rows: int, widths: Sequence[int]) -> list[Tensor]:
    """Matrices [rows, width] in the memory of this thread, until it is asked for the next ones."""
    name, total = str(like.dtype), rows * sum(widths)
    memory = getattr(_kept, name, None)
    if memory is None or len(memory) < total:
        memory = torch.empty(total, dtype=like.dtype)
        setattr(_kept, name, memory)
    parts = memory[:total].split([rows * width for width in widths])
    return [part.view(rows, width) for part, width in zip(parts, widths, strict=True)]
