"""Rows of series in the order of time: places, and as few distinct steps as the times have."""

import numpy as np
import pytest
import torch

from deeplfm.statespace.timeline import order_in_time


def walked(times: np.ndarray, series: np.ndarray) -> np.ndarray:
    """The time of every row, as its steps add up to it from the first row of its series."""
    line = order_in_time(times, series)
    steps = line.steps[line.step.long()].numpy().copy()
    steps[:, 0] = 0.0
    first = np.array([times[series == b].min(initial=np.inf) for b in range(line.shape[0])])
    return np.asarray(line.rows(first[:, None] + steps.cumsum(1)))


def test_unsorted_and_repeated_times_of_series_of_different_lengths() -> None:
    times = np.array([3.0, 1.0, 2.0, 2.0, 9.0, 7.0, 8.5, 1.0])
    series = np.array([0, 0, 0, 0, 2, 2, 1, 0])
    line = order_in_time(times, series)
    assert line.shape == (3, 5)
    # Repeated times keep the order in which they came.
    assert line.row.tolist() == [4, 0, 2, 3, 1, 0, 0, 1]
    table = line.table(times, np.nan)
    assert (np.diff(table[0]) >= 0).all()
    assert np.isnan(table[1, 1:]).all()
    assert np.isnan(table[2, 2:]).all()
    np.testing.assert_array_equal(line.rows(table), times)
    np.testing.assert_allclose(walked(times, series), times, rtol=1e-15)


def test_a_series_without_a_row_is_an_empty_one() -> None:
    line = order_in_time(np.array([0.0, 1.0, 4.0]), np.array([0, 2, 2]))
    assert line.shape == (3, 2)
    assert line.series.tolist() == [0, 2, 2]
    assert line.row.tolist() == [0, 0, 1]


@pytest.mark.parametrize(
    "times",
    [
        np.arange(4000) / 50 + 1e6,
        np.arange(4000) * 0.1,
        1.7e9 + np.arange(4000) / 3,
        -1e-9 * np.arange(4000)[::-1],
        np.linspace(-1, 1, 3001),
    ],
)
def test_a_regular_grid_has_one_step_in_any_units(times: np.ndarray) -> None:
    line = order_in_time(times)
    assert len(line.steps) == 2  # that of the first row is 0
    assert line.steps[0] == 0
    # One step is known to the rounding of two times, and steps of a grid are their mean.
    rounding = 4 * np.finfo(float).eps * np.abs(times).max()
    assert abs(float(line.steps[1]) - np.ptp(times) / (len(times) - 1)) < rounding


def test_a_grid_with_gaps_has_the_steps_that_it_has() -> None:
    kept = np.delete(np.arange(1000), [5, 300, 301, 302, 700])
    line = order_in_time(kept / 50 + 1e6)
    np.testing.assert_allclose(line.steps * 50, [0, 1, 2, 4], atol=1e-7)


def test_uneven_times_keep_their_steps() -> None:
    times = np.sort(np.random.default_rng(0).uniform(0, 1, 500))
    line = order_in_time(times)
    np.testing.assert_allclose(
        line.steps[line.step[0].long()][1:], np.diff(times), rtol=0, atol=4e-15
    )


def test_a_stair_of_steps_does_not_run_together() -> None:
    # Every step is longer than the one before by less than the rounding of these times.
    steps = 1e-3 * (1 + np.arange(200) * 1e-4)
    times = 1e9 + np.concatenate([[0.0], np.cumsum(steps)])
    line = order_in_time(times)
    np.testing.assert_array_equal(line.steps[line.step[0].long()][1:], np.diff(times))


@pytest.mark.parametrize("far", [1e7, 1e13, -1e16])
def test_a_far_row_does_not_change_the_steps_of_others(far: float) -> None:
    times = np.sort(np.random.default_rng(1).uniform(0, 1, 50))
    own = order_in_time(times)
    both = order_in_time(np.append(times, far))
    steps = both.steps[both.step[0].long()].numpy()
    kept = steps[2:] if far < 0 else steps[1:-1]
    np.testing.assert_array_equal(kept, own.steps[own.step[0].long()].numpy()[1:])
    assert np.abs(far) - 1 <= steps.max() <= np.abs(far) + 1


def test_far_rows_that_are_close_to_each_other_do_not_round_the_steps_of_others() -> None:
    times = np.arange(40) * 0.01
    line = order_in_time(np.concatenate([times, 1e13 + times]))
    assert torch.isclose(line.steps, torch.tensor(0.01, dtype=torch.float64), rtol=1e-12).any()
