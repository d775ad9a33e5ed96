"""Random data sets of every size, scale and gap: finite predictions, or one sentence that refuses.

A few here; 300 of them with every recipe with `--large`.
"""

import warnings
from typing import Any

import numpy as np
import pytest

import deeplfm as dlfm
from deeplfm.errors import DataWarning, DeepLFMError
from deeplfm.models import ModelSettings

RECIPES: dict[str, ModelSettings | str] = {
    "auto": "auto",
    "fourier": dlfm.FourierDLFM(num_features=4, hidden_dim=2),
    "inducing": dlfm.InducingDLFM(num_inducing=4, hidden_dim=2),
    "one layer": dlfm.MarkovDLFM(num_layers=1, modes=2),
}
TRAINING = dlfm.Training(steps=2, num_samples=2)
DATA_SETS, FEW = 300, 2


def data_set(number: int) -> tuple[Any, Any]:
    """Inputs [N, P] and targets [N, D] of a number: most have something that hurts."""
    random = np.random.default_rng(number)
    rows, inputs, outputs = (int(random.integers(1, most + 1)) for most in (200, 4, 5))
    rows = int(random.choice([rows, 1, 2, 3, 5], p=[0.8, 0.02, 0.06, 0.06, 0.06]))
    inputs = int(random.choice([1, inputs]))
    x = random.uniform(0, 10, (rows, inputs))
    y = np.sin(x[:, :1] * random.uniform(0.5, 5, outputs)) + 0.1 * random.normal(
        size=(rows, outputs)
    )
    if random.random() < 0.3:
        y[random.random(y.shape) < random.choice([0.1, 0.5, 0.9, 0.99])] = np.nan
    if random.random() < 0.3:
        x = x[random.integers(0, rows, rows)]  # duplicates
    if random.random() < 0.2:
        y[random.integers(0, rows), 0] = random.choice([1e3, 1e6, -1e9])  # an outlier
    if random.random() < 0.2:
        y[:, random.integers(0, outputs)] = random.choice([0.0, 1.0, 1e10])
    if random.random() < 0.2:
        x[:, random.integers(0, inputs)] = random.choice([0.0, 7.0])
    if random.random() < 0.3:
        most = int(random.choice([298, 140]))
        y = y * 10.0 ** random.integers(-most, most, outputs)
    elif random.random() < 0.3:
        y = y * 10.0 ** random.integers(-12, 12, outputs) + 10.0 ** random.integers(-3, 9)
    if random.random() < 0.2:
        most = int(random.choice([298, 18]))
        x = x * 10.0 ** random.integers(-most, most, inputs)
    elif random.random() < 0.3:
        x = x * 10.0 ** random.integers(-6, 6, inputs) + 1.7e9
    return x, y


def outcome(number: int, name: str) -> str:
    """What comes of a data set with a recipe: "done", or why it was refused."""
    x, y = data_set(number)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            model = dlfm.DeepLFMRegressor(RECIPES[name], TRAINING, progress=False, check=False)
            model.fit(x, y)
            low, high = x.min(0), x.max(0)
            asked = np.concatenate([x[:5], [low - 5 * (high - low), high + 5 * (high - low)]])
            mean, std = model.predict(asked, return_std=True)
        except DeepLFMError as error:
            return str(error)
    assert np.isfinite(mean).all(), "the mean is not finite"
    assert np.isfinite(std).all(), "the deviation is not finite"
    assert (std > 0).all(), "there is no spread"
    return "done"


@pytest.mark.usefixtures("without_shape_checks")
@pytest.mark.parametrize("name", [name for name in RECIPES if name != "auto"])
def test_random_data_sets(name: str, large: bool) -> None:
    for number in range(DATA_SETS if large else FEW):
        found = outcome(number, name)
        assert found == "done" or (found.endswith(".") and "\n" not in found), (number, found)


def test_the_default_with_random_data_sets(large: bool) -> None:
    if large:
        for number in range(DATA_SETS):
            outcome(number, "auto")


def test_far_away_is_told() -> None:
    x = np.arange(10.0)
    model = dlfm.DeepLFMRegressor(RECIPES["fourier"], TRAINING, progress=False, check=False)
    with pytest.warns(DataWarning, match="ranges beyond"):
        model.fit(x, np.sin(x)).predict([500.0])


def test_a_constant_without_noise() -> None:
    """The noise goes to nothing, and its curvature cannot be computed."""
    x = np.random.default_rng(17).uniform(0, 10, (149, 1))
    model = dlfm.DeepLFMRegressor(RECIPES["one layer"], TRAINING, progress=False, check=False)
    mean, std = model.fit(x, np.full(149, 1e10)).predict(x[:2], return_std=True)
    assert np.allclose(mean, 1e10)
    assert (std > 0).all()
