"""State-space models through the estimator: what goes in, what comes out, in any units."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import deeplfm as dlfm
from deeplfm.training.evidence import EvidenceTrainer

Values = Any


def series(rows: int = 50, seed: int = 0) -> tuple[Values, Values]:
    """Two waves at uneven times, with gaps."""
    rng = np.random.default_rng(seed)
    t = np.sort(rng.uniform(0, 10, rows))
    y = np.stack([np.sin(3 * t), np.cos(3 * t) + 0.2 * t], 1) + 0.1 * rng.normal(size=(rows, 2))
    y[rng.uniform(size=y.shape) < 0.2] = np.nan
    return t, y


def estimator(steps: int = 5, **recipe: Any) -> dlfm.DeepLFMRegressor:
    recipe = {"modes": 2} | recipe
    training = dlfm.Training(steps=steps)
    return dlfm.DeepLFMRegressor(dlfm.MarkovDLFM(**recipe), training, progress=False, check=False)


@pytest.fixture(scope="module")
def fitted() -> dlfm.DeepLFMRegressor:
    return estimator().fit(*series())


def test_shapes_come_back_as_they_went_in(fitted: dlfm.DeepLFMRegressor) -> None:
    t, y = series()
    one = estimator().fit(t, y[:, 0])
    mean, std = one.predict(t[:7], return_std=True)
    assert mean.shape == std.shape == (7,)
    mean, std = fitted.predict(t[:7, None], return_std=True)
    assert mean.shape == std.shape == (7, 2)
    p = fitted.predictive(t[:7], num_samples=3)
    assert p.samples.shape == p.sample_y().shape == (3, 7, 2)
    assert p[2:4].samples.shape == (3, 2, 2)
    assert p["y1"].sample_y().shape == (3, 7, 1)
    assert fitted.draw(2)(t[:7]).shape == (2, 7, 2)
    forces = fitted.latent_forces(t[:7])
    assert forces.mean.shape == (7, len(forces.names))
    assert fitted.hidden_functions(t[:7], num_samples=2).samples.shape == (2, 7, 2)


def test_pandas_and_float32_are_the_same_as_numpy(fitted: dlfm.DeepLFMRegressor) -> None:
    t, y = series()
    frame, targets = pd.DataFrame({"t": t}), pd.DataFrame(y, columns=["a", "b"])
    named = clone(fitted).set_params(dtype="float32").fit(frame, targets)
    assert named.output_names_ == ("a", "b")
    np.testing.assert_array_equal(named.predict(frame), fitted.predict(t))


def test_the_order_of_rows_does_not_matter_and_repeated_times_count(
    fitted: dlfm.DeepLFMRegressor,
) -> None:
    t, y = series()
    order = np.random.default_rng(1).permutation(len(t))
    shuffled = estimator().fit(t[order], y[order])
    np.testing.assert_allclose(shuffled.predict(t), fitted.predict(t), rtol=1e-7, atol=1e-9)
    twice = fitted.condition(np.repeat(t, 2), np.repeat(y, 2, axis=0))
    wider, narrower = (one.predictive(t).std for one in (fitted, twice))
    assert narrower.mean() < wider.mean()


@pytest.mark.filterwarnings("ignore:'x0' goes to")  # 5000 ranges away
def test_what_is_predicted_at_a_time_depends_on_it_alone(fitted: dlfm.DeepLFMRegressor) -> None:
    asked = np.array([4.0, -3.0, 14.0, 4.0, 5e4, 2.5])
    mean, std = fitted.predict(asked, return_std=True)
    for k, one in enumerate(asked):
        alone = fitted.predict(np.array([one]), return_std=True)
        np.testing.assert_allclose(mean[k], alone[0][0], rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(std[k], alone[1][0], rtol=1e-9)


@pytest.mark.filterwarnings("ignore:'x0' goes to")  # 5000 ranges away
@pytest.mark.parametrize("trend", ["none", "linear", "local"])
def test_far_away_predictions_are_finite_and_do_not_disturb_near_ones(trend: str) -> None:
    t, y = series()
    model = estimator(trend=trend).fit(t, y)
    # The variance of a slope that wanders grows with the third power: what comes after is rounded.
    far = np.array([-1e3 if trend == "local" else -5e4, -20.0, 5.0, 30.0, 5e4])
    mean, std = model.predict(far, return_std=True)
    assert np.isfinite(mean).all()
    assert (np.diff(std[2:], axis=0) > 0).all()
    assert (np.diff(std[:3], axis=0) < 0).all()
    # Walks of at most a few standard deviations a record, over 5000 records; slopes as well.
    growth = {"none": 5e3**0.5, "linear": 5e3, "local": 5e3**1.5}[trend]
    assert (std < 10 * growth * np.nanstd(y, axis=0)).all()
    np.testing.assert_allclose(model.predict(far)[2], model.predict(far[2:3])[0], rtol=1e-9)


def test_two_rows_and_a_constant_output() -> None:
    mean, std = estimator(modes="auto").fit([0.0, 1.0], [1.0, 3.0]).predict([0.5], return_std=True)
    assert mean == pytest.approx(2.0)
    assert np.isfinite(std).all()
    t, y = series()
    y[:, 1] = 7.0
    mean, std = estimator().fit(t, y).predict(t, return_std=True)
    np.testing.assert_allclose(mean[:, 1], 7.0, atol=0.1)
    assert (std[:, 1] < 0.7).all()


@pytest.mark.parametrize("recipe", [{}, {"trend": "local"}, {"modes": 5, "level": False}])
@pytest.mark.parametrize("unit", [1e-9, 1e9])
def test_units_change_nothing(recipe: dict[str, Any], unit: float) -> None:
    """Rounding comes back larger by the curvature's differences of 1e-4: about 1e-11."""
    t, y = series()
    plain = estimator(**recipe).fit(t, y)
    expected = plain.predict(t, return_std=True)
    for time, size in ((unit, 1.0), (1 / unit, unit)):
        found = estimator(**recipe).fit(time * t, size * y).predict(time * t, return_std=True)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one / size, other, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("shift", [1e6, -1e6])
