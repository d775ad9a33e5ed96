"""Which rows a step sees: every epoch a new order of all rows, a batch after the other.

    row of place i in epoch e = π_e(i),   π_e a keyed permutation of 0 … N - 1 (swap or not)

The permutation is evaluated where it is needed and never stored, so neither time nor memory grows
with N. The rows of a step depend on nothing but (seed, step, N, size): there is no state to save,
on every device they are the same, and nothing is read from it.
"""

from typing import final

import numpy as np
import torch
from jaxtyping import Int64
from torch import Tensor

_ROUNDS = 24  # each moves half of the rows: 2^-24 of their order is left
_TOGETHER = 50  # steps whose rows are made at a time: on an accelerator launches cost, not rows
_LOW = 2**31 - 1  # products of two such numbers fit into 64 bits


@final
class Minibatches:
    """`rows(step)` [size] of `total`; None stands for all rows, in their order.

    The rows that are left over at the end of an epoch are dropped; the next has another order.
    """

    def __init__(self, total: int, size: int | None, seed: int, device: torch.device) -> None:
        self.total, self.seed, self.device = total, seed, device
        self.size = None if size is None or size >= total else size
        self._first, self._made = -1, torch.empty(0, 0, dtype=torch.int64)

    def rows(self, step: int) -> Int64[Tensor, " B"] | None:
        """The rows of `step` (from 0)."""
        if self.size is None:
            return None
        first = step - step % _TOGETHER
        if first != self._first:
            self._first, self._made = first, self._block(first, self.size)
        return self._made[step - first]

    def _block(self, first: int, size: int) -> Int64[Tensor, "T B"]:
        epochs, steps = np.divmod(np.arange(first, first + _TOGETHER), self.total // size)
        keys = {epoch: self._keys(epoch) for epoch in np.unique(epochs).tolist()}
        table = torch.from_numpy(np.stack([keys[epoch] for epoch in epochs.tolist()], axis=-1))
        places = torch.from_numpy(steps[:, None] * size + np.arange(size))
        return _permuted(places.to(self.device), table.to(self.device), self.total)

    def _keys(self, epoch: int) -> np.ndarray:
        """[_ROUNDS, 4]: an axis of reflection, and three numbers below 2^31 to hash with."""
        source = np.random.SeedSequence((self.seed % 2**64, epoch))
        keys = source.generate_state(4 * _ROUNDS, np.uint64).reshape(_ROUNDS, 4)
        keys[:, 0] %= self.total
        keys[:, 1:] &= _LOW
        keys[:, 2:] |= 1
        return keys.astype(np.int64)


def _permuted(
    x: Int64[Tensor, "T B"], keys: Int64[Tensor, "R 4 T"], total: int
) -> Int64[Tensor, "T B"]:
    """π(x): in each round x and its mirror image swap places, or not, by a bit hashed from both.

    Hoang, Morris, Rogaway (2012), "An enciphering scheme based on a card shuffle". The hash need
    only be random enough for training, not for secrets.
    """
    for axis, key, first, second in (of_round[..., None].unbind(0) for of_round in keys):
        mirrored = axis - x
        mirrored = mirrored + total * (mirrored < 0)
        both = torch.maximum(x, mirrored)  # the same for x and its mirror image
        mixed = (((both ^ (both >> 31)) & _LOW) ^ key) * first
        mixed = ((mixed ^ (mixed >> 31)) & _LOW) * second
        x = torch.where((mixed >> 31) & 1 == 1, mirrored, x)
    return x
