"""The recipe of DLFM-VIP: units, starts that reach their prior, bad settings."""

import logging
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

import deeplfm as dlfm
from deeplfm.data import Dataset, Scaling, cardiac, dataset, fit_scaling
from deeplfm.layers import InducingLayer
from deeplfm.models import DeepLFM
from deeplfm.models.starts.inducing import linear_mean
from deeplfm.models.starts.inducing_points import reached
from deeplfm.regressor.settings import from_json, to_json
from small_models import noise_variance

SMALL = dlfm.InducingDLFM(num_inducing=12, num_basis=8, hidden_dim=2)


def series(scale: float = 1.0) -> Dataset:
    x = scale * np.linspace(0, 1, 90)
    y = np.stack([np.sin(40 * x / scale), np.cos(40 * x / scale) ** 3], axis=1)
    y[20:30, 0] = np.nan
    return dataset(x, y)


def table(inputs: int, rows: int = 200) -> Dataset:
    x = np.random.default_rng(inputs).normal(size=(rows, inputs))
    return dataset(3 + 2 * x, np.sin(x.sum(1)))


def build(recipe: dlfm.InducingDLFM, data: Dataset) -> tuple[DeepLFM, Scaling]:
    scaling = fit_scaling(data)
    return recipe.build(data, scaling, torch.Generator().manual_seed(0)), scaling


def layers(model: DeepLFM) -> list[InducingLayer]:
    return [layer for layer in model.stack if isinstance(layer, InducingLayer)]


@pytest.mark.parametrize("kind", ["oscillation", "trend", 4, 9])
def test_every_layer_starts_alive_and_within_reach_of_q(kind: str | int) -> None:
    """Prior variance 1, of which q can change 95 % at every training input."""
    if kind == "oscillation":
        data = dataset(cardiac(500).times, cardiac(500).training())
    elif kind == "trend":
        x = np.linspace(0, 1, 150)
        data = dataset(x, np.cumsum(np.random.default_rng(0).normal(size=150)))
    else:
        data = table(int(kind))
    model, scaling = build(dlfm.InducingDLFM(), data)
    values = torch.tensor(scaling.inputs(data.x))
    with torch.no_grad():
        for layer in layers(model):
            variance = layer.prior_variance(values[:3])
            torch.testing.assert_close(variance, torch.ones_like(variance))
            assert float(reached(layer, values).min()) >= 0.95
            values = layer.moments(values).mean


def test_an_oscillation_starts_fitted() -> None:
    """The start alone explains what it saw, and the gaps of one channel by the others."""
    made = cardiac(500)
    data = dataset(made.times, made.training())
    model, scaling = build(dlfm.InducingDLFM(), data)
    with torch.no_grad():
        x = torch.tensor(scaling.inputs(made.times[:, None])).float()
        mean = model.float().draw(20, torch.Generator().manual_seed(0))(x).mean(0).numpy()
    error = scaling.targets(made.values) - mean
    hidden = made.tests["imputation"][:, 0]
    assert np.mean(error[hidden, 0] ** 2) < 0.3


def test_physics_is_given_in_the_users_units() -> None:
    """A decay of 0.5 per second over 60 s is 30 per record; hidden functions at spread speeds."""
    recipe = replace(SMALL, greens_function=dlfm.FirstOrder(0.5), lengthscale=3.0)
    model, _ = build(recipe, series(60.0))
    first, second = layers(model)
    assert first.greens_function.value("decay")[:, 0].tolist() == pytest.approx([15.0, 60.0])
    assert first.posterior.prior.lengthscale.item() == pytest.approx(0.05)
    assert second.greens_function.value("decay").unique().tolist() == pytest.approx([30.0])


def test_units_do_not_change_the_model() -> None:
    draws = []
    for scale in (64.0, 64.0 / 4096):  # powers of 2: no rounding
        recipe = replace(SMALL, greens_function=dlfm.FirstOrder(32 / scale), lengthscale=scale / 8)
        model, scaling = build(recipe, series(scale))
        x = torch.tensor(scaling.inputs(scale * np.linspace(0, 1.2, 5)[:, None]))
        draws.append(model.draw(2, torch.Generator().manual_seed(0))(x))
    torch.testing.assert_close(*draws)


