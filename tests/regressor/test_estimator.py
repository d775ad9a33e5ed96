"""The scikit-learn door: its conventions, its shapes, and the model coming back as it was."""

import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import deeplfm as dlfm
from deeplfm.data import cardiac

SMALL = dlfm.FourierDLFM(num_features=10, hidden_dim=2)
SHORT = dlfm.Training(steps=20, num_samples=2)


def small(**settings: Any) -> dlfm.DeepLFMRegressor:
    chosen: dict[str, Any] = {"model": SMALL, "training": SHORT} | settings
    return dlfm.DeepLFMRegressor(**chosen)


X = np.linspace(0, 8, 60)
Y = np.stack([np.sin(2 * X), 100 + 50 * np.cos(2 * X)], axis=1)
Y[10:20, 0] = np.nan


@pytest.fixture(scope="module")
def fitted() -> dlfm.DeepLFMRegressor:
    return small().fit(pd.DataFrame({"t": X}), pd.DataFrame(Y, columns=["abp", "ecg"]))


def test_everything_the_interface_promises(fitted: dlfm.DeepLFMRegressor) -> None:
    new = pd.DataFrame({"t": np.linspace(0, 9, 7)})
    mean, std = fitted.predict(new, return_std=True)
    assert mean.shape == std.shape == (7, 2)
    assert np.array_equal(fitted.predict(new), mean)
    p, again = fitted.predictive(new), fitted.predictive(new)
    assert p.samples.shape == (200, 7, 2)
    assert np.array_equal(p.samples, again.samples)  # the fit's seed, unless another is asked for
    assert not np.array_equal(p.samples, fitted.predictive(new, seed=7).samples)
    np.testing.assert_allclose(p.mean, mean, rtol=1e-12)
    np.testing.assert_allclose(p.std, std, rtol=1e-12)
    assert p.names == fitted.output_names_ == ("abp", "ecg")
    f = fitted.draw(num_samples=5, seed=1)
    assert f(new).shape == (5, 7, 2)
    assert np.array_equal(f(new), fitted.draw(num_samples=5, seed=1)(new))
    forces = fitted.latent_forces(new, layer=0)
    assert forces.mean.shape == (7, len(forces.names))
    hidden = fitted.hidden_functions(new, layer=0)
    assert hidden.names == ("hidden 0", "hidden 1")
    last = fitted.hidden_functions(new, layer=1, num_samples=200)
    np.testing.assert_allclose(last.samples, p.samples)
    assert list(fitted.feature_names_in_) == ["t"]
    steps = fitted.history_["step"]
    assert {"step", "loss", "expected_log_likelihood", "kl", "seconds"} <= set(fitted.history_)
    assert steps.tolist() == list(range(1, 21))
    assert (np.diff(fitted.history_["seconds"]) >= 0).all()


def test_score_is_r2_over_what_was_observed(fitted: dlfm.DeepLFMRegressor) -> None:
    frame = pd.DataFrame({"t": X})
    mean = fitted.predict(frame)
    seen = ~np.isnan(Y)
    expected = [
        1 - np.mean((Y - mean)[seen[:, k], k] ** 2) / np.var(Y[seen[:, k], k]) for k in range(2)
    ]
    assert fitted.score(frame, Y) == pytest.approx(np.mean(expected))
    with pytest.raises(dlfm.InputError, match=r"y must be \[60, 2\], as in the fit; got \(60, 1\)"):
        fitted.score(frame, Y[:, :1])


@pytest.mark.parametrize("form", [list, np.asarray, torch.tensor, pd.Series])
def test_one_output_stays_flat_and_every_form_is_the_same_fit(form: Any) -> None:
    model = small().fit(form(X), form(Y[:, 1]))
    mean, std = model.predict(form(X[:5]), return_std=True)
    assert mean.shape == std.shape == (5,)
    reference = small().fit(X, Y[:, 1]).predict(X[:5])
    assert np.array_equal(mean, reference)


def test_long_format() -> None:
    frame = pd.DataFrame(
        {
            "t": np.concatenate([X, X + 0.03]),
            "channel": ["a"] * 60 + ["b"] * 60,
            "y": np.concatenate([np.sin(X), np.cos(X)]),
        }
    )
    long = dlfm.from_long(frame, input="t", output="channel", value="y")
    model = small().fit(**long)
    assert model.output_names_ == ("a", "b")
    assert np.isfinite(model.predict(long["X"])).all()


