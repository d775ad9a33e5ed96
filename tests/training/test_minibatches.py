"""Rows of a step: each once in an epoch, in an order of its own, of nothing but four numbers."""

import math
from itertools import pairwise

import pytest
import torch

from deeplfm.training.minibatches import Minibatches

CPU = torch.device("cpu")


def rows(batches: Minibatches, step: int) -> torch.Tensor:
    found = batches.rows(step)
    assert found is not None
    return found


@pytest.mark.parametrize(("total", "size"), [(2, 1), (7, 3), (12, 5), (64, 8), (1001, 100)])
def test_an_epoch_has_every_row_at_most_once(total: int, size: int) -> None:
    batches = Minibatches(total, size, seed=3, device=CPU)
    per_epoch = total // size
    for epoch in range(4):
        steps = range(epoch * per_epoch, (epoch + 1) * per_epoch)
        epoch_rows = torch.cat([rows(batches, step) for step in steps])
        assert len(epoch_rows) == per_epoch * size
        assert len(epoch_rows.unique()) == len(epoch_rows)
        assert 0 <= epoch_rows.min() <= epoch_rows.max() < total


def test_rows_depend_on_nothing_that_came_before() -> None:
    one, two = (Minibatches(1000, 30, seed=5, device=CPU) for _ in range(2))
    forwards = [rows(one, step) for step in range(200)]
    for step in (199, 3, 120, 0, 49, 50):
        assert torch.equal(rows(two, step), forwards[step])
    assert not torch.equal(forwards[0], rows(Minibatches(1000, 30, seed=6, device=CPU), 0))


def test_all_rows_are_no_choice() -> None:
    assert Minibatches(10, None, seed=0, device=CPU).rows(0) is None
    assert Minibatches(10, 10, seed=0, device=CPU).rows(7) is None


def test_the_order_of_an_epoch_is_random() -> None:
    """Counts of places, steps between neighbours, and meetings in a batch, as chance has them.

    A chi-square of 99 degrees has mean 99 and standard deviation sqrt(198); 5 of those are allowed,
    of the other sums 5 of theirs.
    """
    total, size, epochs = 1000, 100, 300
    batches = Minibatches(total, size, seed=1, device=CPU)
    seen = torch.stack([rows(batches, step) for step in range(epochs * total // size)])
    per_epoch = seen.reshape(epochs, total)
    limit = 99 + 5 * math.sqrt(198)
    for places in (slice(0, 100), slice(450, 550), slice(900, 1000)):  # early, middle, late
        counts = (per_epoch[:, places] // 10).flatten().bincount(minlength=100)
        assert ((counts - 300).square() / 300).sum() < limit
    gaps = (per_epoch[:, 1:] - per_epoch[:, :-1]) % total  # 1 … total - 1, all alike
    counts = ((gaps - 1) * 100 // (total - 1)).flatten().bincount(minlength=100)
    widths = torch.tensor(
        [math.ceil((b) * 999 / 100) - math.ceil(a * 999 / 100) for a, b in pairwise(range(101))]
    )
    expected = gaps.numel() * widths / 999
    assert ((counts - expected).square() / expected).sum() < limit
    together = (seen == 17).any(1) & (seen == 18).any(1)  # neighbours meet as often as any two
    chance = 99 / 999
    spread = math.sqrt(epochs * chance * (1 - chance))
    assert abs(float(together.sum()) - epochs * chance) < 5 * spread


def test_a_huge_table_costs_what_its_batch_costs() -> None:
    batches = Minibatches(10**12, 50, seed=0, device=CPU)  # a stored order would take 8 TB
    found = rows(batches, 10**9)
    assert len(found.unique()) == 50
    assert found.max() > 10**11
