"""Every setting of a recipe arrives in the layers it builds; units of layers by hand."""

import math
from typing import Any

import numpy as np
import pytest
import torch

import deeplfm as dlfm
from deeplfm.data import dataset, fit_scaling
from deeplfm.layers import FourierLayer, InducingLayer
from deeplfm.models.recipe import template_of, time_units
from deeplfm.variational.gaussians import DiagonalGaussian, FullGaussian

X = np.linspace(0, 60, 40)
Y = np.stack([np.sin(X), np.cos(X) ** 3], axis=1)
SCALING = fit_scaling(dataset(X, Y))
SMALL: dict[str, Any] = {"num_features": 5, "hidden_dim": 3}


def fourier(**settings: Any) -> tuple[FourierLayer, FourierLayer]:
    model = dlfm.FourierDLFM(**SMALL | settings).skeleton(SCALING, torch.Generator().manual_seed(0))
    first, second = model.stack
    assert isinstance(first, FourierLayer)
    assert isinstance(second, FourierLayer)
    return first, second


def inducing(**settings: Any) -> tuple[InducingLayer, InducingLayer]:
    few = {"num_inducing": 7, "num_basis": 9, "hidden_dim": 3} | settings
    model = dlfm.InducingDLFM(**few).skeleton(SCALING, torch.Generator().manual_seed(0))
    first, second = model.stack
    assert isinstance(first, InducingLayer)
    assert isinstance(second, InducingLayer)
    return first, second


def test_hidden_functions_count_as_an_input_of_typical_scale() -> None:
    """The geometric mean of 2, 8 and 32 is 8; a unit that changes changes it alike."""
    x = np.random.default_rng(0).standard_normal((50, 3))
    x = (x - x.mean(0)) / x.std(0) * np.array([2.0, 8.0, 32.0])
    scaling = fit_scaling(dataset(x, x[:, 0]))
    user = time_units("user", 2, 5, scaling)
    assert user.tolist() == pytest.approx([8.0, 8.0, 2.0, 8.0, 32.0])
    assert time_units("user", 0, 3, scaling).tolist() == pytest.approx([2.0, 8.0, 32.0])
    assert time_units("user", 2, 2, scaling).tolist() == pytest.approx([8.0, 8.0])  # no skip
    assert time_units("scaled", 2, 5, scaling).tolist() == [1.0] * 5


def test_one_ode_for_all_layers_or_one_for_each() -> None:
    both = [dlfm.FirstOrder(0.5), dlfm.SecondOrder(0.1, 2.0)]
    assert template_of(both, 0) is both[0]
    assert template_of(both, 1) is both[1]
    assert template_of(both[0], 1) is both[0]
    for first, second in (fourier(greens_function=both), inducing(greens_function=both)):
        assert isinstance(first.greens_function, dlfm.FirstOrder)
        assert isinstance(second.greens_function, dlfm.SecondOrder)
        assert second.greens_function.value("frequency")[0, -1].item() == pytest.approx(120.0)


def test_fourier_defaults() -> None:
    """A time constant of 0.4 of the range of the inputs; weights start at a spread of 1/√R."""
    first, second = fourier()
    for layer in (first, second):
        assert (layer.greens_function.value("decay") == 2.5).all()
        assert isinstance(layer.weights, FullGaussian)
        spread = layer.weights.factor.diagonal(dim1=-2, dim2=-1)
        torch.testing.assert_close(spread, torch.full_like(spread, 1 / math.sqrt(5)))
        assert layer.frequencies.treatment == "prior_draws"
        assert layer.memory == "zero"
    # Outputs have physics, frequencies and sensitivities of their own; hidden functions share them.
    assert len(first.frequencies.noise) == len(first.sensitivities) == 1
    assert len(second.frequencies.noise) == len(second.sensitivities) == 2
    assert first.greens_function.value("decay").shape == (1, 1)
    assert second.greens_function.value("decay").shape == (2, 4)


