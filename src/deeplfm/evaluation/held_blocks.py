"""Blocks of observations that are held out of a fit, to see how good it is.

    inside   stretches of rows, all outputs hidden            (a gap in the record)
    single   stretches of rows, one output hidden             (a gap in one channel)
    end      the last rows, all outputs hidden                (a forecast)
    rows     some rows of a table, where inputs have no order

Sizes and places follow from the rows and a seed alone. Numpy only; knows no model.
"""

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]
Mask = NDArray[np.bool_]
Places = NDArray[np.int64]

FEWEST = 40  # rows of a series, or of a table, below which nothing can be spared
_MANY, _MORE = 80, 120  # rows from which there are four blocks of all outputs, and of single ones
_INSIDE = 4  # blocks of all outputs
_SHARE, _LONGEST = 1 / 40, 1 / 12  # rows of a block inside, of all; at most, as long as gaps are
_END = 1 / 15  # rows of the last block, of all
_SMALLEST = 3  # rows of a block
_HIDDEN = 0.15  # share of the rows that all blocks inside may have
_PARTED = 0.35  # share of the observations of an output that may be hidden
_TABLE, _TABLE_MOST = 0.15, 2000  # share of the rows of a table, and rows at most
_LONG = 4000  # rows beyond which blocks are no longer than in a record of so many


@final
@dataclass(frozen=True, eq=False)
class HeldBlock:
    """One block: its kind, and the entries [K] that it hides, by row and by output."""

    kind: str
    rows: Places
    outputs: Places


def hold_out(times: Values, observed: Mask, seed: int) -> list[HeldBlock]:
    """Choose the blocks of a series.

    Args:
        times: the time of every row, in any order.
        observed: which outputs of a row were observed.
        seed: the seed of the places.

    Shapes:
        times: [N]; observed: [N, D].

    Example:
        >>> blocks = hold_out(np.arange(100.0), np.ones((100, 2), dtype=bool), seed=0)
        >>> sorted({block.kind for block in blocks})
        ['end', 'inside', 'single']
    """
    count, outputs = observed.shape
    if count < FEWEST or len(np.unique(times)) < FEWEST:
        return []
    order = np.argsort(times, kind="stable")
    seen = observed[order]
    random = np.random.default_rng((seed % 2**64, count, outputs))
    last = max(_SMALLEST, round(_END * min(count, _LONG)))
    length = _length(seen)
    most = _INSIDE if count >= _MANY else _INSIDE // 2
    number = int(np.clip(_HIDDEN * count // length, 1, most))
    kinds = ["inside"] * number
    if outputs > 1 and count >= _MORE:
        kinds = ["inside", "single"] * number
    spots = _spots(count - last, length, len(kinds), random)
    channels = random.permutation(outputs)
    blocks = [_block("end", order, seen, np.arange(count - last, count), np.arange(outputs))]
    for k, (kind, first) in enumerate(zip(kinds, spots, strict=True)):
        chosen = channels[[k // 2 % outputs]] if kind == "single" else np.arange(outputs)
        blocks.append(_block(kind, order, seen, np.arange(first, first + length), chosen))
    return _spared([block for block in blocks if len(block.rows)], observed)


def hold_out_rows(observed: Mask, seed: int) -> list[HeldBlock]:
    """Choose rows of a table, `observed` [N, D], at random: one block, or none of a small table."""
    count, outputs = observed.shape
    if count < FEWEST:
        return []
    random = np.random.default_rng((seed % 2**64, count, outputs))
    chosen = random.choice(count, min(round(_TABLE * count), _TABLE_MOST), replace=False)
    rows, columns = np.nonzero(observed[chosen])
    return _spared([HeldBlock("rows", chosen[rows], columns)], observed)


def hidden_by(blocks: list[HeldBlock], shape: tuple[int, int]) -> Mask:
    """The entries [N, D] that some block hides."""
    hidden = np.zeros(shape, dtype=bool)
    for block in blocks:
        hidden[block.rows, block.outputs] = True
    return hidden


def near(blocks: list[HeldBlock], times: Values, reach: int) -> Places:
    """Rows [n] at `times` [N] that are in a block or among `reach` rows on either side of one."""
    order = np.argsort(times, kind="stable")
    rank = np.empty(len(times), dtype=np.int64)
    rank[order] = np.arange(len(times))
    chosen = np.zeros(len(times), dtype=bool)
    for block in blocks:
        places = rank[block.rows]
        chosen[max(0, places.min() - reach) : places.max() + reach + 1] = True
    return np.sort(order[chosen])


def _length(seen: Mask) -> int:
    """Rows of a block inside: as the usual gap of the record, within bounds."""
    count = min(len(seen), _LONG)
    least = max(_SMALLEST, round(_SHARE * count))
    gaps = []
    for column in seen.T:
        edges = np.flatnonzero(np.diff(np.concatenate([[True], column, [True]]).astype(int)))
        gaps += [stop - start for start, stop in edges.reshape(-1, 2) if stop - start > 1]
    usual = round(float(np.median(gaps))) if gaps else least
    return int(np.clip(usual, least, max(least, round(_LONGEST * count))))


def _spots(rows: int, length: int, number: int, random: np.random.Generator) -> list[int]:
    """Where blocks begin: one in each of as many equal parts, off its borders."""
    part = rows / number
    room = max(0.0, part - length - 2)
    return [int(k * part + 1 + random.uniform(0, room)) for k in range(number)]


def _block(kind: str, order: Places, seen: Mask, places: Places, outputs: Places) -> HeldBlock:
    rows, columns = np.nonzero(seen[places][:, outputs])
    return HeldBlock(kind, order[places[rows]], outputs[columns])


def _spared(blocks: list[HeldBlock], observed: Mask) -> list[HeldBlock]:
    """The blocks without outputs of which too little would be left."""
    hidden = hidden_by(blocks, (observed.shape[0], observed.shape[1]))
    most = np.maximum(_PARTED * observed.sum(0), 1)
    fine = hidden.sum(0) <= most
    kept = []
    for block in blocks:
        own = fine[block.outputs]
        if own.any():
            kept.append(HeldBlock(block.kind, block.rows[own], block.outputs[own]))
    return kept
