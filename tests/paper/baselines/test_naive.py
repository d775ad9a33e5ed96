"""Lines, last values and seasons by hand; their spreads by naive loops over the rows."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from deeplfm.paper.baselines.naive import Interpolation, SeasonalNaive, neighbours, spread

Values = NDArray[np.float64]
T = np.arange(40.0)


def wandering(rows: int = 40) -> Values:
    return np.random.default_rng(0).normal(size=rows).cumsum()


def test_a_line_over_a_gap_and_the_last_value_after() -> None:
    y = wandering()
    y[10:14] = np.nan
    model = Interpolation(progress=False).fit(T, y)
    gap = model.predict(T[10:14])
    np.testing.assert_allclose(gap, np.interp(T[10:14], [9, 14], y[[9, 14]]))
    np.testing.assert_allclose(model.predict([40.0, 45.0]), y[39])
    np.testing.assert_allclose(model.predict([-1.0, -3.0]), y[0])


def test_a_season_by_hand() -> None:
    """Period 4: the same phase of the last period; over a gap, between the periods beside it."""
    y = np.array([1.0, 2, 3, 4, 2, 4, 6, 8, 3, 6, 9, 12, 5, 10, 15, 20])
    hidden = y.copy()
    hidden[5:10] = np.nan
    model = SeasonalNaive(4, progress=False).fit(np.arange(16.0), hidden)
    # Row 5 lies one period after row 1 (2) and two before row 13 (10); row 6 between 2 and 10.
    expected = [(2 * 2 + 10) / 3, (3 + 9) / 2, (4 + 12) / 2, (2 + 5) / 2, (2 + 2 * 10) / 3]
    np.testing.assert_allclose(model.predict([5.0, 6.0, 7.0, 8.0, 9.0]), expected)
    np.testing.assert_allclose(model.predict([16.0, 17.0, 23.0]), [5, 10, 20])


@pytest.mark.parametrize("period", [1, 3])
def test_the_spread_of_a_forecast_is_that_of_its_horizon(period: int) -> None:
    y = wandering()
    model = SeasonalNaive(period, progress=False).fit(T, y)
    for rows_ahead in (1, 2, 5, 8):
        periods = math.ceil(rows_ahead / period)
        errors = [y[t] - y[t - periods * period] for t in range(periods * period, 40)]
        _, std = model.predict([39.0 + rows_ahead], return_std=True)
        assert std[0] == pytest.approx(np.sqrt(np.mean(np.square(errors))))


def test_the_spread_inside_a_gap_is_that_of_the_same_line() -> None:
    y = wandering()
    errors = [y[t] - (3 * y[t - 2] + 2 * y[t + 3]) / 5 for t in range(2, 37)]
    assert spread(y, 2, 3, 1) == pytest.approx(np.sqrt(np.mean(np.square(errors))))
    back = [y[t] - y[t + 4] for t in range(36)]
    assert spread(y, 0, 4, 1) == pytest.approx(np.sqrt(np.mean(np.square(back))))


def test_far_from_data_spreads_grow_as_those_of_a_walk() -> None:
    y = wandering(20)
    assert spread(y, 16, 0, 1) == pytest.approx(math.sqrt(2) * spread(y, 8, 0, 1))
    assert spread(y, 64, 0, 1) == pytest.approx(math.sqrt(8) * spread(y, 8, 0, 1))
    assert spread(np.ones(20), 3, 0, 1) == 1e-6  # what never changed is known


def test_without_neighbours_the_mean() -> None:
    """A phase that was never seen is predicted as the mean, with the spread of the series."""
    y = wandering(12)
    y[::3] = np.nan
    assert neighbours(y, 3, 3).guess() == 0
    assert neighbours(y, 3, 3) == (None, None)
    assert spread(y, 0, 0, 3) == pytest.approx(np.nanstd(y))
