"""Far from the data: finite and told, or refused with the ranges named."""

import numpy as np
import pytest

import deeplfm as dlfm
from deeplfm.errors import DataWarning

X = np.linspace(2.0, 4.0, 24)
Y = np.stack([np.sin(5 * X), X], axis=1)
REFUSED = (
    "'x0' must be within 10000 ranges of the data, which range from 2 to 4; got .* ranges away"
)
RECIPES = {
    "a local trend": dlfm.MarkovDLFM(num_layers=1, modes=0, trend="local"),
    "fourier": dlfm.FourierDLFM(num_features=4, hidden_dim=2),
    "inducing": dlfm.InducingDLFM(num_inducing=5, hidden_dim=2),
}


@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe(name: str) -> None:
    training = dlfm.Training(steps=2, num_samples=2)
    model = dlfm.DeepLFMRegressor(RECIPES[name], training, progress=False, check=False).fit(X, Y)
    for at in (1.7e9, -1.7e9, 4.0 + 2e4 * 1.01, 1e300, -1e308):
        with pytest.raises(
            dlfm.InputError,
            match=REFUSED,
        ):
            model.predict([3.0, at])
        with pytest.raises(dlfm.InputError, match="10000 ranges"):
            model.predictive([at])
        with pytest.raises(dlfm.InputError, match="10000 ranges"):
            model.draw(1)([at])
    for at in (1.9e4, -1.9e4, 24.5):
        with pytest.warns(
            DataWarning, match=r"'x0' goes to .* ranges beyond the data, which range"
        ):
            mean, std = model.predict([at], return_std=True)
        assert np.isfinite(mean).all()
        assert (std > 0).all()
        assert np.isfinite(std).all()
    assert np.isfinite(model.predict([-15.0, 23.0])).all()  # without a warning


def test_each_of_several_inputs_has_its_range() -> None:
    x = np.random.default_rng(0).normal(size=(30, 2)) * [1.0, 1e6]
    model = dlfm.DeepLFMRegressor(training=dlfm.Training(steps=1), progress=False, check=False)
    model.fit(x, x[:, 0])
    assert np.isfinite(model.predict([[0.0, 1e6]])).all()
    with pytest.raises(dlfm.InputError, match="'x0' must be within 10000 ranges"):
        model.predict([[1e6, 1e6]])


def test_new_rows_widen_what_may_be_asked() -> None:
    model = dlfm.DeepLFMRegressor(
        dlfm.MarkovDLFM(num_layers=1, modes=0), dlfm.Training(steps=1), progress=False, check=False
    )
    model.fit(X, Y)
    assert np.isfinite(model.condition(X + 1e6, Y).predict([1e6])).all()
    with pytest.raises(dlfm.InputError, match="10000 ranges"):
        model.predict([1e6])