def test_a_shift_of_time_changes_nothing(shift: float) -> None:
    t, y = series()
    expected = estimator().fit(t, y).predict(t)
    found = estimator().fit(t + shift, y).predict(t + shift)
    # Times are known to 1e-10, and waves and steps of training by them to some times that.
    np.testing.assert_allclose(found, expected, atol=1e-7)


def test_heavy_tails_ignore_outliers() -> None:
    t, y = series(60)
    truth = np.sin(3 * t)
    target = y[:, 0].copy()
    target[[8, 21, 40]] = [12.0, -15.0, 10.0]
    errors = []
    for noise in (dlfm.Gaussian(), dlfm.StudentT()):
        model = estimator(30, likelihood=noise).fit(t, target)
        errors.append(float(np.mean((model.predict(t) - truth) ** 2)))
    assert errors[1] < 0.5 * errors[0]


@pytest.mark.parametrize(
    "training", [{"restarts": 2}, {"held_out": 0.2}, {"batch_size": 10}], ids=str
)
def test_settings_that_it_does_not_have_are_refused(training: dict[str, Any]) -> None:
    model = estimator().set_params(training=dlfm.Training(steps=2, **training))
    (name,) = training
    with pytest.raises(dlfm.InputError, match=name):
        model.fit(*series())


def test_several_inputs_are_refused() -> None:
    t, y = series()
    with pytest.raises(dlfm.InputError, match="one input"):
        estimator().fit(np.stack([t, t], 1), y)


@pytest.mark.parametrize("after", [1, 3])
def test_an_interrupt_keeps_what_there_is_and_a_resumed_fit_is_the_same(
    after: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    t, y = series()
    plain = EvidenceTrainer._one_step

    def interrupted(self: EvidenceTrainer) -> None:
        if self.step == after:
            raise KeyboardInterrupt
        plain(self)

    monkeypatch.setattr(EvidenceTrainer, "_one_step", interrupted)
    model = estimator(8).fit(t, y, checkpoints=tmp_path)
    assert model.fitted_.steps == after
    assert len(model.history_["loss"]) == after
    assert np.isfinite(model.predict(t)).all()
    model.save(tmp_path / "saved")
    np.testing.assert_array_equal(dlfm.load(tmp_path / "saved").predict(t), model.predict(t))
    monkeypatch.undo()
    resumed = estimator(8).fit(t, y, checkpoints=tmp_path)
    np.testing.assert_array_equal(resumed.predict(t), estimator(8).fit(t, y).predict(t))


def test_an_interrupt_before_the_first_step_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(self: EvidenceTrainer) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(EvidenceTrainer, "_one_step", interrupted)
    with pytest.raises(KeyboardInterrupt):
        estimator(8).fit(*series(), checkpoints=tmp_path)
    assert not list(tmp_path.iterdir())


def test_scikit_learn_tools() -> None:
    t, y = series()
    target = np.sin(3 * t)
    assert clone(estimator(modes=3)).get_params()["model__modes"] == 3
    search = GridSearchCV(estimator(), {"model__modes": [1, 2]}, cv=2).fit(t[:, None], target)
    assert search.best_params_["model__modes"] in (1, 2)
    double = FunctionTransformer(lambda x: 2 * x)
    line = make_pipeline(double, estimator()).fit(t[:, None], y)
    np.testing.assert_array_equal(
        line.predict(t[:, None]), estimator().fit(2 * t, y).predict(2 * t)
    )


@pytest.mark.parametrize(
    "recipe",
    [
        {"greens_function": dlfm.FirstOrder(2.0)},
        {"greens_function": [dlfm.FirstOrder(2.0), dlfm.SecondOrder(damping=0.3, frequency=3.0)]},
    ],
)
def test_forces_and_physics_of_ones_own(recipe: dict[str, Any]) -> None:
    t, y = series()
    model = estimator(**({"modes": "auto"} | recipe)).fit(t, y)
    forces = model.latent_forces(t)
    assert forces.names == ("force 0",)
    assert forces.std.shape == (50, 1)
    draws = model.posterior(6)
    assert draws.values.shape == (6, len(draws.names))
    assert (draws["y0: decay"] > 0).all()
    assert list(draws.to_frame().columns) == list(draws.names)
    with pytest.raises(dlfm.InputError, match="name of a parameter"):
        draws["nothing"]
