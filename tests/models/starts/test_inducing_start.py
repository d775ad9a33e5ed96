"""Starts of inducing layers: means that are taken off, noise that is left, points that reach."""

import copy
from typing import Any

import numpy as np
import pytest
import torch

import deeplfm as dlfm
from deeplfm.data import Dataset, dataset, fit_scaling
from deeplfm.layers import InducingLayer
from deeplfm.models.starts.base import Start
from deeplfm.models.starts.inducing import linear_mean, match_noise
from deeplfm.models.starts.inducing_points import k_means, place, reached, typical_distance
from small_models import noise_variance

SMALL = dlfm.InducingDLFM(num_inducing=15, num_basis=8, hidden_dim=2)


def table(rows: int = 60) -> Dataset:
    x = np.random.default_rng(0).normal(size=(rows, 2)) * np.array([1.0, 20.0])
    return dataset(x, np.sin(x[:, 0]) + x[:, 1] / 20)


def built(data: Dataset, **settings: Any) -> tuple[list[InducingLayer], torch.Tensor]:
    """The layers as they start, and the inputs in their units."""
    scaling = fit_scaling(data)
    recipe = dlfm.InducingDLFM(**vars(SMALL) | settings)
    model = recipe.build(data, scaling, torch.Generator().manual_seed(0))
    layers = [layer for layer in model.stack if isinstance(layer, InducingLayer)]
    return layers, torch.tensor(scaling.inputs(data.x))


def test_principal_directions_do_not_depend_on_the_origin() -> None:
    """Rows far from the origin along a direction in which they do not vary."""
    x = torch.randn(80, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    x = x * torch.tensor([0.1, 5.0, 1.0]) + torch.tensor([100.0, 0.0, 0.0])
    found = linear_mean(x, 2)
    values, vectors = np.linalg.eigh(np.cov(x.numpy().T))
    for k in range(2):
        assert abs(float(found[:, k] @ torch.tensor(vectors[:, -1 - k]))) == pytest.approx(1)
    assert values[-1] > values[-2]


def test_the_last_layer_is_fitted_beside_its_mean_function() -> None:
    """A rise of the mean over the series is no part of what q has to explain twice."""
    x = np.linspace(0, 1, 60)
    data = dataset(x, 3 * x + 0.3 * np.sin(9 * x))
    (layer,), inputs = built(data, num_layers=1, mean="every")
    assert layer.mean_weights is not None
    assert layer.mean_weights.tolist() == [[1.0]]
    with torch.no_grad():
        found = layer.moments(inputs).mean[:, 0].numpy()
    np.testing.assert_allclose(found, (data.y[:, 0] - data.y.mean()) / data.y.std(), atol=0.1)


def test_noise_starts_at_what_draws_of_the_whole_model_leave() -> None:
    """The mean square of (y - f) over ten draws and all that was observed."""
    data = table()
    scaling = fit_scaling(data)
    model = SMALL.build(data, scaling, torch.Generator().manual_seed(0))
    y = scaling.targets(data.y)
    y[:7] = np.nan
    generator = torch.Generator().manual_seed(3)
    start = Start(scaling.inputs(data.x), y, generator)
    again = copy.deepcopy(model)
    match_noise(model, start)
    with torch.no_grad():
        path = again.draw_for_training(10, torch.Generator().manual_seed(3))
        f = path(torch.tensor(start.x)).numpy()
    total, count = 0.0, 0
    for s in range(10):
        for n in range(7, 60):
            total += float(y[n, 0] - f[s, n, 0]) ** 2
            count += 1
    assert noise_variance(model).item() == pytest.approx(total / count, rel=1e-9)


def test_layers_of_a_table_start_alive_quiet_and_at_once() -> None:
    """Prior variance 1; hidden layers hand on their mean; ODEs a tenth of a lengthscale long."""
    (hidden, last), inputs = built(table())
    with torch.no_grad():
        for layer in (hidden, last):
            prior = layer.prior_variance(inputs)
            torch.testing.assert_close(prior, torch.ones_like(prior))
            assert float(reached(layer, inputs).min()) >= 0.95
            ell = layer.posterior.prior.lengthscale[0]
            decay = layer.greens_function.value("decay")
            torch.testing.assert_close(decay * ell, torch.full_like(decay, 10.0))
        moments = hidden.moments(inputs)
        torch.testing.assert_close(moments.mean, inputs)  # the identity
        assert float(moments.variance.max()) < 0.06  # what q cannot reach, and 0.03²


def test_typical_distances_are_those_of_rows_that_differ() -> None:
    rows = torch.tensor([[0.0, 0.0]] * 6 + [[1.0, 10.0]] * 2, dtype=torch.float64)
    assert typical_distance(rows).tolist() == [1.0, 10.0]
    assert typical_distance(rows[:3]).tolist() == [0.0, 0.0]
    line = torch.tensor([[0.0], [1.0], [5.0]], dtype=torch.float64)  # distances 1, 4, 5
    assert typical_distance(line).item() == 4.0


def test_points_are_placed_in_units_of_the_lengthscale() -> None:
    """k-means of rows over their lengthscales, and back; rows themselves where they are few."""
    ell = torch.tensor([0.1, 50.0], dtype=torch.float64)
    rows = torch.rand(40, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    rows = rows * torch.tensor([1.0, 2.0])  # along the second they hardly differ
    layer = InducingLayer(
        2, 1, greens_function=dlfm.FirstOrder(), lengthscale=ell[None],
        inducing_inputs=torch.zeros(8, 2, dtype=torch.float64),
    )  # fmt: skip
    with torch.no_grad():
        place(layer, rows, ell, torch.Generator().manual_seed(5))
    seed = int(torch.randint(0, 2**31 - 1, (), generator=torch.Generator().manual_seed(5)))
    expected = k_means((rows / ell).numpy(), 8, seed) * ell.numpy()
    np.testing.assert_allclose(layer.posterior.inducing_inputs.detach(), expected, rtol=1e-9)
    with torch.no_grad():
        place(layer, rows[:5], ell, torch.Generator().manual_seed(5))
        found = layer.posterior.inducing_inputs
        torch.testing.assert_close(found[:5], rows[:5])
        about = (found[5:] - rows[:3]) / ell  # more points than rows lie about them
    assert 0 < float(about.abs().max()) < 5 * 0.3