def test_nested_parameters_rebuild_the_frozen_settings() -> None:
    model: Any = small()
    recipe = model.model
    model.set_params(model__hidden_dim=4, training__steps=7, seed=3)
    assert (model.model.hidden_dim, model.training.steps, model.seed) == (4, 7, 3)
    assert recipe.hidden_dim == 2
    assert model.get_params()["model__hidden_dim"] == 4
    model.set_params(model__greens_function=dlfm.FirstOrder(2.0))
    twin = clone(model)
    assert twin.model.greens_function is model.model.greens_function
    assert twin.training == model.training
    with pytest.raises(dlfm.InputError, match=r"model must be given parameters among .*'hidden_d'"):
        model.set_params(model__hidden_d=4)
    with pytest.raises(ValueError, match="Invalid parameter 'sead'"):
        model.set_params(sead=4)
    model.set_params(model=dlfm.InducingDLFM(), model__num_inducing=9)
    assert model.model == dlfm.InducingDLFM(num_inducing=9, likelihood=model.model.likelihood)


@pytest.mark.usefixtures("without_shape_checks")  # counts of numpy are no int to the checker
def test_grid_search_in_a_pipeline(tmp_path: Path) -> None:
    chain = make_pipeline(StandardScaler(), small(training=dlfm.Training(steps=3, num_samples=1)))
    grid = {"deeplfmregressor__model__hidden_dim": np.array([1, 2])}
    search = GridSearchCV(chain, grid, cv=2).fit(X[:, None], Y[:, 1])
    best = search.best_estimator_[-1]
    assert best.model.hidden_dim in (1, 2)
    best.save(tmp_path)  # settings that numpy made are saved too
    again: Any = dlfm.load(tmp_path)
    assert again.model.hidden_dim == best.model.hidden_dim


@pytest.mark.parametrize("recipe", [SMALL, dlfm.InducingDLFM(num_inducing=8, num_basis=8)])
def test_saved_and_loaded_in_a_new_process(tmp_path: Path, recipe: Any) -> None:
    frame = pd.DataFrame({"t": X})
    model = small(model=recipe, seed=5, dtype="float64").fit(frame, Y)
    model.save(tmp_path / "run")
    code = f"""
import numpy as np, pandas as pd, torch
torch.set_num_threads(1)
import deeplfm as dlfm
model = dlfm.load({str(tmp_path / "run")!r})
np.save({str(tmp_path / "there.npy")!r}, model.predict(pd.DataFrame({{"t": np.linspace(0, 9, 7)}})))
"""
    subprocess.run([sys.executable, "-c", code], check=True)
    here = model.predict(pd.DataFrame({"t": np.linspace(0, 9, 7)}))
    np.testing.assert_array_equal(np.load(tmp_path / "there.npy"), here)
    again = dlfm.load(tmp_path / "run")
    # The settings that were asked for come back, not those that the data filled in.
    for name, value in model.get_params().items():
        if name != "model":
            assert again.get_params()[name] == value, name
    assert again.n_features_in_ == 1
    assert list(again.feature_names_in_) == ["t"]
    assert again.data_ is not None
    np.testing.assert_array_equal(again.data_.y, Y)
    assert np.array_equal(again.fit(frame, Y).predict(frame), model.predict(frame))


def test_nothing_is_unpickled_on_the_way_back(
    tmp_path: Path, fitted: dlfm.DeepLFMRegressor, monkeypatch: pytest.MonkeyPatch
) -> None:
    fitted.save(tmp_path)

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("load must not unpickle")

    for name in ("load", "loads", "Unpickler", "_Unpickler"):
        monkeypatch.setattr(pickle, name, refuse)
    monkeypatch.setattr(torch, "load", refuse)
    monkeypatch.setattr(np, "load", refuse)
    assert np.isfinite(dlfm.load(tmp_path).predict(pd.DataFrame({"t": [1.0]}))).all()
    # And no file of the folder is a pickle in disguise: text, or a safetensors header.
    for path in tmp_path.iterdir():
        content = path.read_bytes()
        assert content[:1] == b"{" or content[8:9] == b"{", path.name


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an accelerator")
@pytest.mark.parametrize("recipe", [SMALL, dlfm.InducingDLFM(num_inducing=8, num_basis=8)])
@pytest.mark.parametrize(("dtype", "close"), [("float32", 2e-3), ("float64", 1e-7)])
def test_another_device_predicts_the_same(
    tmp_path: Path, recipe: Any, dtype: str, close: float
) -> None:
    model = small(model=recipe, device="cuda", dtype=dtype).fit(X, Y)
    model.save(tmp_path)
    there, here = (dlfm.load(tmp_path, device=device) for device in ("cuda", "cpu"))
    assert np.array_equal(model.predict(X), there.predict(X))
    scale = here.predict(X, return_std=True)[1]
    assert (np.abs(here.predict(X) - there.predict(X)) / scale).max() < close


