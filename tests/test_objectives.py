"""The objectives against exact evidence, partitions and masks; gradients to every parameter."""

import math
from typing import Any

import pytest
import torch

import deeplfm as dlfm
from deeplfm.layers import FourierLayer
from deeplfm.layers.fourier_paths import FourierPath
from deeplfm.models import Concatenate
from deeplfm.models.deep_lfm import DeepPath
from deeplfm.objectives import Batch, elbo, multi_sample
from small_models import deep, deep_batch, noise_variance, shallow


def sigma_points(layer: FourierLayer) -> DeepPath:
    """Weights μ ± √F C e_i: their average is exact for anything quadratic in W."""
    mean, factor = layer.weights.mean[0], layer.weights.factor[0]
    steps = math.sqrt(len(mean)) * factor.mT
    weights = torch.cat([mean + steps, mean - steps])[:, None]
    path = FourierPath(layer.waves(layer.frequencies.draw(1)), weights, None, layer.offset)
    return DeepPath((path,), Concatenate(), len(weights))


@pytest.mark.parametrize("weights", ["full", "diagonal"])
def test_best_elbo_over_weights_is_the_evidence(weights: str) -> None:
    model, layer, batch = shallow(weights, frequencies="prior_draws")
    noise = noise_variance(model).item()
    with torch.no_grad():
        phi = layer.features(batch.x[None], layer.frequencies.draw(1))[0, :, 0].flatten(-2)
        precision = torch.eye(12, dtype=torch.float64) + phi.mT @ phi / noise
        mean = torch.linalg.solve(precision, phi.mT @ batch.y[:, 0] / noise)
        covariance = torch.linalg.inv(precision)
        if weights == "diagonal":
            covariance = torch.diag(1 / precision.diagonal())
        layer.weights.set(mean[None], torch.linalg.cholesky(covariance)[None])
    marginal = torch.distributions.MultivariateNormal(
        torch.zeros(25, dtype=torch.float64),
        phi @ phi.mT + noise * torch.eye(25, dtype=torch.float64),
    )
    exact = marginal.log_prob(batch.y[:, 0])
    if weights == "diagonal":
        exact = exact - (precision.diagonal().log().sum() - torch.logdet(precision)) / 2
    bound = elbo(model, batch, sigma_points(layer)).objective
    assert bound.item() == pytest.approx(exact.item(), abs=1e-8)
    own = list(layer.weights.parameters())
    for gradient in torch.autograd.grad(bound, own):  # and it is the maximum
        assert gradient.abs().max() <= 1e-8


def test_resampled_frequencies_bound_the_evidence() -> None:
    """ELBO ≤ log mean_k N(y; 0, Φ_kΦ_kᵀ + σ²I) with Ω_k from the prior; -rP shows the exact LFM."""
    model, layer, batch = shallow("full", frequencies="resampled")
    noise = noise_variance(model).item()
    generator = torch.Generator().manual_seed(5)
    eye = torch.eye(25, dtype=torch.float64)
    with torch.no_grad():
        omega = layer.frequencies.draw(1000, generator)
        phi = layer.features(batch.x.expand(1000, -1, -1), omega)[:, :, 0].flatten(-2)
        normal = torch.distributions.MultivariateNormal(
            torch.zeros(25, dtype=torch.float64), phi @ phi.mT + noise * eye
        )
        densities = normal.log_prob(batch.y[:, 0])
        evidence = torch.logsumexp(densities, 0) - math.log(1000)
        ratio = torch.exp(densities - evidence)
        evidence_error = ratio.std() / math.sqrt(1000)
        path = model.draw(1000, generator)
        per_draw = model.likelihood.log_prob(batch.y, path(batch.x), batch.observed).sum((1, 2))
        bound = per_draw.mean() - model.kl()
        error = per_draw.std() / math.sqrt(1000)
        kernel = dlfm.LatentForceKernel(dlfm.FirstOrder(2.0), lengthscale=0.2, memory="zero")
        exact = torch.distributions.MultivariateNormal(
            torch.zeros(25, dtype=torch.float64), kernel(batch.x)[0, 0] + noise * eye
        ).log_prob(batch.y[:, 0])
    print(f"ELBO {bound:.2f}, evidence {evidence:.2f}, exact LFM {exact:.2f}")
    assert bound <= evidence + 5 * (error + evidence_error)


@pytest.mark.parametrize("frequencies", ["fixed_noise", "resampled", "prior_draws"])
@pytest.mark.parametrize("weights", ["diagonal", "full"])
@pytest.mark.parametrize("input_weights", [True, False])
def test_every_parameter_receives_a_gradient(
    frequencies: str, weights: str, input_weights: bool
) -> None:
    model = deep(frequencies=frequencies, weights=weights, input_weights=input_weights)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():  # away from the prior, where the KL is stationary
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=generator).double())
    elbo(model, deep_batch(), model.draw(3, generator)).objective.backward()
    grouped = []
    for layer in model.layers:
        assert isinstance(layer, FourierLayer)
        grouped += [id(p) for group in layer.parameter_groups().values() for p in group]
        assert sorted(grouped[-len(list(layer.parameters())) :]) == sorted(
            map(id, layer.parameters())
        )
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        assert parameter.grad.abs().max() > 0, name


def test_lengthscales_move_in_training() -> None:
    model = deep()
    before = [layer.frequencies.lengthscale().detach().clone() for layer in model.layers]  # type: ignore[operator, union-attr]
    optimiser = torch.optim.AdamW(model.parameters(), lr=0.01, weight_decay=0)
    generator = torch.Generator().manual_seed(1)
    for _ in range(20):
        optimiser.zero_grad()
        (-elbo(model, deep_batch(), model.draw(3, generator)).objective).backward()
        optimiser.step()
    for layer, start in zip(model.layers, before, strict=True):
        assert (layer.frequencies.lengthscale() - start).abs().min() > 1e-6  # type: ignore[operator, union-attr]


@pytest.mark.parametrize("objective", [elbo, multi_sample])
def test_minibatches_average_to_the_full_batch(objective: Any) -> None:
    model, batch = deep(), deep_batch()
    path = model.draw(4, torch.Generator().manual_seed(2))
    whole = objective(model, batch, path).objective
    parts = [
        objective(
            model, Batch(batch.x[i::3], batch.y[i::3], batch.observed[i::3], 12), path
        ).objective
        for i in range(3)
    ]
    assert torch.stack(parts).mean().item() == pytest.approx(whole.item(), rel=1e-12)


@pytest.mark.parametrize("objective", [elbo, multi_sample])
def test_a_masked_entry_is_a_dropped_one(objective: Any) -> None:
    model, batch = deep(), deep_batch()
    path = model.draw(4, torch.Generator().manual_seed(2))
    observed = torch.ones_like(batch.observed)
    observed[4:] = False
    filled = torch.where(observed, batch.y, torch.full_like(batch.y, math.nan))
    masked = objective(model, Batch(batch.x, filled, observed, 12), path)
    dropped = objective(model, Batch(batch.x[:4], batch.y[:4], observed[:4], 4), path)
    for one, other in zip(masked, dropped, strict=True):
        assert one.item() == pytest.approx(other.item(), rel=1e-12)
    masked.objective.backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())
