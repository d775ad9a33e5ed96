"""Plain rivals on series whose answer is known."""

import numpy as np
import pytest

from deeplfm.evaluation import rivals


def hidden(values: np.ndarray, *stretches: slice) -> np.ndarray:
    left = values.reshape(len(values), -1).copy()
    for stretch in stretches:
        left[stretch] = np.nan
    return left


TIMES = np.arange(120.0)
GAP, END = slice(50, 58), slice(110, 120)


def test_interpolation_is_a_line_and_then_the_last_value() -> None:
    found = rivals.of_series(TIMES, hidden(2 * TIMES, GAP, END))["linear interpolation"]
    np.testing.assert_allclose(found[GAP, 0], 2 * TIMES[GAP])
    np.testing.assert_allclose(found[END, 0], 2 * TIMES[109])


def test_rows_may_come_in_any_order() -> None:
    values = hidden(np.sin(TIMES / 3), GAP, END)
    order = np.random.default_rng(1).permutation(len(TIMES))
    plain, shuffled = (
        rivals.of_series(TIMES, values),
        rivals.of_series(TIMES[order], values[order]),
    )
    assert set(plain) == set(shuffled)
    for name, predicted in plain.items():
        np.testing.assert_allclose(shuffled[name], predicted[order])


def test_the_season_before_is_exact_where_there_is_one() -> None:
    pattern = np.random.default_rng(2).standard_normal(12)
    values = np.tile(pattern, 10)
    found = rivals.of_series(TIMES, hidden(values, GAP, END))["season before"]
    np.testing.assert_allclose(found[GAP, 0], values[GAP])
    np.testing.assert_allclose(found[END, 0], values[END])
    assert rivals.period_of(values) == 12


def test_noise_has_no_season() -> None:
    noise = np.random.default_rng(3).standard_normal(120)
    assert rivals.period_of(noise) == 0
    assert "season before" not in rivals.of_series(TIMES, noise[:, None])


def test_an_autoregression_goes_on_with_a_wave() -> None:
    values = np.sin(2 * np.pi * TIMES / 17)
    found = rivals.of_series(TIMES, hidden(values, GAP, END))["autoregression"]
    for stretch in (GAP, END):
        assert np.mean((found[stretch, 0] - values[stretch]) ** 2) < 0.02


def test_ridge_finds_an_output_in_the_others() -> None:
    random = np.random.default_rng(4)
    others = random.standard_normal((120, 2))
    values = np.column_stack([others @ [2.0, -1.0], others])
    left = values.copy()
    left[GAP, 0] = np.nan
    left[END] = np.nan
    found = rivals.of_series(TIMES, left)["ridge on the other outputs"]
    np.testing.assert_allclose(found[GAP, 0], values[GAP, 0], atol=0.2)
    assert np.isnan(found[END]).all()  # where nothing was seen it has nothing to say


def test_uneven_times_leave_what_needs_no_grid() -> None:
    times = np.sort(np.random.default_rng(5).uniform(0, 100, 120))
    found = rivals.of_series(times, hidden(np.sin(times), GAP))
    assert set(found) == {"linear interpolation", "mean"}


@pytest.mark.parametrize("missing", [slice(0, 3), slice(60, 80)])
def test_rows_that_are_not_there_are_gaps_of_the_grid(missing: slice) -> None:
    keep = np.ones(120, dtype=bool)
    keep[missing] = False
    values = np.sin(2 * np.pi * TIMES / 17)
    found = rivals.of_series(TIMES[keep], hidden(values, END)[keep])["autoregression"]
    assert found.shape == (keep.sum(), 1)
    assert np.isfinite(found).all()


def test_a_table_has_a_mean_and_a_ridge() -> None:
    x = np.random.default_rng(6).standard_normal((80, 3))
    y = x @ np.array([[1.0], [0.0], [-2.0]]) + 5
    left = y.copy()
    left[:10] = np.nan
    found = rivals.of_table(x, left)
    np.testing.assert_allclose(found["mean"][:10, 0], y[10:].mean())
    np.testing.assert_allclose(found["ridge on the inputs"][:10], y[:10], atol=0.2)
