"""Promises of every baseline that is registered: units, shapes, folders, seeds, clones, errors."""

import contextlib
import inspect
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import SkipTest

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.estimator_checks import estimator_checks_generator

import deeplfm as dlfm
from deeplfm.paper import baselines
from deeplfm.paper.baselines import Baseline, History, registered_baselines
from deeplfm.paper.baselines.exact_gp import ExactGP
from deeplfm.paper.baselines.lag_ridge import LagRidge
from deeplfm.paper.baselines.statsmodels_states import VectorSeries

Values = NDArray[np.float64]
REGISTERED = registered_baselines()


def series() -> tuple[Values, Values]:
    t = np.linspace(3, 5, 60)
    noise = 0.1 * np.random.default_rng(0).normal(size=(60, 2))
    y = np.stack([np.sin(12 * t), 100 + 20 * np.cos(12 * t)], 1) + noise
    y[20:30, 0] = y[40:45, 1] = np.nan
    return t, y


@pytest.fixture(params=REGISTERED)
def model(request: Any) -> Baseline:
    """A new model of each baseline that is registered, quick to fit."""
    entry = REGISTERED[request.param]
    return entry.cls(**entry.smoke, progress=False)


def subclasses(cls: type[Any]) -> Iterator[type[Any]]:
    yield cls
    for below in cls.__subclasses__():
        yield from subclasses(below)


def test_every_class_of_the_room_is_registered() -> None:
    classes = {
        cls
        for cls in subclasses(Baseline)
        if cls.__module__.startswith("deeplfm.") and not inspect.isabstract(cls)
    }
    registered = {entry.cls for entry in REGISTERED.values()}
    assert classes == {cls for cls in registered if cls.__module__.startswith("deeplfm.")}
    assert len(classes) >= 15


def test_fit_predict_save_and_load(model: Baseline, tmp_path: Path) -> None:
    t, y = series()
    assert model.fit(t, y) is model
    p = model.predictive(t, num_samples=7)
    assert p.mean.shape == p.std.shape == (60, 2)
    assert len(p.samples) in (1, 7)
    assert p.components.variance.shape == p.samples.shape
    assert (p.std > 0).all()
    assert 80 < p.mean[:, 1].mean() < 120  # the user's units
    mean, std = model.predict(t, return_std=True)
    assert mean.shape == std.shape == (60, 2)
    assert np.isfinite(model.score(t, y))
    history = model.history_
    assert set(history) == {"step", "loss", "seconds"}
    assert len({len(values) for values in history.values()}) == 1
    assert (np.diff(history["seconds"]) >= 0).all()

    model.save(tmp_path / "run")
    again = baselines.load(tmp_path / "run", device="cpu")
    assert type(again) is type(model)
    assert again.get_params() == model.get_params()
    np.testing.assert_array_equal(again.predictive(t, 7).samples, p.samples)
    np.testing.assert_array_equal(again.predictive(t, 7).std, p.std)
    np.testing.assert_array_equal(again.history_["loss"], history["loss"])
    assert {path.suffix for path in (tmp_path / "run").iterdir()} == {".json", ".safetensors"}


def test_the_same_seed_gives_the_same_model(model: Baseline) -> None:
    t, y = series()
    first, second = model.fit(t, y).predict(t), clone(model).fit(t, y).predict(t)
    np.testing.assert_array_equal(first, second)


def test_scikit_learns_parameters(model: Baseline) -> None:
    changed = clone(model).set_params(seed=5, device="cpu")
    assert changed.seed == 5
    assert clone(changed).get_params() == changed.get_params()
    assert model.seed == 0


@pytest.mark.filterwarnings("ignore")
@pytest.mark.usefixtures("without_shape_checks")
def test_scikit_learns_own_checks() -> None:
    """But for one: X [N] is one input here."""
    done = 0
    for estimator, check in estimator_checks_generator(ExactGP(steps=3)):
        if getattr(check, "func", check).__name__ == "check_fit1d":
            continue
        with contextlib.suppress(SkipTest):
            check(estimator)
            done += 1
    assert done > 40


def test_names_and_one_column(model: Baseline) -> None:
    t, y = series()
    frame = pd.DataFrame({"time": t})
    if isinstance(model, (LagRidge, VectorSeries)):
        with pytest.raises(dlfm.InputError, match="needs other channels"):
            model.fit(frame, y[:, 1])
        return
    model.fit(frame, pd.Series(y[:, 1], name="pressure"))
    assert model.output_names_ == ("pressure",)
    assert model.predict(frame).shape == (60,)
    assert model.predictive(frame).names == ("pressure",)


def test_a_loaded_model_knows_the_names_of_its_inputs(tmp_path: Path) -> None:
    t, y = series()
    frame = pd.DataFrame({"time": t, "depth": t**2})
    ExactGP(steps=1).fit(frame, y).save(tmp_path)
    model = baselines.load(tmp_path)
    assert model.n_features_in_ == 2
    assert model.feature_names_in_.tolist() == ["time", "depth"]
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame.rename(columns={"time": "hour"}))


def test_a_history_counts_steps_from_one() -> None:
    history = History()
    assert {name: len(column) for name, column in history.arrays().items()} == {
        "step": 0, "loss": 0, "seconds": 0,
    }  # fmt: skip
    history.add(3.0)
    history.add(torch.tensor(2.0, requires_grad=True))
    columns = history.arrays()
    assert columns["step"].tolist() == [1, 2]
    assert columns["loss"].tolist() == [3, 2]
    history.add(float("nan"))
    history.add(1.0)
    with pytest.raises(dlfm.NumericalError, match="it was nan at step 3"):
        history.arrays()


def test_errors_say_what_to_do(model: Baseline, tmp_path: Path) -> None:
    t, y = series()
    with pytest.raises(dlfm.InputError, match="requires y to be passed"):
        model.fit(t, None)
    with pytest.raises(dlfm.InputError, match="equal rows"):
        model.fit(np.ones(60), y)
    with pytest.raises(dlfm.InputError, match="device must be one of"):
        clone(model).set_params(device="abacus").fit(t, y)
    with pytest.raises(dlfm.InputError, match="seed must be an integer"):
        clone(model).set_params(seed=0.5).fit(t, y)
    model.fit(t, y)
    with pytest.raises(dlfm.InputError, match="num_samples must be an integer"):
        model.predictive(t, num_samples=0)
    with pytest.raises(dlfm.InputError, match="as in the fit"):
        model.score(t, y[:, :1])


def test_a_folder_that_was_changed_is_refused(tmp_path: Path) -> None:
    t, y = series()
    with pytest.raises(dlfm.InputError, match=r"must hold a saved model; baseline.json is not"):
        baselines.load(tmp_path)
    ExactGP(steps=1).fit(t, y).save(tmp_path)
    numbers = tmp_path / "baseline.safetensors"
    whole = numbers.read_bytes()
    numbers.write_bytes(whole[:-1] + b"x")
    with pytest.raises(dlfm.InputError, match="missing or was changed"):
        baselines.load(tmp_path)
    numbers.write_bytes(whole)
    settings = tmp_path / "baseline.json"
    settings.write_text(json.dumps(json.loads(settings.read_text()) | {"baseline": "Magic"}))
    with pytest.raises(dlfm.InputError, match="was changed"):
        baselines.load(tmp_path)
