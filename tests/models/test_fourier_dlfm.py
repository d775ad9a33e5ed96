"""Recipes: units, and starts for any kind of data."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

import deeplfm as dlfm
from deeplfm.data import Dataset, Scaling, dataset, fit_scaling
from deeplfm.layers import FourierLayer
from deeplfm.models import DeepLFM
from deeplfm.regressor.settings import from_json, to_json


def series(scale: float = 1.0, turns: float = 40.0) -> Dataset:
    x = scale * np.linspace(0, 1, 90)
    y = np.stack([np.sin(turns * x / scale), np.cos(turns * x / scale) ** 3], axis=1)
    y[20:30, 0] = np.nan
    return dataset(x, y)


def layers(model: DeepLFM) -> list[FourierLayer]:
    return [layer for layer in model.layers if isinstance(layer, FourierLayer)]


def build(recipe: dlfm.FourierDLFM, data: Dataset) -> tuple[DeepLFM, Scaling]:
    scaling = fit_scaling(data)
    return recipe.build(data, scaling, torch.Generator().manual_seed(0)), scaling


def test_physics_is_given_in_the_users_units() -> None:
    """A record of 60 s with a decay of 0.5 per second: 30 per record, for all inputs."""
    recipe = dlfm.FourierDLFM(
        greens_function=dlfm.SecondOrder(0.5, 2.0, bounds={"damping": (0.1, 5.0)}),
        lengthscale=3.0,
        hidden_dim=3,
        num_features=3,
        frequency_init="prior",
    )
    model, _ = build(recipe, series(60.0))
    first, second = layers(model)
    torch.testing.assert_close(first.greens_function.value("damping").item(), 30.0)
    torch.testing.assert_close(first.greens_function.value("frequency").item(), 120.0)
    assert first.frequencies.lengthscale().item() == pytest.approx(0.05)
    torch.testing.assert_close(second.greens_function.value("damping")[0].tolist(), [30.0] * 4)
    assert second.frequencies.lengthscale()[0, 0].tolist() == pytest.approx([0.12] * 3 + [0.05])


def test_hidden_functions_of_a_table_have_long_lengthscales() -> None:
    """Those beside the phase of a series are fast; of a table about as smooth as its inputs."""
    x = np.random.default_rng(0).normal(size=(30, 2))
    recipe = dlfm.FourierDLFM(num_features=3, hidden_dim=2)
    for data, expected in ((series(), 0.12), (dataset(x, x[:, 0]), 1.0)):
        _, second = layers(build(recipe, data)[0])
        assert second.frequencies.lengthscale()[0, 0, 1].item() == pytest.approx(expected)


def test_the_data_say_how_many_hidden_functions_there_are() -> None:
    """One for a phase; six of few periods, for a table, and where nothing is fitted or seen."""
    x = np.random.default_rng(0).normal(size=(30, 2))
    table = dataset(x, x[:, 0])
    prior = dlfm.FourierDLFM(weight_init="prior")
    drawn = dlfm.FourierDLFM(frequency_init="prior")
    for recipe, data, expected in (
        (dlfm.FourierDLFM(), series(turns=80.0), 1),
        (dlfm.FourierDLFM(), series(), 6),
        (dlfm.FourierDLFM(), table, 6),
        (prior, series(turns=80.0), 6),
        (drawn, series(turns=80.0), 6),
        (dlfm.FourierDLFM(hidden_dim=3), series(), 3),
    ):
        found = recipe.resolved(data, fit_scaling(data))
        assert found.hidden_dim == expected
        assert found == replace(recipe, hidden_dim=expected)


def test_units_do_not_change_the_model() -> None:
    """The same record in two units of time, physics converted by hand: the same functions."""
    short = dlfm.FourierDLFM(greens_function=dlfm.FirstOrder(0.5), num_features=5)
    long = replace(short, greens_function=dlfm.FirstOrder(0.5 * 4096))
    draws = []
    for recipe, scale in ((short, 64.0), (long, 64.0 / 4096)):  # powers of 2: no rounding
        model, scaling = build(recipe, series(scale))
        x = torch.tensor(scaling.inputs(scale * np.linspace(0, 1.2, 5)[:, None]))
        draws.append(model.draw(2, torch.Generator().manual_seed(0))(x))
    torch.testing.assert_close(*draws)


@pytest.mark.parametrize(
    "changes",
    [
        {"num_layers": 1},
        {"num_layers": 3},
        {"frequencies": "fixed_noise", "weights": "diagonal"},
        {"frequencies": "resampled", "num_forces": 2},
        {"shared_forces": True, "num_forces": 2},
        {"inputs": "product", "memory": "infinite"},
        {"skip": "none"},
        {"greens_function": dlfm.NoDynamics()},
        {"greens_function": dlfm.SecondOrder(1.0, 20.0)},
        {"random_phases": True, "input_weights": True},
        {"weight_init": "prior"},
        {"frequency_init": "prior"},
        {"weight_init": "prior", "frequency_init": "prior"},
    ],
)
@pytest.mark.parametrize("kind", ["series", "table"])
def test_every_setting_builds_a_model_with_a_gradient(changes: dict[str, Any], kind: str) -> None:
    data = series()
    if kind == "table":
        x = np.random.default_rng(0).uniform(size=(50, 3))
        data = dataset(x, x.sum(1))
    recipe = dlfm.FourierDLFM(num_features=4, hidden_dim=2, **changes)
    model, scaling = build(recipe, data)
    f = model.draw(2, torch.Generator().manual_seed(0))(torch.tensor(scaling.inputs(data.x)))
    assert f.isfinite().all()
    (f.square().mean() + model.kl()).backward()
    for name, parameter in model.named_parameters():
        if name.startswith("likelihood") or not parameter.requires_grad:
            assert parameter.grad is None, name  # no noise in functions; a grid stays
            continue
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        assert parameter.grad.any(), name
    again = from_json(to_json(recipe))
    assert to_json(again) == to_json(recipe)


def test_a_fitted_start_is_better_than_a_prior_one() -> None:
    data = series()
    errors = []
    for weight_init in ("fitted", "prior"):
        model, scaling = build(dlfm.FourierDLFM(num_features=40, weight_init=weight_init), data)
        with torch.no_grad():
            path = model.draw(50, torch.Generator().manual_seed(0))
            mean = path(torch.tensor(scaling.inputs(data.x))).mean(0).numpy()
        errors.append(np.nanmean((mean - scaling.targets(data.y)) ** 2))
    assert errors[0] < 0.05
    assert errors[1] > 0.5


@pytest.mark.usefixtures("without_shape_checks")
def test_bad_input() -> None:
    with pytest.raises(dlfm.InputError, match="hidden_dim must be an integer"):
        dlfm.FourierDLFM(hidden_dim=0)
    with pytest.raises(dlfm.InputError, match="skip must be one of"):
        dlfm.FourierDLFM(skip="linear")  # type: ignore[arg-type]
    with pytest.raises(dlfm.InputError, match=r"one per layer \(2\); got 3"):
        dlfm.FourierDLFM(greens_function=[dlfm.FirstOrder()] * 3)
