"""Prior paths of a small linear SDE: its bridges are halved along the cells that hold times.

A part of the block whose start is its stationary covariance has paths on both sides of the origin.
Any other is defined from the origin on, and holds before it what it starts with.
"""

from typing import NamedTuple, final

import numpy as np
from jaxtyping import Float, Int

from deeplfm.errors import InputError
from deeplfm.statespace.block_rungs import BEFORE, Block, Ladder, as_steps, divide, part
from deeplfm.statespace.dyadic import (
    FIRST_STATE,
    MOST_LEVELS,
    Interval,
    cells,
    doublings,
    intervals,
)
from deeplfm.statespace.keyed_normals import hashed, normal_pairs, path_bits

_LAST = 1 - 2.0**-53  # the last number before 1


def _apply(matrix: Float[np.ndarray, "M M"], states: np.ndarray) -> np.ndarray:
    """matrix · states over the first axis, in an order of sums that no other axis changes."""
    total: np.ndarray = matrix[:, 0, None, None] * states[0]
    for column in range(1, len(states)):
        total += matrix[:, column, None, None] * states[column]
    return total


class Bridges(NamedTuple):
    """States at the begin of cells, and what is missing at their ends."""

    begin: Float[np.ndarray, "M S c"]
    missing: Float[np.ndarray, "M S c"]


@final
class BlockPaths:
    """S draws of one part of a block, as functions of the time since the origin.

    The states are keyed by their number in the block, after `offset` others.
    """

    def __init__(
        self, block: Block, ladder: Ladder, offset: int, num_samples: int, seed: int, scale: float
    ) -> None:
        self.block = block
        self.ladder = ladder
        self.scale = scale
        self._whole: dict[int, Bridges] = {}  # of intervals that were asked for
        samples = np.arange(num_samples)
        self.bits = path_bits(seed, samples, offset + ladder.states[:, None])  # [M, S]

    def __call__(self, elapsed: Float[np.ndarray, "n"]) -> Float[np.ndarray, "M S n"]:
        """The states at ascending times since the origin."""
        values = np.empty((*self.bits.shape, len(elapsed)))
        position = elapsed / self.scale
        if not self.ladder.stationary:
            position = np.maximum(position, 0)
        elif len(position) and position[0] <= -(2.0**BEFORE):
            raise InputError(
                f"times must come after origin - 2^{BEFORE} · scale, where a stationary block "
                f"starts; got a time {-elapsed[0]:g} before the origin. Give an earlier origin, or "
                "a larger scale."
            )
        for interval in intervals(position):
            values[..., interval.rows] = self._bridge(interval)
        return values

    def _normals(self, label: int, level: int, index: np.ndarray) -> Float[np.ndarray, "M S c"]:
        keyed = hashed(hashed(self.bits, label), level)
        return normal_pairs(hashed(keyed[..., None], index))[0]

    def _ends(self, label: int) -> Bridges:
        """The one bridge over a whole interval, reached forwards from the first state."""
        none = np.zeros(1, dtype=np.int64)
        first = -1 - BEFORE if self.ladder.stationary else 0
        for between in range(max(self._whole, default=first - 1) + 1, label + 1):
            if between == first:
                begin = _apply(self.ladder.start, self._normals(FIRST_STATE, 0, none))
            else:
                last = self._whole[between - 1]
                begin = _apply(self.ladder[doublings(between - 1)].transition, last.begin)
                begin += last.missing
            root = self.ladder[doublings(between)].root
            self._whole[between] = Bridges(begin, _apply(root, self._normals(between, 0, none)))
        return self._whole[label]

    def _bridge(self, interval: Interval) -> Float[np.ndarray, "M S n"]:
        """The states at the times of one interval."""
        label, _, fraction = interval
        if label < 0:  # from here on time runs forwards, away from the begin
            fraction = np.minimum(1 - fraction, _LAST)
        whole = doublings(label)
        held, bridges = cells(fraction, 0), self._ends(label)
        level = 0
        while whole - level > self.ladder.lowest and level < MOST_LEVELS and held.rest.any():
            level += 1
            parents, held = held, cells(fraction, level)
            bridges = self._halved(
                bridges, label, level, whole - level, parents.number, held.number
            )
        return self._inside(bridges, held.rest, held.number, whole - level)

    def _halved(
        self,
        bridges: Bridges,
        label: int,
        level: int,
        power: int,
        parent: Int[np.ndarray, "n"],
        child: Int[np.ndarray, "n"],
    ) -> Bridges:
        """The halves that hold times, of bridges over twice scale · 2^power."""
        step = self.ladder[power]
        new_parent = np.append(True, parent[1:] != parent[:-1])
        new_child = np.append(True, child[1:] != child[:-1])
        noise = self._normals(label, level, parent[new_parent])
        middle = _apply(step.gain, bridges.missing) + _apply(step.middle, noise)
        begin = _apply(step.transition, bridges.begin) + middle
        missing = bridges.missing - _apply(step.transition, middle)
        row = (np.cumsum(new_parent) - 1)[new_child]
        right = child[new_child] % 2 == 1
        return Bridges(
            np.where(right, begin[..., row], bridges.begin[..., row]),
            np.where(right, missing[..., row], middle[..., row]),
        )

    def _inside(
        self, bridges: Bridges, rest: np.ndarray, index: np.ndarray, power: int
    ) -> Float[np.ndarray, "M S n"]:
        """The mean of bridges over scale · 2^power at a share `rest` of them."""
        row = np.cumsum(np.append(True, index[1:] != index[:-1])) - 1
        begin, missing = bridges.begin[..., row], bridges.missing[..., row]
        if not rest.any():
            return begin
        length = self.scale * 2.0**power
        states = self.ladder.states
        steps = as_steps(self.block, rest * length)
        transition, diffusion = (part(matrices, states) for matrices in steps)
        onwards = part(as_steps(self.block, (1 - rest) * length)[0], states)
        left = diffusion @ onwards.swapaxes(1, 2)
        gain, missed = divide(left, self.ladder[power].diffusion)
        gain = gain + rest[:, None, None] * missed
        total = np.zeros_like(begin)
        for column in range(len(states)):
            total += transition[:, :, column].T[:, None] * begin[column]
            total += gain[:, :, column].T[:, None] * missing[column]
        return total
