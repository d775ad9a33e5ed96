"""Where times lie: in intervals that double with their distance, and in halves of halves of them.

    … [-4, -2] [-2, -1] [-1, 0]   [0, 1] [1, 2] [2, 4] …    in units of the scale, from the origin
    labels   -3     -2      -1       0      1      2

Positions in an interval are exact in binary: its cell at any level is a function of the time alone.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int64

MOST_LEVELS = 60  # the numbers of cells are whole numbers of 64 bits
FIRST_STATE = 2**40  # stands for a label where the state that a path starts from is drawn
NEGLIGIBLE = 1e-12  # variance of a bridge, relative to the stationary one, that is not drawn


class Interval(NamedTuple):
    """Sorted times of one interval: their rows, and how far each is from the origin's end."""

    label: int
    rows: slice
    fraction: Float[np.ndarray, "n"]


class Cells(NamedTuple):
    """The cell of each time: its number, where in [0, 1) of it, and whether it is a new one."""

    number: Int64[np.ndarray, "n"]
    rest: Float[np.ndarray, "n"]
    first: Bool[np.ndarray, "n"]


def doublings(label: int) -> int:
    """The length of an interval is the scale times two to this power."""
    return max(label - 1 if label >= 0 else -label - 2, 0)


def intervals(position: Float[np.ndarray, "n"]) -> Iterator[Interval]:
    """The intervals of ascending positions, in units of the scale."""
    away = np.abs(position)
    exponent = np.where(away < 1, 0, np.frexp(away)[1])
    label = np.where(position < 0, -1 - exponent, exponent)
    labels, begin = np.unique(label, return_index=True)
    for one, low, high in zip(labels, begin, [*begin[1:], len(position)], strict=True):
        rows = slice(int(low), int(high))
        inside = one in (-1, 0)
        fraction = away[rows] if inside else np.ldexp(away[rows], -doublings(int(one))) - 1
        yield Interval(int(one), rows, fraction)


def cells(fraction: Float[np.ndarray, "n"], level: int) -> Cells:
    """The cells, 2^level to an interval, of ascending or descending fractions."""
    scaled = np.ldexp(fraction, level)
    whole = np.floor(scaled)
    first = np.ones(len(whole), dtype=bool)
    np.not_equal(whole[1:], whole[:-1], out=first[1:])
    return Cells(whole.astype(np.int64), scaled - whole, first)
