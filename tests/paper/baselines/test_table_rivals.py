"""Rivals on tables: a ridge and its left-out errors by hand, and trees that are tuned by folds."""

import numpy as np
from sklearn.linear_model import LinearRegression

from deeplfm.paper.baselines.linear import Constant, LinearRidge
from deeplfm.paper.baselines.tuned_trees import TunedTrees


def table(rows: int = 120) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    x = random.normal(size=(rows, 3)) * [1, 20, 0.1] + 5
    return x, 3 + x[:, 0] - 0.2 * x[:, 1] + 0.5 * random.normal(size=rows)


def test_a_ridge_of_clean_lines_is_least_squares_with_left_out_errors() -> None:
    x, y = table()
    model = LinearRidge().fit(x, y)
    plain = LinearRegression().fit(x, y)
    np.testing.assert_allclose(model.predict(x), plain.predict(x), atol=0.05)
    left_out = [
        y[k] - LinearRegression().fit(np.delete(x, k, 0), np.delete(y, k)).predict(x[k : k + 1])[0]
        for k in range(len(x))
    ]
    spread = model.predict(x, return_std=True)[1]
    np.testing.assert_allclose(spread, np.sqrt(np.mean(np.square(left_out))), rtol=0.01)


def test_a_constant_is_the_mean_and_spread_of_what_was_observed() -> None:
    x, y = table()
    y[::4] = np.nan
    mean, std = Constant().fit(x, y).predict(x, return_std=True)
    np.testing.assert_allclose(mean, np.nanmean(y))
    np.testing.assert_allclose(std, np.nanstd(y))


def test_tuned_trees_choose_what_is_best_on_folds() -> None:
    """The settings are among the eight, and the spread is not that of rows they were grown on."""
    x, y = table()
    model = TunedTrees(steps=60).fit(x, y)
    mean, std = model.predict(x, return_std=True)
    rate, leaves, rounds = model.fitted_.state["settings"][0].tolist()
    assert rate in (0.03, 0.1)
    assert leaves in (7, 31)
    assert rounds in (20, 60)
    assert std[0] > 1.2 * np.sqrt(np.mean((mean - y) ** 2))
    slow = model._chosen(x, y, 0)[0]
    assert slow <= min(TunedTrees(steps=steps)._chosen(x, y, 0)[0] for steps in (60, 20))
