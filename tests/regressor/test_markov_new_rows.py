"""Rows that a state-space model is given after its fit: alike those of the fit, in their series."""

import numpy as np
import pytest
import torch

import deeplfm as dlfm
from deeplfm.data import dataset
from deeplfm.regressor.markov_rows import appended
from deeplfm.statespace import known_response

T = np.linspace(0, 6, 30)


@pytest.fixture(scope="module")
def panel() -> dlfm.DeepLFMRegressor:
    t, ids = np.tile(T, 2), np.repeat(["b", "c"], 30)
    y = np.stack([np.sin(2 * t), np.cos(2 * t)], 1)
    model = dlfm.DeepLFMRegressor(
        dlfm.MarkovDLFM(modes=2), dlfm.Training(steps=2), progress=False, check=False
    )
    return model.fit(t, y, known=t[:, None] > 3, series=ids)


def test_known_inputs_of_new_rows_belong_to_their_series() -> None:
    old = dataset([0, 1, 0, 1], [1, 2, 3, 4], known=[10, 11, 20, 21], series=list("bbcc"))
    new = dataset([0, 2], [5, 6], known=[30, 22], series=list("ac"), complete=False)
    both = appended(old, new)
    assert both.panel is not None
    assert both.known is not None
    assert both.panel.labels == ("b", "c", "a")
    assert both.panel.names() == list("bbccac")
    found = zip(both.known.codes.tolist(), both.known.times, both.known.values[:, 0], strict=True)
    assert list(found) == [(0, 0, 10), (0, 1, 11), (1, 0, 20), (1, 1, 21), (1, 2, 22), (2, 0, 30)]


def test_one_row_with_one_output_is_enough(panel: dlfm.DeepLFMRegressor) -> None:
    again = panel.condition(
        np.tile(T, 2), np.tile(np.sin(T), (2, 2)).T.reshape(60, 2),
        known=np.zeros(60), series=np.repeat(["b", "c"], 30),
    )  # fmt: skip
    before = again.predict([6.2], series=["c"])
    again.update([6.2], [[9.0, np.nan]], known=[0.0], series=["c"])
    assert again.predict([6.2], series=["c"])[0, 0] > before[0, 0] + 0.1
    assert again.fitted_.data.y.shape == (61, 2)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"series": ["b"]}, "known must have the 1 inputs of the fit; got 0"),
        ({"known": [1.0]}, "series must say which of 2 series each row belongs to"),
        ({"known": [[1.0, 2.0]], "series": ["b"]}, "known must have the 1 inputs of the fit"),
    ],
)
def test_what_the_fit_had_must_come_with_new_rows(
    panel: dlfm.DeepLFMRegressor, given: dict[str, object], message: str
) -> None:
    with pytest.raises(dlfm.InputError, match=message):
        panel.update([7.0], [[1.0, 2.0]], **given)
    assert len(panel.fitted_.data) == 60


def test_what_the_fit_had_not_is_refused() -> None:
    model = dlfm.DeepLFMRegressor(
        dlfm.MarkovDLFM(modes=1), dlfm.Training(steps=1), progress=False
    ).fit(T, np.sin(T))
    with pytest.raises(dlfm.InputError, match="known must have the 0 inputs of the fit; got 1"):
        model.update([7.0], [1.0], known=[1.0])
    with pytest.raises(dlfm.InputError, match="series must be left out"):
        model.update([7.0], [1.0], series=["b"])
    with pytest.raises(dlfm.InputError, match="must have the 1 outputs of the fit; got 2"):
        model.update([7.0], [[1.0, 2.0]])
    with pytest.raises(dlfm.InputError, match="known must have the 0 inputs of the fit; got 1"):
        model.condition(T, np.sin(T), known=T)


def test_forces_of_a_panel_are_drawn_as_their_moments_say(panel: dlfm.DeepLFMRegressor) -> None:
    at, ids = [1.03, 4.2], ["c", "b"]
    count = 1600
    found = panel.latent_forces(at, num_samples=count, series=ids)
    drawn = found.samples
    assert drawn.shape == (count, 2, len(found.names))
    np.testing.assert_array_equal(found.expected_y, drawn)
    # Draws share the physics of 16 members: within one they are independent.
    error = 5 * found.std / np.sqrt(count)
    assert (np.abs(drawn.mean(0) - found.mean) < error).all()
    np.testing.assert_allclose(drawn.std(0), found.std, rtol=5 / np.sqrt(2 * count))
    with pytest.raises(dlfm.InputError, match="series must say which of 2 series"):
        panel.latent_forces(at)


def test_without_a_level_outputs_swing_about_zero_and_gains_are_drawn() -> None:
    """A known input of gain 2 and nothing else: no mean is there to take a part of it."""
    t = np.linspace(0, 10, 120)
    u = np.repeat(np.random.default_rng(0).normal(size=12), 10) + 1
    physics = dlfm.FirstOrder(1.0, learn=False)
    answer = known_response(physics, torch.tensor(t), torch.tensor(u[:, None]), torch.tensor(t))
    y = 2 * answer[:, 0, 0].numpy() + 0.01 * np.random.default_rng(1).normal(size=120)
    recipe = dlfm.MarkovDLFM(greens_function=physics, level=False, trend="none")
    model = dlfm.DeepLFMRegressor(recipe, dlfm.Training(steps=60), progress=False, check=False)
    model.fit(t, y, known=u)
    assert model.fitted_.scaling.target_mean.tolist() == [0.0]
    gains = model.posterior(50)["y0: gain of u0"]
    assert abs(np.median(gains) - 2) < 0.1
    assert 0 < gains.std() < 0.1
    later = np.linspace(60, 70, 5)  # the input stays at its last value
    np.testing.assert_allclose(model.predict(later), 2 * u[-1], atol=0.2)
