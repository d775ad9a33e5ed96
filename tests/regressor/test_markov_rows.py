"""New rows, other series, panels and known inputs: the same physics, no fit."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import deeplfm as dlfm
from deeplfm.data import dataset

Values = Any
ids_of_rows = np.repeat(["a", "b", "c"], [30, 20, 6])


def estimator(steps: int = 4, **recipe: Any) -> dlfm.DeepLFMRegressor:
    recipe = {"modes": 2} | recipe
    training = dlfm.Training(steps=steps)
    return dlfm.DeepLFMRegressor(dlfm.MarkovDLFM(**recipe), training, progress=False, check=False)


def rows(count: int, seed: int = 0) -> tuple[Values, Values]:
    rng = np.random.default_rng(seed)
    t = np.sort(rng.uniform(0, 10, count))
    y = np.stack([np.sin(3 * t), np.cos(3 * t)], 1) + 0.1 * rng.normal(size=(count, 2))
    y[rng.uniform(size=y.shape) < 0.2] = np.nan
    y[0] = 0.5
    return t, y


def panel() -> tuple[Values, Values]:
    parts = [rows(30, 0), rows(20, 1), rows(6, 2)]
    return np.concatenate([t for t, _ in parts]), np.concatenate([y for _, y in parts])


RECIPES: list[dict[str, Any]] = [
    {},
    {"trend": "linear"},
    {"modes": 1, "greens_function": dlfm.FirstOrder(2.0), "memory": "zero"},
    {"likelihood": dlfm.StudentT()},
]


@pytest.mark.parametrize("recipe", RECIPES)
def test_an_update_is_the_same_as_all_rows_at_once(recipe: dict[str, Any]) -> None:
    t, y = rows(50)
    model = estimator(**recipe).fit(t[:25], y[:25])
    model.fitted_ = (first := model.fitted_)
    whole = replace(first, data=dataset(t, y))
    asked = np.linspace(-2, 14, 30)
    expected = whole.summary(asked)
    model.update(t[25:46], y[25:46])
    for k in range(46, 50):  # one row at a time
        model.update(t[k : k + 1], y[k : k + 1])
    mean, std = model.predict(asked, return_std=True)
    np.testing.assert_allclose(mean, expected.mean, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(std, expected.std, rtol=1e-8)
    assert len(first.data) == int((~np.isnan(y[:25])).any(1).sum())


def test_an_update_may_come_before_and_miss_outputs() -> None:
    t, y = rows(50)
    model = estimator().fit(t[25:], y[25:])
    whole = replace(model.fitted_, data=dataset(t, y))
    earlier = y[:25].copy()
    model.update(t[:25], np.where([True, False], earlier, np.nan))
    model.update(t[:25], np.where([False, True], earlier, np.nan))
    np.testing.assert_allclose(model.predict(t), whole.summary(t).mean, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_panel_is_its_series_conditioned_one_by_one(recipe: dict[str, Any]) -> None:
    t, y = panel()
    model = estimator(**recipe).fit(t, y, series=ids_of_rows)
    asked = np.linspace(-1, 12, 5)
    for label in "abc":
        own = model.condition(t[ids_of_rows == label], y[ids_of_rows == label])
        found = model.predict(asked, return_std=True, series=[label] * 5)
        for one, other in zip(found, own.predict(asked, return_std=True), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-8)
    mixed = np.array(["c", "a", "b"] * 5)
    times = np.linspace(0, 10, 15)
    together = model.predict(times, series=mixed)
    for label in "abc":
        alone = model.predict(times[mixed == label], series=mixed[mixed == label])
        np.testing.assert_allclose(together[mixed == label], alone, rtol=1e-9, atol=1e-9)


def test_a_panel_has_draws_and_forces_of_every_series() -> None:
    t, y = panel()
    y[ids_of_rows == "c"] = np.nan  # nothing was observed of the last one
    model = estimator().fit(t, y, series=ids_of_rows)
    ids = ["a", "b", "c"]
    p = model.predictive(np.array([1.0, 2.0, 3.0]), 2, series=ids)
    assert p.samples.shape == p.sample_y().shape == (2, 3, 2)
    np.testing.assert_array_equal(model.draw(2)([1.0, 2.0, 3.0], ids), p.samples)
    assert np.isfinite(p.mean).all()
    forces = model.latent_forces([1.0, 2.0], series=["a", "b"])
    assert forces.mean.shape[0] == 2
    with pytest.raises(dlfm.InputError, match="series must say"):
        model.predict([1.0])
    with pytest.raises(dlfm.InputError, match=r"among the 3.*\['d'\]"):
        model.predict([1.0], series=["d"])
    with pytest.raises(dlfm.InputError, match="one id per row"):
        model.predict([1.0], series=["a", "b"])


def test_updates_of_a_panel_go_to_their_series() -> None:
    t, y = panel()
    model = estimator().fit(t, y, series=ids_of_rows)
    with pytest.raises(dlfm.InputError, match="series must say"):
        model.update([11.0], [[0.1, 0.2]])
    before = model.predict([11.0, 11.0], series=["a", "b"])
    model.update([11.0, 11.0], [[3.0, 3.0], [np.nan] * 2], series=["b", "a"])
    after = model.predict([11.0, 11.0], series=["a", "b"])
    np.testing.assert_allclose(after[0], before[0], rtol=1e-9, atol=1e-9)
    assert (after[1] > before[1] + 0.5).all()
    alone = model.condition(
        np.append(t[ids_of_rows == "b"], 11.0),
        np.concatenate([y[ids_of_rows == "b"], [[3.0, 3.0]]]),
    )
    np.testing.assert_allclose(after[1:], alone.predict([11.0]), rtol=1e-8)
    model.update([1.0, 2.0], [[1.0, 1.0]] * 2, series=["d", "d"])  # a new one
    assert np.isfinite(model.predict([1.0], series=["d"])).all()


def test_new_rows_that_do_not_fit_are_refused() -> None:
    t, y = rows(30)
    plain, known = estimator().fit(t, y), estimator().fit(t, y, known=np.sin(t))
    refused: list[tuple[Any, str]] = [
        (lambda: plain.update(t, y[:, 0]), "2 outputs"),
        (lambda: plain.condition(t, y[:, 0]), "2 outputs"),
        (lambda: plain.update(t, y, series=["a"] * 30), "series must be left out"),
        (lambda: plain.update(t, y, known=t), "0 inputs"),
        (lambda: plain.condition(t, y, known=t), "0 inputs"),
        (lambda: known.update(t + 10, y), "1 inputs"),
        (lambda: known.condition(t, y), "1 inputs"),
        (lambda: known.predict(t, known=np.stack([t, t], 1)), "1 inputs"),
        (lambda: plain.predict(t, known=t), "fitted without"),
        (lambda: plain.condition(t, np.full_like(y, np.nan)), "observation or more"),
    ]
    for call, words in refused:
        with pytest.raises(dlfm.InputError, match=words):
            call()


@pytest.mark.parametrize("recipe", [{}, {"greens_function": dlfm.FirstOrder(1.0), "modes": 0}])
def test_known_inputs_are_followed(recipe: dict[str, Any]) -> None:
    """A step of the input that outputs answer, in rows without targets too."""
    rng = np.random.default_rng(0)
    t = np.arange(60) * 0.2
    u = np.where((t % 4) < 2, 1.0, -1.0)
    answer = np.ones(60)  # in the steady state of the first input
    for k in range(1, 60):  # y' = 2 (u - y), u held from row to row
        answer[k] = u[k - 1] + (answer[k - 1] - u[k - 1]) * np.exp(-0.4)
    y = answer + 0.02 * rng.normal(size=60)
    y[20:30] = np.nan
    model = estimator(40, level=False, trend="none", **recipe).fit(t[:40], y[:40], known=u[:40])
    np.testing.assert_allclose(model.predict(t[20:30]), answer[20:30], atol=0.25)
    later = model.predict(t[40:], known=u[40:])
    turned = model.predict(t[40:], known=-u[40:])
    np.testing.assert_allclose(later, answer[40:], atol=0.35)
    assert np.abs(later - turned).max() > 1
    # Up to the last training row the inputs are those of the fit, whatever comes with a prediction.
    np.testing.assert_allclose(
        model.predict(t[:40], known=0 * t[:40]), model.predict(t[:40]), rtol=1e-10, atol=1e-10
    )
    p = model.predictive(t[40::4], 48, known=u[40::4])
    error = 6 * p.std / 48**0.5 + 0.05
    assert (np.abs(p.samples.mean(0) - p.mean) < error).all()


def test_known_inputs_of_an_update_and_of_a_panel() -> None:
    t, y = panel()
    rng = np.random.default_rng(5)
    u = rng.normal(size=len(t))
    model = estimator().fit(t, y, series=ids_of_rows, known=u)
    new = np.array([11.0, 12.0])
    whole = model.condition(
        np.concatenate([t[ids_of_rows == "b"], new]),
        np.concatenate([y[ids_of_rows == "b"], np.ones((2, 2))]),
        known=np.concatenate([u[ids_of_rows == "b"], [2.0, -1.0]]),
    )
    model.update(new, np.ones((2, 2)), series=["b", "b"], known=[2.0, -1.0])
    np.testing.assert_allclose(
        model.predict([10.5, 11.5, 14.0], series=["b"] * 3),
        whole.predict([10.5, 11.5, 14.0]),
        rtol=1e-8,
        atol=1e-8,
    )
