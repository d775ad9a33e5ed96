"""The default model: what is chosen for which data, where it is seen, and what it refuses."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import deeplfm as dlfm
from deeplfm.data import Dataset, dataset
from deeplfm.data.stored import Stored, store
from deeplfm.regressor.choosing import choice
from deeplfm.training.automatic import training_for_table

SHORT = dlfm.Training(steps=2, num_samples=1)
T = np.linspace(0, 9, 30)
Y = np.stack([np.sin(3 * T), np.cos(3 * T)], axis=1)
TABLE = np.stack([T, np.sin(T)], axis=1)


def auto(**settings: Any) -> dlfm.DeepLFMRegressor:
    chosen: dict[str, Any] = {"training": SHORT, "check": False, "progress": False} | settings
    return dlfm.DeepLFMRegressor(**chosen)


@pytest.fixture(scope="module")
def series() -> dlfm.DeepLFMRegressor:
    return auto().fit(T, Y)


@pytest.fixture(scope="module")
def table() -> dlfm.DeepLFMRegressor:
    return auto().fit(TABLE, Y)


def test_one_input_is_a_series_several_are_a_table(
    series: dlfm.DeepLFMRegressor, table: dlfm.DeepLFMRegressor
) -> None:
    assert dlfm.DeepLFMRegressor().model == "auto"
    assert isinstance(series.fitted_.recipe, dlfm.MarkovDLFM)
    assert isinstance(table.fitted_.recipe, dlfm.FourierDLFM)
    assert series.model == table.model == "auto"  # what was asked for stays
    explicit = auto(model=dlfm.MarkovDLFM()).fit(T, Y)
    np.testing.assert_array_equal(series.predict(T), explicit.predict(T))
    assert isinstance(auto().fit(T[:, None], Y).fitted_.recipe, dlfm.MarkovDLFM)
    again = clone(series).fit(TABLE, Y)  # the choice is that of the fit, not of the estimator
    assert isinstance(again.fitted_.recipe, dlfm.FourierDLFM)


def test_what_a_state_can_do_is_there(
    series: dlfm.DeepLFMRegressor, table: dlfm.DeepLFMRegressor
) -> None:
    other = series.condition(T + 1, Y)
    assert other.model == "auto"
    assert other.predict(T + 1).shape == (30, 2)
    with pytest.raises(dlfm.InputError, match="state-space model; got a FourierDLFM"):
        table.condition(TABLE, Y)
    with pytest.raises(dlfm.InputError, match="state-space model; got a FourierDLFM"):
        table.predict(TABLE, known=T)


@pytest.mark.parametrize("kind", ["series", "table"])
def test_a_folder_names_what_was_fitted(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    model: dlfm.DeepLFMRegressor = request.getfixturevalue(kind)
    x = T if kind == "series" else TABLE
    model.save(tmp_path)
    written = json.loads((tmp_path / "model.json").read_text())
    assert written["recipe"]["type"] == type(model.fitted_.recipe).__name__
    assert written["estimator"]["mapping"]["model"] == "auto"
    found = dlfm.load(tmp_path)
    assert found.model == "auto"
    assert type(found.fitted_.recipe) is type(model.fitted_.recipe)
    np.testing.assert_array_equal(found.predict(x), model.predict(x))


def test_parameters_by_name() -> None:
    model = auto()
    assert model.get_params()["model"] == "auto"
    assert not [name for name in model.get_params() if name.startswith("model__")]
    with pytest.raises(dlfm.InputError, match=r"model must be a recipe .*'auto' and \['hidden_d"):
        model.set_params(model__hidden_dim=2)
    model.set_params(model=dlfm.FourierDLFM(), model__hidden_dim=2, training__steps=5)
    assert model.get_params()["model__hidden_dim"] == 2
    assert model.training.steps == 5
    assert clone(auto(seed=3)).get_params() == auto(seed=3).get_params()


def test_a_search_over_steps() -> None:
    search = GridSearchCV(auto(), {"training__steps": [1, 2]}, cv=2).fit(T[:, None], Y[:, 0])
    assert isinstance(search.best_estimator_.fitted_.recipe, dlfm.MarkovDLFM)


@pytest.mark.usefixtures("without_shape_checks")
@pytest.mark.parametrize("wrong", ["markov", "", None, dlfm.MarkovDLFM])
def test_what_is_no_model_is_told_in_one_sentence(wrong: Any) -> None:
    with pytest.raises(dlfm.InputError, match='model must be "auto", or settings such as Markov'):
        auto(model=wrong).fit(T, Y)


@pytest.mark.parametrize("setting", [{"restarts": 2}, {"held_out": 0.2}, {"batch_size": 10}])
def test_trainings_that_a_series_cannot_use(setting: dict[str, Any]) -> None:
    training = dlfm.Training(steps=1, num_samples=1, **setting)
    (name,) = setting
    with pytest.raises(
        dlfm.InputError, match=rf'{name}=.* with model="auto" and one input, .* model=FourierDLFM'
    ):
        auto(training=training).fit(T, Y)
    auto(training=training).fit(TABLE, Y)  # a table can


def test_panels_and_known_inputs_are_of_series() -> None:
    ids = ["a"] * 15 + ["b"] * 15
    panel = auto().fit(T, Y, series=ids, known=np.sin(T))
    assert panel.predict(T, series=ids, known=np.sin(T)).shape == (30, 2)
    for beside in ({"series": ids}, {"known": np.sin(T)}):
        with pytest.raises(dlfm.InputError, match="X must be one input, the time"):
            auto().fit(TABLE, Y, **beside)


@pytest.mark.parametrize("inputs", [1, 2])
def test_rows_on_disk(inputs: int, tmp_path: Path) -> None:
    x, names = TABLE[:, :inputs], (("t", "u")[:inputs], ("a", "b"))
    for _ in store(iter([Dataset(x, Y, *names)]), tmp_path / "rows.npy"):
        pass
    rows = Stored(tmp_path / "rows.npy", *names)
    batches = dlfm.Training(steps=2, num_samples=1, batch_size=20)
    model = auto(training=SHORT if inputs == 1 else batches).fit_stored(rows)
    kind = dlfm.MarkovDLFM if inputs == 1 else dlfm.FourierDLFM
    assert isinstance(model.fitted_.recipe, kind)
    assert model.predict(pd.DataFrame(x, columns=list(names[0]))).shape == (30, 2)


def test_a_table_is_trained_as_suits_its_recipe() -> None:
    data = dataset(np.zeros((3000, 2)), np.zeros(3000))
    suited = choice("auto", dlfm.Training(), data).training
    assert suited == training_for_table(3000)
    own = choice("auto", dlfm.Training(steps=7, batch_size=50), data).training
    assert (own.steps, own.batch_size, own.learning_rate) == (7, 50, suited.learning_rate)
    explicit = choice(dlfm.FourierDLFM(), dlfm.Training(), data)
    assert explicit.training == dlfm.Training()
