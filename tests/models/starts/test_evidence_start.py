"""The start by evidence: a dense density, the posterior of the weights, inputs that count."""

import math

import numpy as np
import pytest
import torch

import deeplfm as dlfm
from deeplfm.data import dataset, fit_scaling
from deeplfm.forces import ForceKernel, SquaredExponential
from deeplfm.layers import FourierLayer
from deeplfm.models import DeepLFM
from deeplfm.models.starts.evidence import (
    Regression,
    log_evidence,
    orthogonal_normals,
    plane_waves,
    regression_on,
)


def recipe(**settings: object) -> dlfm.FourierDLFM:
    chosen: dict[str, object] = {
        "num_layers": 1,
        "num_forces": 2,
        "num_features": 40,
        "greens_function": dlfm.FirstOrder(2.5, normalised=True),
        "memory": "infinite",
        "inputs": "product",
        "frequency_init": "evidence",
        "units": "scaled",
    }
    return dlfm.FourierDLFM(**(chosen | settings))  # type: ignore[arg-type]


def table(rows: int = 150) -> tuple[np.ndarray, np.ndarray]:
    """The first and the third of four inputs count."""
    random = np.random.default_rng(0)
    x = random.normal(size=(rows, 4))
    y = np.stack([np.sin(2 * x[:, 0]) + x[:, 2], x[:, 0] * x[:, 2]], axis=1)
    return x, y + 0.3 * random.normal(size=y.shape)


def started(x: np.ndarray, y: np.ndarray, **settings: object) -> tuple[DeepLFM, dlfm.FourierDLFM]:
    data, chosen = dataset(x, y), recipe(**settings)
    scaling = fit_scaling(data, chosen.likelihood)
    return chosen.build(data, scaling, torch.Generator().manual_seed(0)), chosen


def last_of(model: DeepLFM) -> FourierLayer:
    layer = model.stack[-1]
    assert isinstance(layer, FourierLayer)
    return layer