def test_every_fourier_setting_arrives() -> None:
    assert {layer.memory for layer in fourier(memory="infinite")} == {"infinite"}
    assert [layer.plane_wave for layer in fourier(inputs="product", memory="infinite")] == [
        True
    ] * 2
    assert [layer.plane_wave for layer in fourier()] == [False] * 2
    for treatment in ("fixed_noise", "resampled", "prior_draws"):
        assert {one.frequencies.treatment for one in fourier(frequencies=treatment)} == {treatment}
    assert all(isinstance(one.weights, DiagonalGaussian) for one in fourier(weights="diagonal"))
    for layer in fourier(num_forces=4):
        assert layer.frequencies.noise.shape[1:3] == (4, 5)
    for layer in fourier(shared_forces=True, num_forces=2):
        assert layer.output_sensitivities is not None
        assert tuple(layer.output_sensitivities.shape) == (layer.num_outputs, 2)
        assert len(layer.output_sensitivities.unique()) == 2 * layer.num_outputs  # all differ
    for layer in fourier(input_weights=True, random_phases=True):
        assert layer.input_weights is not None
        assert layer.phases is not None
    for layer in fourier(weight_scale=0.7):
        spread = layer.weights.factor.diagonal(dim1=-2, dim2=-1)
        torch.testing.assert_close(spread, torch.full_like(spread, 0.7))
    first, second = fourier(lengthscale=3.0, hidden_lengthscale=0.4, skip="none")
    assert first.frequencies.lengthscale().flatten().tolist() == pytest.approx([0.05])
    assert second.frequencies.lengthscale()[0, 0].tolist() == pytest.approx([0.4] * 3)
    assert {len(one.sensitivities.unique()) for one in fourier()} == {1}
    _, drawn = fourier(random_sensitivities=True)
    assert len(drawn.sensitivities.unique()) == 8


def test_every_inducing_setting_arrives() -> None:
    first, second = inducing()
    assert [one.sensitivities.shape[1] for one in (first, second)] == [1, 2]  # one per output
    torch.testing.assert_close(second.sensitivities.detach(), torch.eye(2, dtype=torch.float64))
    assert [one.num_basis for one in (first, second)] == [9, 9]
    assert [one.memory for one in (first, second)] == ["infinite"] * 2
    assert [tuple(one.posterior.inducing_inputs.shape) for one in (first, second)] == [
        (7, 1), (7, 3)
    ]  # fmt: skip
    assert not first.posterior.inducing_inputs.requires_grad  # a grid stays where it is
    assert second.posterior.inducing_inputs.requires_grad
    assert second.posterior.prior.lengthscale[0].tolist() == pytest.approx([0.25] * 3)
    first, second = inducing(num_forces=2, output_forces=3, separate_inducing=True, grid_points=11)
    assert [one.sensitivities.shape[1] for one in (first, second)] == [2, 3]
    assert tuple(first.posterior.inducing_inputs.shape) == (2, 11, 1)
    assert tuple(second.posterior.inducing_inputs.shape) == (3, 7, 3)
    assert {one.memory for one in inducing(memory="zero")} == {"zero"}
    _, second = inducing(lengthscale=3.0, hidden_lengthscale=0.4, skip="concatenate")
    assert second.posterior.prior.lengthscale[0].tolist() == pytest.approx([0.4] * 3 + [0.05])
    assert second.mean_weights is None


def test_speeds_of_hidden_functions_are_spread_about_the_given_one() -> None:
    """A decay of 0.5 per unit over 60: 30, a third of that, and three times that."""
    first, second = inducing(greens_function=dlfm.FirstOrder(0.5), spread=3.0)
    assert first.greens_function.value("decay")[:, 0].tolist() == pytest.approx([10.0, 30.0, 90.0])
    torch.testing.assert_close(
        second.greens_function.value("decay"), torch.full((2, 3), 30.0, dtype=torch.float64)
    )
