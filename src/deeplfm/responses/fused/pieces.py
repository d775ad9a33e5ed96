"""Sums over many points in pieces, so that what exists of them at a time fits the cache."""

import math
from typing import NamedTuple


class Pieces(NamedTuple):
    """Slices of the samples and of their points, and the rows that the largest piece has."""

    slices: list[tuple[slice, slice]]
    rows: int


def pieces(samples: int, points: int, width: int, size: int) -> Pieces:
    """Parts with about `size` numbers, `width` a point: several samples, or equal parts of one."""
    parts = max(1, math.ceil(points * width / size))
    rows = max(1, math.ceil(points / parts))
    most = max(1, size // max(1, rows * width))
    together = max(1, math.ceil(samples / max(1, math.ceil(samples / most))))
    slices = [
        (slice(b, b + together), slice(n, n + rows))
        for b in range(0, samples, together)
        for n in range(0, points, rows)
    ]
    return Pieces(slices, together * rows)
