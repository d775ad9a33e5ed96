"""Draws of a state-space model are functions, and agree with its exact moments; it can be saved."""

from copy import copy
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import deeplfm as dlfm
from deeplfm.regressor import markov, markov_members

KINDS: dict[str, dict[str, Any]] = {
    "bank and level": {"modes": 2},
    "line": {"modes": 1, "trend": "linear"},
    "slope that wanders": {"modes": 0, "trend": "local"},
    "ODE from rest": {"modes": 0, "greens_function": dlfm.FirstOrder(1.0), "memory": "zero"},
    "ODE": {"modes": 0, "level": False, "greens_function": dlfm.FirstOrder(1.0)},
    "heavy tails": {"modes": 2, "likelihood": dlfm.StudentT()},
}
ASKED = np.array([-3.0, -0.4, 0.1, 2.0, 5.5, 9.7, 10.5, 13.0, 25.0])


@lru_cache
def fit(kind: str) -> dlfm.DeepLFMRegressor:
    rng = np.random.default_rng(0)
    t = np.sort(rng.uniform(0, 10, 40))
    y = np.stack([np.sin(2 * t), np.cos(2 * t)], 1) + 0.2 * rng.normal(size=(40, 2))
    y[rng.uniform(size=y.shape) < 0.2] = np.nan
    recipe, training = dlfm.MarkovDLFM(**KINDS[kind]), dlfm.Training(steps=4)
    return dlfm.DeepLFMRegressor(recipe, training, progress=False, check=False).fit(t, y)


@pytest.mark.parametrize("kind", list(KINDS))
def test_a_draw_is_the_same_function_everywhere(kind: str) -> None:
    f = fit(kind).draw(1, seed=5)
    values = f(ASKED)
    np.testing.assert_allclose(f(ASKED[::-1])[:, ::-1], values, rtol=1e-8, atol=1e-8)
    for k in (0, 4):
        np.testing.assert_allclose(f(ASKED[k : k + 1])[:, 0], values[:, k], rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("kind", list(KINDS))
def test_draws_have_the_moments_of_the_prediction(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two physics, each with its draws: the exact moments are those of the same physics."""
    monkeypatch.setattr(markov, "PHYSICS", 2)
    monkeypatch.setattr(markov_members, "PHYSICS", 2)
    monkeypatch.setattr(markov, "_FEWEST", 2)
    model, count = fit(kind), 250
    p = model.predictive(ASKED, num_samples=2 * count, seed=3)
    mean, variance, _ = model.fitted_._moments(ASKED, None, None, 3)
    own = p.samples.reshape(2, count, len(ASKED), 2)
    assert (np.abs(own.mean(1) - mean) <= 5 * np.sqrt(variance / count)).all()
    # The mean square of n normals has a standard deviation of √(2/n) of what it is near.
    spread = ((own - mean[:, None]) ** 2).mean(1)
    np.testing.assert_allclose(spread, variance, rtol=5 * (2 / count) ** 0.5)


def test_what_is_at_rest_is_so_before_the_first_row() -> None:
    model = fit("ODE from rest")
    early = np.array([-5.0, -1.0])
    forces = model.latent_forces(np.array([-5.0, -1.0, 5.0]))
    assert np.isfinite(forces.std).all()
    expected = model.predict(np.array([5.0]))
    np.testing.assert_allclose(model.predict(np.append(early, 5.0))[2:], expected, rtol=1e-10)


@pytest.mark.parametrize("kind", list(KINDS))
def test_a_saved_model_predicts_the_same(kind: str, tmp_path: Path) -> None:
    model = copy(fit(kind)).update([10.5], [[0.1, np.nan]])
    model.save(tmp_path)
    again = dlfm.load(tmp_path)
    for one, other in zip(
        again.predict(ASKED, return_std=True), model.predict(ASKED, return_std=True), strict=True
    ):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(again.draw(1)(ASKED[3:]), model.draw(1)(ASKED[3:]))
    assert again.posterior(3).names == model.posterior(3).names
    assert again.data_ is not None
    np.testing.assert_array_equal(again.data_.y, model.fitted_.data.y)
    kept = {"manifest.json", "model.json", "model.safetensors"}
    assert {one.name for one in tmp_path.iterdir()} == kept


def test_panels_and_known_inputs_are_saved(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    t, ids = np.tile(np.arange(20.0), 2), np.repeat(["x", "y"], 20)
    y, u = rng.normal(size=40), rng.normal(size=(40, 2))
    recipe, training = dlfm.MarkovDLFM(modes=1), dlfm.Training(steps=2)
    model = dlfm.DeepLFMRegressor(recipe, training, progress=False, check=False)
    model.fit(t, y, series=ids, known=u).save(tmp_path)
    options: dict[str, Any] = {"series": ["x", "y"], "known": [[1.0, 2.0], [3.0, 4.0]]}
    found = dlfm.load(tmp_path).predict([21.0, 5.0], **options)
    np.testing.assert_array_equal(found, model.predict([21.0, 5.0], **options))


@pytest.mark.parametrize("name", ["model.json", "model.safetensors"])
@pytest.mark.parametrize("place", [0.02, 0.5, 0.98])
def test_a_changed_file_is_refused(name: str, place: float, tmp_path: Path) -> None:
    fit("line").save(tmp_path)
    path = tmp_path / name
    content = bytearray(path.read_bytes())
    content[int(place * len(content))] ^= 4
    path.write_bytes(content)
    with pytest.raises(dlfm.InputError, match="must"):
        dlfm.load(tmp_path)