def test_the_grid_reaches_into_the_past() -> None:
    data = series()
    with_past, without = (
        layers(build(replace(SMALL, past=past, greens_function=dlfm.FirstOrder(5.0)), data)[0])[0]
        for past in (3.0, 0.0)
    )
    origin = torch.zeros(1, 1, dtype=torch.float64)
    with torch.no_grad():
        slowest = float(with_past.greens_function.value("decay").min())
        begin = -min(3.0 / slowest, 1.0)
        assert float(with_past.posterior.inducing_inputs.min()) == pytest.approx(begin)
        assert float(without.posterior.inducing_inputs.min()) == 0
        assert (reached(with_past, origin) > reached(without, origin)).all()


def test_mean_functions() -> None:
    x = torch.randn(50, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    torch.testing.assert_close(x @ linear_mean(x, 3), x)
    padded = x @ linear_mean(x, 5)
    torch.testing.assert_close(padded[:, :3], x)
    assert not padded[:, 3:].any()
    x = x * torch.tensor([1.0, 10.0, 0.1], dtype=torch.float64)
    first = (x @ linear_mean(x, 1))[:, 0]
    assert abs(np.corrcoef(first.numpy(), x[:, 1].numpy())[0, 1]) > 0.99
    every = build(replace(SMALL, mean="every"), series())[0]
    assert [layer.mean_weights is not None for layer in layers(every)] == [True, True]
    hidden = build(SMALL, series())[0]
    assert [layer.mean_weights is not None for layer in layers(hidden)] == [True, False]


def test_too_few_inducing_points_for_an_oscillation_are_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Unless it is left to the recipe, which takes as many as it needs."""
    x = np.linspace(0, 1, 400)
    data = dataset(x, np.sin(300 * x))
    with caplog.at_level(logging.WARNING, logger="deeplfm"):
        model, scaling = build(SMALL, data)
        assert not caplog.text
        build(replace(SMALL, grid_points=12), data)
    assert "inducing points are few for" in caplog.text
    chosen = SMALL.resolved(data, scaling).grid_points
    assert chosen == layers(model)[0].posterior.inducing_inputs.shape[0] > 100
    assert layers(model)[1].posterior.inducing_inputs.shape[0] == 12


@pytest.mark.parametrize(
    "changes",
    [
        {"num_layers": 1},
        {"num_layers": 3},
        {"num_forces": 2},
        {"num_forces": 2, "separate_inducing": True},
        {"output_forces": 1},
        {"memory": "zero"},
        {"skip": "none"},
        {"skip": "concatenate"},
        {"mean": "every"},
        {"greens_function": dlfm.NoDynamics()},
        {"greens_function": dlfm.SecondOrder(1.0, 20.0)},
        {"greens_function": dlfm.LinearODE([24.0, 26.0, 9.0])},
        {"weight_init": "prior"},
        {"likelihood": dlfm.StudentT(0.02)},
        {"lengthscale": 0.3},
        {"hidden_dim": 5},
    ],
)
@pytest.mark.parametrize("kind", ["series", "table", "few"])
def test_every_setting_builds_a_model_with_a_gradient(changes: dict[str, Any], kind: str) -> None:
    data = {"series": series(), "table": table(3, 50), "few": table(2, 5)}[kind]
    recipe = replace(SMALL, **changes)
    model, scaling = build(recipe, data)
    path = model.draw_for_training(2, torch.Generator().manual_seed(0))
    f = path(torch.tensor(scaling.inputs(data.x)))
    assert f.isfinite().all()
    (f.square().mean() + model.kl()).backward()
    for name, parameter in model.named_parameters():
        if name.startswith("likelihood") or not parameter.requires_grad:
            assert parameter.grad is None, name  # no noise in functions; a grid stays
            continue
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        assert parameter.grad.any(), name
    skeleton = recipe.resolved(data, scaling).skeleton(scaling)
    skeleton.load_state_dict(model.state_dict())
    again = from_json(to_json(recipe))
    assert to_json(again.likelihood) == to_json(recipe.likelihood)
    known = {"greens_function": None, "likelihood": recipe.likelihood}
    assert vars(again) | known == vars(recipe) | known


@pytest.mark.parametrize(
    "x",
    [[0.4, 0.7, 1.1], [0.4, 0.7], [2.0] * 9, [1.0, 2.0] * 20, np.ones((7, 3))],
    ids=["three", "two", "all equal", "two times", "equal rows"],
)
def test_little_and_degenerate_data_build_too(x: Any) -> None:
    data = dataset(x, np.arange(len(x)) % 5)
    model, scaling = build(SMALL, data)
    f = model.draw_for_training(2)(torch.tensor(scaling.inputs(data.x)))
    assert f.isfinite().all()


def test_bounds_and_fixed_physics_are_kept_in_hidden_layers() -> None:
    """They are the user's word on every function, so speeds are not spread."""
    for g in (
        dlfm.FirstOrder(2.5, bounds={"decay": (1.0, 5.0)}),
        dlfm.FirstOrder(2.5, learn=False),
    ):
        first = layers(build(replace(SMALL, greens_function=g), series())[0])[0]
        assert first.greens_function.value("decay").flatten().tolist() == pytest.approx([2.5, 2.5])


@pytest.mark.parametrize("g", [None, dlfm.FirstOrder(1.0)])
def test_from_rest_it_starts_alive_too(g: dlfm.FirstOrder | None) -> None:
    """Hidden values on both sides of the origin, where a layer from rest has no variance."""
    model, scaling = build(replace(SMALL, memory="zero", greens_function=g), series())
    x = torch.tensor(scaling.inputs(series().x))
    with torch.no_grad():
        std = model.draw(20, torch.Generator().manual_seed(0))(x).std()
    assert 0.1 < float(std) < 10


def test_q_of_a_table_has_large_steps_and_that_of_a_series_small_ones() -> None:
    """Of a table inducing inputs and lengthscales move, and q must follow; a series is refined."""
    for data, large in ((series(), False), (table(3), True)):
        model, _ = build(SMALL, data)
        for layer in layers(model):
            q = layer.posterior.whitened
            step = q.unit * q.frame.square().sum((-2, -1)).mean().sqrt() / q.shift[0].numel() ** 0.5
            assert bool(step > 0.99) is large


def test_hidden_functions_without_an_input_leave_a_table_its_fit() -> None:
    """They are noise at first: with the lengthscale of a series five of them would drown it."""
    crowded = replace(SMALL, hidden_dim=8, num_inducing=40)
    noise = [
        noise_variance(build(replace(crowded, hidden_lengthscale=ell), table(3))[0]).item()
        for ell in (None, 0.25)
    ]
    assert noise[0] < 0.8
    assert noise[1] > 0.95


def test_float32_predictions_do_not_depend_on_the_chunk() -> None:
    """Bumps of a hundred inducing points cancel each other: within 1e-3 all the same."""
    data = series()
    model, scaling = build(dlfm.InducingDLFM(), data)
    x = torch.tensor(scaling.inputs(np.linspace(0, 1, 400)[:, None])).float()
    with torch.no_grad():
        path = model.float().draw(3, torch.Generator().manual_seed(0))
        whole, pieces = path(x), torch.cat([path(piece) for piece in x.split(7)], dim=1)
    torch.testing.assert_close(pieces, whole, rtol=0, atol=1e-3)


@pytest.mark.usefixtures("without_shape_checks")
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"inputs": "sum"}, r"inputs must be one of \['product'\]; got 'sum'"),
        ({"skip": "twice"}, "skip must be one of"),
        ({"num_inducing": 0}, "num_inducing must be"),
        ({"output_forces": 0}, "output_forces must be"),
        ({"greens_function": [dlfm.FirstOrder()]}, r"one per layer \(2\); got 1"),
        ({"lengthscale": 0.0}, "lengthscale must be above 0 and finite; got 0"),
        ({"hidden_lengthscale": 0.0}, "hidden_lengthscale must be above 0 and finite; got 0"),
        ({"spread": -1.0}, "spread must be above 0 and finite; got -1"),
        ({"past": math.nan}, "past must be 0 or more; got nan"),
        ({"units": "seconds"}, "units must be one of"),
    ],
)
def test_bad_settings(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(dlfm.InputError, match=message):
        dlfm.InducingDLFM(**wrong)
