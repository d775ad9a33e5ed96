"""Deep processes: a mixture of what their samples lead to, and a start that lets inputs pass."""

from typing import Any

import numpy as np
import pytest
import scipy.special
import scipy.stats
import torch

from deeplfm.paper.baselines.adam import load_into, seeded
from deeplfm.paper.baselines.deep_gp import DeepGP

T = np.linspace(0, 1, 40)
Y = np.stack([np.sign(np.sin(9 * T)), np.cos(9 * T)], 1)
SMALL: dict[str, Any] = {"num_inducing": 8, "batch_size": 20, "dtype": "float64", "progress": False}


def test_samples_are_mixed_not_averaged() -> None:
    model = DeepGP(steps=30, learning_rate=0.05, num_samples=3, **SMALL)
    model.fit(T, Y)
    p = model.predictive(T, num_samples=6, seed=4)
    fitted = model.fitted_
    points = fitted.state["module.layers.0.variational_strategy.inducing_points"]
    deep = model._model(points[0], 2)
    load_into(deep, fitted.state)
    x = torch.tensor(fitted.scaling.inputs(T[:, None]))
    with seeded(4, x.device), torch.no_grad():
        mean, variance = deep.marginals(x, 6)
    std = (variance + deep.log_noise.exp()).sqrt().detach().numpy() * fitted.scaling.target_std
    centers = fitted.scaling.functions(mean.numpy())
    logs = scipy.stats.norm(centers, std).logpdf(Y)
    exact = scipy.special.logsumexp(logs, axis=0) - np.log(6)
    np.testing.assert_allclose(p.log_density(Y), exact, rtol=1e-9)
    assert p.samples.std(0).max() > 1e-6  # samples of the layer below do differ
    averaged = scipy.stats.norm(p.mean, p.std).logpdf(Y)
    assert not np.allclose(averaged, exact, rtol=1e-9)


def test_one_layer_has_nothing_to_sample() -> None:
    p = DeepGP(num_layers=1, steps=5, **SMALL).fit(T, Y).predictive(T, num_samples=3)
    np.testing.assert_allclose(p.samples[0], p.samples[2], rtol=1e-12)


@pytest.mark.parametrize(("inputs", "width"), [(1, 3), (3, 3), (5, 2)])
def test_inputs_pass_through_at_the_start(inputs: int, width: int) -> None:
    """Inner layers add hardly anything; more inputs than functions keep their main directions."""
    X = np.random.default_rng(0).normal(size=(50, inputs)) * (1 + np.arange(inputs))
    model = DeepGP(hidden_dim=width, **SMALL)
    points = torch.tensor(X[:20])
    deep = model._model(points, 1).eval()
    gpytorch = pytest.importorskip("gpytorch")
    with torch.no_grad(), gpytorch.settings.num_likelihood_samples(2):
        hidden = deep.layers[0](torch.tensor(X))
    carried = hidden.mean[0].numpy()
    if inputs <= width:
        np.testing.assert_allclose(carried[:, :inputs], X, atol=1e-10)
        np.testing.assert_allclose(carried[:, inputs:], 0, atol=1e-10)
    else:
        _, _, directions = np.linalg.svd(X[:20] - X[:20].mean(0), full_matrices=False)
        np.testing.assert_allclose(np.abs(carried), np.abs(X @ directions[:2].T), atol=1e-9)
    at_points = deep.layers[0](points).variance
    assert float(at_points.detach().max()) < 1e-4  # q, and the jitter


def test_it_learns_a_step() -> None:
    model = DeepGP(steps=300, learning_rate=0.03, num_samples=3, **SMALL).fit(T, Y)
    loss = model.history_["loss"]
    assert loss[-50:].mean() < loss[:50].mean() - 20
    assert model.score(T, Y) > 0.7
