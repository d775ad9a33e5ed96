"""Boosted trees: scikit-learn's own predictions, held-out spread, saved as data."""

from pathlib import Path

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor

from deeplfm.paper.baselines import load
from deeplfm.paper.baselines.trees import BoostedTrees


def table(rows: int = 300) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    x = random.standard_normal((rows, 3))
    y = np.stack([np.sign(x[:, 0]) + x[:, 1], x[:, 2] ** 2], axis=1)
    return x, y + 0.3 * random.standard_normal(y.shape)


def test_the_mean_is_that_of_scikit_learn_on_what_was_observed() -> None:
    x, y = table()
    y[::3, 1] = np.nan
    model = BoostedTrees(steps=20).fit(x, y)
    for k, seen in enumerate((~np.isnan(y)).T):
        trees = HistGradientBoostingRegressor(max_iter=20, random_state=0)
        # Trees split at thresholds: units of the inputs and targets do not matter to them.
        expected = trees.fit(x[seen], y[seen, k]).predict(x)
        np.testing.assert_allclose(model.predict(x)[:, k], expected, rtol=1e-6, atol=1e-6)


def test_the_spread_is_that_of_rows_they_did_not_see() -> None:
    """Noise of 0.3, and as much again of what 100 trees learn from 270 rows; not less."""
    x, y = table()
    p = BoostedTrees().fit(x, y).predictive(x)
    assert (p.std[0] > 0.3).all()
    seen = np.abs(p.mean - y).mean(0)
    assert (p.std[0] > 1.5 * seen).all()  # they know the rows they were grown on too well


def test_a_tenth_of_the_rows_is_held_out() -> None:
    """The spread and the loss by a naive loop, with trees that are grown on the other rows."""
    x, y = table(120)
    y[5:60, 1] = np.nan
    model = BoostedTrees(steps=7, seed=3)
    p = model.fit(x, y).predictive(x)
    places = np.random.default_rng(3).permutation(120)
    shares = []
    for k in range(2):
        seen = [n for n in range(120) if not np.isnan(y[n, k])]
        held_out = [n for n in seen if places[n] in range(0, 120, 10)]
        grown_on = [n for n in seen if n not in held_out]
        trees = HistGradientBoostingRegressor(max_iter=7, random_state=3)
        errors = trees.fit(x[grown_on], y[grown_on, k]).predict(x[held_out]) - y[held_out, k]
        spread = np.sqrt(np.mean(errors**2))
        np.testing.assert_allclose(p.std[:, k], spread, rtol=1e-6)
        shares.append(spread**2 / np.nanvar(y[:, k]))  # in the model's units
    assert model.history_["loss"] == pytest.approx([np.mean(shares)], rel=1e-6)


def test_saved_trees_grow_again(tmp_path: Path) -> None:
    x, y = table(80)
    model = BoostedTrees(steps=5, seed=3).fit(x, y[:, 0])
    model.save(tmp_path / "trees")
    np.testing.assert_array_equal(load(tmp_path / "trees").predict(x), model.predict(x))
