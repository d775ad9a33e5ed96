"""The recipe for tables: by size, honest on a simulated table, saved and loaded as every other."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import deeplfm as dlfm
from deeplfm.models.automatic import recipe_for_table
from deeplfm.training.automatic import training_for_table


def table(rows: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    x = random.uniform(size=(rows, 5)) * [1, 10, 100, 1, 1]
    y = 50 + 20 * np.sin(6 * x[:, 0]) + 2 * x[:, 1] + 0.1 * x[:, 2] * (x[:, 3] - 0.5)
    return x, y + 5 * random.normal(size=rows)


def test_waves_follow_the_size_of_a_table() -> None:
    few, many = recipe_for_table(300, 5), recipe_for_table(20_000, 5)
    assert few.num_features < many.num_features
    assert recipe_for_table(300, 5, 4).num_features == few.num_features // 2
    assert few.frequency_init == "evidence"
    assert training_for_table(300).batch_size is None
    assert training_for_table(20_000).batch_size == 2000


@pytest.mark.parametrize("sizes", [(0, 3, 1), (10, 0, 1), (10, 3, 0)])
def test_sizes_are_counts(sizes: tuple[int, int, int]) -> None:
    with pytest.raises(dlfm.InputError, match="must be"):
        recipe_for_table(*sizes)


def test_intervals_of_a_small_table_are_honest() -> None:
    """400 rows are enough to come near the noise of 5, and 1000 new ones to count who is inside.

    Of 1000 the share that 90 % intervals cover has a standard error of 0.01; what the fit itself
    adds to it is allowed as much as the experiment `tables` allows.
    """
    x, y = table(400)
    recipe = replace(recipe_for_table(400, 5), num_features=100)  # faster
    training = training_for_table(400)
    model = dlfm.DeepLFMRegressor(recipe, training, progress=False, check=False).fit(x, y)
    new, truth = table(1000, seed=1)
    predicted = model.predictive(new, num_samples=50)
    low, high = predicted.interval(0.9)
    inside = float(((truth[:, None] >= low) & (truth[:, None] <= high)).mean())
    assert 0.84 <= inside <= 0.96
    assert np.sqrt(np.mean((predicted.mean[:, 0] - truth) ** 2)) < 1.15 * 5


def test_saved_and_loaded_it_predicts_the_same(tmp_path: Path) -> None:
    x, y = table(60)
    recipe, training = recipe_for_table(60, 5, 2), dlfm.Training(steps=2)
    both = np.stack([y, -y], axis=1)
    model = dlfm.DeepLFMRegressor(recipe, training, progress=False, check=False).fit(x, both)
    model.save(tmp_path / "table")
    again = dlfm.load(tmp_path / "table")
    np.testing.assert_array_equal(again.predict(x), model.predict(x))
    assert isinstance(again.model, dlfm.FourierDLFM)
    assert again.model.frequency_init == "evidence"
