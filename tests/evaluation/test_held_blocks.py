"""Blocks that are held out: where they lie, how much they take, and what they leave."""

import numpy as np
import pytest

from deeplfm.evaluation.held_blocks import (
    FEWEST,
    HeldBlock,
    hidden_by,
    hold_out,
    hold_out_rows,
    near,
)


def everything(rows: int, outputs: int = 1) -> np.ndarray:
    return np.ones((rows, outputs), dtype=bool)


def kinds(blocks: list[HeldBlock]) -> list[str]:
    return sorted(block.kind for block in blocks)


@pytest.mark.parametrize("outputs", [1, 2, 7])
@pytest.mark.parametrize("rows", [FEWEST, 79, 80, 300, 5000])
def test_most_of_the_data_are_left(rows: int, outputs: int) -> None:
    seen = everything(rows, outputs)
    blocks = hold_out(np.arange(float(rows)), seen, seed=0)
    hidden = hidden_by(blocks, seen.shape)
    assert sum(len(block.rows) for block in blocks) == hidden.sum()  # they do not overlap
    assert (hidden.mean(0) < 0.27).all()
    assert hidden.mean() > 0.01
    last = next(block for block in blocks if block.kind == "end")
    assert set(last.rows) == set(range(rows - len(set(last.rows.tolist())), rows))
    assert not hidden[0].any()  # a record keeps its begin


def test_kinds_follow_from_size_and_outputs() -> None:
    def found(rows: int, outputs: int) -> list[str]:
        return kinds(hold_out(np.arange(float(rows)), everything(rows, outputs), 0))

    assert found(FEWEST - 1, 1) == []
    assert found(FEWEST, 2) == ["end", "inside", "inside"]
    assert found(300, 1) == ["end", *["inside"] * 4]
    assert found(300, 3) == ["end", *["inside"] * 4, *["single"] * 4]


def test_single_blocks_hide_one_output_each() -> None:
    blocks = hold_out(np.arange(200.0), everything(200, 3), seed=1)
    singles = [set(block.outputs.tolist()) for block in blocks if block.kind == "single"]
    assert all(len(one) == 1 for one in singles)
    assert set.union(*singles) == {0, 1, 2}  # each has its turn


def test_places_follow_from_the_seed_and_the_times_not_from_the_order_of_rows() -> None:
    times, seen = np.arange(120.0), everything(120, 2)
    order = np.random.default_rng(0).permutation(120)
    first, again, other = (hidden_by(hold_out(times, seen, s), seen.shape) for s in (0, 0, 1))
    shuffled = hidden_by(hold_out(times[order], seen, 0), seen.shape)
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
    np.testing.assert_array_equal(shuffled, first[order])


def test_blocks_are_as_long_as_gaps_are() -> None:
    seen = everything(600)
    short = hold_out(np.arange(600.0), seen, 0)
    gappy = seen.copy()
    gappy[100:140] = gappy[400:440] = False
    long = hold_out(np.arange(600.0)[gappy[:, 0]], seen[gappy[:, 0]], 0)
    assert {len(block.rows) for block in short if block.kind == "inside"} == {15}
    both = np.concatenate([gappy, everything(600)], axis=1)
    found = hold_out(np.arange(600.0), both, 0)
    lengths = {len(set(block.rows.tolist())) for block in found if block.kind == "inside"}
    assert max(lengths) == 40
    assert len(long) == len(short)  # rows without any value are none of its gaps


def test_an_output_that_was_hardly_seen_is_left_alone() -> None:
    seen = everything(100, 2)
    seen[:, 1] = False
    seen[94:, 1] = True
    blocks = hold_out(np.arange(100.0), seen, 0)
    hidden = hidden_by(blocks, seen.shape)
    assert hidden[:, 0].any()
    assert not hidden[:, 1].any()


def test_times_that_are_all_alike_are_no_series() -> None:
    assert hold_out(np.zeros(100), everything(100), 0) == []


def test_rows_of_a_table_are_held_out_at_random() -> None:
    seen = everything(200, 2)
    (block,) = hold_out_rows(seen, 0)
    assert block.kind == "rows"
    assert hidden_by([block], seen.shape).any(1).sum() == 30
    assert hold_out_rows(everything(FEWEST - 1), 0) == []
    (large,) = hold_out_rows(everything(100_000), 0)
    assert len(large.rows) == 2000


def test_near_takes_the_rows_beside_a_block_in_time() -> None:
    times = np.arange(20.0)[::-1]
    block = HeldBlock("inside", np.array([9, 10]), np.array([0, 0]))
    assert near([block], times, 2).tolist() == [7, 8, 9, 10, 11, 12]