AWKWARD = {
    "constant output": np.stack([np.sin(X), np.full(60, 0.1)], axis=1),
    "million-fold scales": np.stack([1e6 * np.sin(X), 1e-6 * np.cos(X)], axis=1),
    "observed far apart": np.stack(
        [np.where(X < 2, np.sin(X), np.nan), np.where(X > 6, np.cos(X), np.nan)], axis=1
    ),
    "one observation of an output": np.stack(
        [np.sin(X), np.where(X[30] == X, 1.0, np.nan)], axis=1
    ),
}


@pytest.mark.parametrize("recipe", [SMALL, dlfm.InducingDLFM(num_inducing=8, num_basis=8)])
@pytest.mark.parametrize("case", AWKWARD)
def test_awkward_but_legal(case: str, recipe: Any) -> None:
    y = AWKWARD[case]
    model = small(model=recipe).fit(X, y)
    mean, std = model.predict(np.linspace(-1, 9, 11), return_std=True)
    assert np.isfinite(mean).all()
    assert (std > 0).all()
    if case == "constant output":
        np.testing.assert_allclose(mean[1:-1, 1], 0.1, rtol=0.01)
    if case == "million-fold scales":
        assert model.score(X, y) > 0.3


@pytest.mark.parametrize("recipe", [SMALL, dlfm.InducingDLFM(num_inducing=8, num_basis=8)])
def test_replicates(recipe: Any) -> None:
    model = small(model=recipe).fit(np.repeat(X, 3), np.repeat(Y, 3, axis=0))
    assert np.isfinite(model.predict(X)).all()


def test_an_interrupt_leaves_a_fitted_model(monkeypatch: pytest.MonkeyPatch) -> None:
    from deeplfm.training import Trainer

    step = Trainer._one_step

    def interrupted(self: Trainer) -> torch.Tensor:
        if self.step == 5:
            raise KeyboardInterrupt
        return step(self)

    monkeypatch.setattr(Trainer, "_one_step", interrupted)
    model = small().fit(X, Y)
    assert len(model.history_["loss"]) == 5
    assert np.isfinite(model.predict(X)).all()


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "a device that is not there": ({"device": "tpu"}, r"device must be one of \['auto', 'cpu'"),
    "an index that is not there": ({"device": "cuda:99"}, "got 'cuda:99'. Choose"),
    "half precision": ({"dtype": "float16"}, r"dtype must be one of .* got 'float16'"),
    "no recipe": ({"model": "fourier"}, r"model must be \"auto\", or settings .* got 'fourier'"),
    "no training": ({"training": 300}, r"training must be settings such as Training"),
    "a negative seed": ({"seed": -1}, "seed must be 0 or more"),
    "a seed that is no number": ({"seed": "a"}, "seed must be an integer"),
}


@pytest.mark.parametrize("case", BAD)
@pytest.mark.usefixtures("without_shape_checks")
def test_bad_settings(case: str) -> None:
    settings, message = BAD[case]
    with pytest.raises(dlfm.InputError, match=message):
        small(**settings).fit(X, Y)


@pytest.mark.usefixtures("without_shape_checks")
def test_bad_training_and_targets(fitted: dlfm.DeepLFMRegressor) -> None:
    with pytest.raises(dlfm.InputError, match="steps must be an integer of at least 1; got -5"):
        small().set_params(training__steps=-5)
    with pytest.raises(dlfm.InputError, match="same number of rows; got 59 and 60"):
        small().fit(X[:-1], Y)
    with pytest.raises(ValueError, match="feature names should match"):
        fitted.predict(pd.DataFrame({"x": X}))


MILLION = """
import sys, numpy as np, torch
torch.set_num_threads(1)
import deeplfm as dlfm
model = dlfm.load(sys.argv[1])
found = model.fitted_.summary(np.linspace(0, 8, 10**6), num_samples=100)
assert found.mean.shape == (10**6, 2) and np.isfinite(found.std).all()
# Not ru_maxrss: that begins at what the process had that started this one.
print(int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0]) / 2**20)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc")
def test_a_million_points_fit_in_memory(tmp_path: Path) -> None:
    recipe = dlfm.FourierDLFM(num_features=2, num_layers=1)
    small(model=recipe, training=dlfm.Training(steps=1)).fit(X, Y).save(tmp_path)
    command = [sys.executable, "-c", MILLION, str(tmp_path)]
    assert float(subprocess.check_output(command, text=True)) < 1  # GiB


def test_cardiac_gaps_are_covered() -> None:
    """The short version of a recorded experiment: intervals in gaps are neither blind nor vague."""
    series = cardiac(300)
    training = dlfm.Training(steps=60)
    model = dlfm.DeepLFMRegressor(dlfm.FourierDLFM(num_features=40), training, check=False)
    model.fit(series.times, series.training())
    lower, upper = model.predictive(series.times).interval(0.9)
    y = series.test("imputation")
    seen = ~np.isnan(y)
    assert 0.5 < ((y > lower) & (y < upper))[seen].mean() < 1
