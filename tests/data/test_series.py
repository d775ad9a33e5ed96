"""Series and tables: what trains and what tests; a series that was sampled unevenly."""

import numpy as np
import pytest

import deeplfm as dlfm
from deeplfm.data import Series, Table, cardiac
from deeplfm.paper.datasets.toy import toy
from deeplfm.paper.datasets.uneven import uneven


def test_a_series_has_its_times_as_inputs() -> None:
    series = toy()
    assert series.inputs is series.times
    assert "inputs" not in repr(Series(np.zeros(1), np.zeros((1, 1)), ("y",)))


def test_a_table_hides_its_test_rows_and_keeps_its_units() -> None:
    inputs, values = np.arange(8.0).reshape(4, 2), 100 + np.arange(4.0)[:, None]
    mask = np.array([[False], [True], [False], [True]])
    table = Table(inputs, values, ("y",), ("a", "b"), {"test": mask})
    np.testing.assert_array_equal(table.training()[:, 0], [100, np.nan, 102, np.nan])
    np.testing.assert_array_equal(table.test("test")[:, 0], [np.nan, 101, np.nan, 103])
    assert table.inputs is inputs
    assert table.truth is None
    with pytest.raises(dlfm.InputError, match=r"name must be one of \['test'\]"):
        table.training("gap")


@pytest.mark.parametrize("share", [0.0, 0.3, 0.5, 0.9])
def test_uneven_drops_its_share_of_each_output(share: float) -> None:
    series = cardiac(200)
    series.values[20:60, 1] = np.nan
    found = uneven(series, share, seed=3)
    kept = np.isfinite(found.values)
    expected = [count - round(share * count) for count in (200, 160, 200)]
    assert kept.sum(0).tolist() == expected
    assert kept.any(1).all()
    rows = np.searchsorted(series.times, found.times)
    assert series.truth is not None
    assert found.truth is not None
    np.testing.assert_array_equal(found.times, series.times[rows])
    np.testing.assert_array_equal(found.values[kept], series.values[rows][kept])
    np.testing.assert_array_equal(found.truth, series.truth[rows])
    for name, mask in series.tests.items():
        np.testing.assert_array_equal(found.tests[name], mask[rows])
    np.testing.assert_array_equal(found.inputs, found.times)


def test_uneven_drops_each_output_on_its_own_and_repeats_with_the_seed() -> None:
    """Two outputs both miss a quarter of 2000 rows: 500, with a spread below sqrt(2000 3/16)."""
    series = cardiac(2000)
    found = uneven(series)
    full = np.full(series.values.shape, np.nan)
    full[np.searchsorted(series.times, found.times)] = found.values
    missing = np.isnan(full)
    spread = np.sqrt(2000 * 0.25 * 0.75)
    for first, second in ((0, 1), (0, 2), (1, 2)):
        assert abs((missing[:, first] & missing[:, second]).sum() - 500) < 5 * spread
    np.testing.assert_array_equal(uneven(series).values, found.values)
    assert not np.array_equal(uneven(series, seed=1).times, found.times)
    assert np.isfinite(series.values).all()  # the series that was given is as it was
    for name in series.tests:  # also inside the tests
        scored = np.isfinite(found.test(name)).sum()
        assert 0 < scored < np.isfinite(series.test(name)).sum()


def test_uneven_leaves_one_observation_and_refuses_other_shares() -> None:
    series = Series(np.arange(3.0), np.arange(3.0)[:, None], ("y",))
    assert uneven(series, 0.99).values.shape == (1, 1)
    empty = Series(np.arange(3.0), np.stack([np.arange(3.0), np.full(3, np.nan)], 1), ("y", "z"))
    assert uneven(empty, 0.0).values.shape == (3, 2)
    for share in (1.0, -0.1, float("nan")):
        with pytest.raises(dlfm.InputError, match="share must be at least 0 and below 1"):
            uneven(series, share)