@pytest.mark.parametrize(("rows", "size"), [(30, 8), (8, 30), (12, 12)])
def test_evidence_is_the_dense_density(rows: int, size: int) -> None:
    generator = torch.Generator().manual_seed(1)
    phi = torch.randn(rows, size, generator=generator, dtype=torch.float64, requires_grad=True)
    y = torch.randn(rows, generator=generator, dtype=torch.float64)
    noise = torch.tensor(0.3, dtype=torch.float64, requires_grad=True)
    covariance = phi @ phi.T + noise * torch.eye(rows, dtype=torch.float64)
    dense = torch.distributions.MultivariateNormal(torch.zeros_like(y), covariance).log_prob(y)
    found = log_evidence(phi, y, noise)
    torch.testing.assert_close(found, dense, rtol=1e-10, atol=1e-10)
    for slope, expected in zip(
        torch.autograd.grad(found, (phi, noise)),
        torch.autograd.grad(dense, (phi, noise)),
        strict=True,
    ):
        torch.testing.assert_close(slope, expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("force", [SquaredExponential(), dlfm.Matern(1.5)])
def test_waves_are_the_features_of_the_layer(force: ForceKernel) -> None:
    x, y = table(60)
    model, _ = started(x, y, force=force)
    layer = last_of(model)
    points = torch.tensor(x[:9])
    with torch.no_grad():
        expected = layer.features(points[None], layer.frequencies.center()[None])[0].flatten(-2)
        for output in range(2):
            found = plane_waves(layer, points, output)
            torch.testing.assert_close(found[:, :-1], expected[:, output])
    assert (found[:, -1] == found[0, -1]).all()  # the offset


def test_weights_are_the_posterior_of_all_rows_by_a_dense_gaussian() -> None:
    """Mean and covariance of f at new rows as the textbook has them, at the settings found."""
    x, y = table(150)
    y[3:40, 1] = np.nan
    model, chosen = started(x, y)
    layer, scaling = last_of(model), fit_scaling(dataset(x, y), chosen.likelihood)
    rows, targets = torch.tensor(scaling.inputs(x)), torch.tensor(scaling.targets(y))
    new = rows[:7] + 0.1
    noise = model.likelihood.gaussian_variance
    assert noise is not None
    for output in range(2):
        seen = ~targets[:, output].isnan()
        with torch.no_grad():
            phi, asked = (plane_waves(layer, part, output) for part in (rows[seen], new))
            K = phi @ phi.T + noise[output] * torch.eye(len(phi), dtype=phi.dtype)
            dense = asked @ phi.T @ torch.linalg.solve(K, targets[seen, output])
            mean = asked[:, :-1] @ layer.weights.mean[output] + layer.offset[output]
            torch.testing.assert_close(mean, dense, rtol=1e-6, atol=1e-6)
            factor = asked[:, :-1] @ layer.weights.factor[output]
            # The offset is held at its best: it has no spread of its own.
            rest = phi[:, :-1] @ phi[:, :-1].T + noise[output] * torch.eye(len(phi))
            cross = asked[:, :-1] @ phi[:, :-1].T
            prior = asked[:, :-1] @ asked[:, :-1].T
            spread = prior - cross @ torch.linalg.solve(rest, cross.T)
            torch.testing.assert_close(factor @ factor.T, spread, rtol=1e-5, atol=1e-7)


def test_inputs_without_influence_have_long_lengthscales() -> None:
    x, y = table(300)
    model, _ = started(x, y[:, 1:], num_forces=1)
    shortest = last_of(model).lengthscales()
    assert shortest[[1, 3]].min() > 3 * shortest[[0, 2]].max()


def test_settings_have_more_evidence_than_where_they_began() -> None:
    x, y = table(200)
    x, y = x, (y[:, 0] - y[:, 0].mean()) / y[:, 0].std()
    model, _ = started(x, y)
    layer = last_of(model)
    scaled = torch.tensor((x - x.min(0)) / x.std(0) + 0.1)
    noise = model.likelihood.gaussian_variance
    assert noise is not None
    with torch.no_grad():
        found = log_evidence(plane_waves(layer, scaled, 0), torch.tensor(y), noise[0])
        layer.frequencies.lengthscale.set(torch.full((1, 2, 4), 2.0, dtype=torch.float64))
        before = log_evidence(plane_waves(layer, scaled, 0), torch.tensor(y), noise[0])
    assert found > before + 10


def test_the_noise_is_the_best_of_a_grid() -> None:
    """By the dense density of each candidate; neighbours differ by 2.5 %."""
    x, y = table(80)
    model, _ = started(x, y[:, :1])
    layer = last_of(model)
    targets = torch.tensor((y[:, 0] - y[:, 0].mean()) / y[:, 0].std())
    with torch.no_grad():
        regression = regression_on(layer, torch.tensor(x), targets, 0)
        assert isinstance(regression, Regression)
        phi = plane_waves(layer, torch.tensor(x), 0)
        candidates = torch.logspace(-3, 0, 300, dtype=torch.float64)
        dense = torch.stack([log_evidence(phi, targets, one) for one in candidates])
    assert regression.best_noise() == pytest.approx(float(candidates[dense.argmax()]), rel=0.05)


def test_orthogonal_normals_are_standard_and_orthogonal() -> None:
    like = torch.zeros(3, 2, 5000, 4, dtype=torch.float64)
    drawn = orthogonal_normals(like, torch.Generator().manual_seed(0))
    assert drawn.shape == like.shape
    block = drawn[1, 0, :4]
    product = block @ block.T
    torch.testing.assert_close(product, torch.diag(product.diagonal()), rtol=0, atol=1e-12)
    count = drawn.numel() // 4  # independent blocks are fewer than numbers
    for moment, value in ((1, 0.0), (2, 1.0), (3, 0.0), (4, 3.0)):
        spread = {1: 1.0, 2: 2.0, 3: 15.0, 4: 96.0}[moment]
        error = float(drawn.pow(moment).mean()) - value
        assert abs(error) < 5 * math.sqrt(spread / count), moment


def test_a_lengthscale_that_is_given_stays() -> None:
    x, y = table(60)
    model, _ = started(x, y, lengthscale=1.7)
    kept = last_of(model).frequencies.lengthscale()
    torch.testing.assert_close(kept, torch.full_like(kept, 1.7))


@pytest.mark.parametrize(
    "settings",
    [{"inputs": "sum"}, {"memory": "zero"}, {"weight_init": "prior"}, {"shared_forces": True}],
)
def test_what_has_no_such_start_is_refused(settings: dict[str, object]) -> None:
    with pytest.raises(dlfm.InputError, match="frequency_init='evidence' must come with"):
        recipe(**settings)


@pytest.mark.parametrize("frequencies", ["prior_draws", "fixed_noise", "resampled"])
@pytest.mark.parametrize("layers", [1, 2])
def test_every_treatment_and_depth_can_start_so(frequencies: str, layers: int) -> None:
    x, y = table(80)
    settings = {"frequencies": frequencies, "num_layers": layers, "num_features": 12}
    model, _ = started(x, y, **settings)
    path = model.draw(3, torch.Generator().manual_seed(0))
    assert path(torch.tensor(x)).isfinite().all()
