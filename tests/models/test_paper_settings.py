"""The paper's settings, typed from its appendix on experimental details, and what they build.

Its EQ kernel is exp(-(τ-τ')²/ℓ²): a lengthscale of ℓ/√2 in the convention of this library.
"""

import math
from dataclasses import replace

import numpy as np
import pytest
import scipy.stats
import torch

import deeplfm as dlfm
from deeplfm.data import dataset, fit_scaling
from deeplfm.layers import FourierLayer, InducingLayer
from deeplfm.models import Concatenate, DeepLFM, NoSkip
from deeplfm.paper.experiments.models import make
from deeplfm.regressor.estimator import DeepLFMRegressor
from deeplfm.variational.gaussians import DiagonalGaussian
from small_models import noise_variance

X = np.linspace(0, 60, 90)
Y = np.stack([np.sin(X), np.cos(X) ** 3, np.sin(2 * X)], axis=1)


def built(recipe: dlfm.FourierDLFM | dlfm.InducingDLFM) -> DeepLFM:
    data = dataset(X, Y)
    return recipe.build(data, fit_scaling(data), torch.Generator().manual_seed(0))


def test_fourier_features_as_the_paper_has_them() -> None:
    """100 features, one force, hidden dimension 3; lengthscales and decays at 0.01."""
    model = built(dlfm.FourierDLFM.paper())
    assert isinstance(model.skip, Concatenate)
    assert noise_variance(model).tolist() == [0.01] * 3
    assert isinstance(model.likelihood, dlfm.Gaussian)
    assert [(layer.num_inputs, layer.num_outputs) for layer in model.stack] == [(1, 3), (4, 3)]
    for layer in model.stack:
        assert isinstance(layer, FourierLayer)
        assert isinstance(layer.greens_function, dlfm.FirstOrder)
        assert (layer.greens_function.value("decay") == 0.01).all()
        ell = layer.frequencies.lengthscale()
        torch.testing.assert_close(ell, torch.full_like(ell, 0.01 / math.sqrt(2)))
        _, forces, features, _ = layer.frequencies.noise.shape
        assert (forces, features) == (1, 100)
        assert layer.frequencies.treatment == "fixed_noise"
        assert layer.memory == "zero"
        assert not layer.plane_wave  # a sum over the inputs
        assert layer.output_sensitivities is None
        assert layer.input_weights is None
        assert layer.phases is None
        assert (layer.offset == 0).all()


def test_what_the_paper_infers_starts_at_its_prior() -> None:
    """q(W) = N(0, I), independent entries, and q(Ω) = N(0, 1/ℓ²): a divergence of nothing."""
    model = built(dlfm.FourierDLFM.paper())
    for layer in model.stack:
        assert isinstance(layer, FourierLayer)
        assert isinstance(layer.weights, DiagonalGaussian)
        assert (layer.weights.mean == 0).all()
        torch.testing.assert_close(layer.weights.std, torch.ones_like(layer.weights.std))
        frequencies = layer.frequencies
        ell = frequencies.lengthscale()[:, :, None]
        torch.testing.assert_close(frequencies.draw(1)[0] * ell, frequencies.noise)
        result = scipy.stats.kstest(frequencies.noise.flatten().numpy(), "norm")
        assert result.pvalue > 1e-4
    assert model.kl().item() == pytest.approx(0, abs=1e-9)


def test_sensitivities_of_the_paper_are_standard_normal() -> None:
    """As many as 183 of them, in a model that is wider than the paper's."""
    last = built(replace(dlfm.FourierDLFM.paper(), hidden_dim=60)).stack[-1]
    assert isinstance(last, FourierLayer)
    assert tuple(last.sensitivities.shape) == (3, 1, 61)
    result = scipy.stats.kstest(last.sensitivities.detach().flatten().numpy(), "norm")
    assert result.pvalue > 1e-4


def test_inducing_points_as_the_paper_has_them() -> None:
    """100 per layer, fixed and evenly spaced at the first; ℓ = 0.1, γ = 2.5, a linear mean."""
    model = built(dlfm.InducingDLFM.paper())
    assert isinstance(model.skip, NoSkip)
    assert isinstance(model.likelihood, dlfm.Gaussian)
    assert noise_variance(model).tolist() == [0.01] * 3
    assert [(layer.num_inputs, layer.num_outputs) for layer in model.stack] == [(1, 3), (3, 3)]
    for layer in model.stack:
        assert isinstance(layer, InducingLayer)
        assert isinstance(layer.greens_function, dlfm.FirstOrder)
        torch.testing.assert_close(
            layer.greens_function.value("decay"),
            torch.full((3, layer.num_inputs), 2.5, dtype=torch.float64),
        )
        ell = layer.posterior.prior.lengthscale
        torch.testing.assert_close(ell, torch.full_like(ell, 0.1 / math.sqrt(2)))
        assert layer.posterior.inducing_inputs.shape[-2] == 100
        assert layer.sensitivities.shape[1] == 1  # one force
        assert layer.memory == "infinite"
        assert layer.kl().item() == 0
    first, second = (layer for layer in model.stack if isinstance(layer, InducingLayer))
    grid = first.posterior.inducing_inputs[:, 0]
    torch.testing.assert_close(grid, torch.linspace(0, 1, 100, dtype=torch.float64))
    assert not grid.requires_grad
    assert second.posterior.inducing_inputs.requires_grad
    assert first.mean_weights is not None
    assert second.mean_weights is not None
    assert first.mean_weights.tolist() == [[1.0, 0.0, 0.0]]  # the input, padded with zeros
    torch.testing.assert_close(second.mean_weights, torch.eye(3, dtype=torch.float64))


@pytest.mark.parametrize(("name", "samples"), [("dlfm-rff-paper", 100), ("dlfm-vip-paper", 50)])
def test_rows_of_the_tables_that_are_the_papers_are_trained_as_it_says(
    name: str, samples: int
) -> None:
    """50 Monte Carlo samples from the outset for inducing points; AdamW at a rate of 0.01."""
    estimator = make(name)
    assert isinstance(estimator, DeepLFMRegressor)
    training = estimator.training
    assert training.num_samples == samples
    assert training.stage(training.steps - 1).num_samples == samples
    if name == "dlfm-vip-paper":
        assert training.stages == ()
    rates = {training.learning_rate_at(step) for step in range(training.steps)}
    assert rates == {0.01}
    assert training.gradient_norm is None
    assert training.weight_decay == 0
    assert training.objective == "elbo"
    assert training.batch_size is None
    assert training.restarts == 1
    assert training.held_out == 0
