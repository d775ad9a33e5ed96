"""Latent forces: moments of draws within standard errors, KL, Matheron's rule, paths."""

import logging
import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.distributions import MultivariateNormal, kl_divergence

import deeplfm as dlfm
from deeplfm.forces import ForcePrior, InducingPosterior
from deeplfm.forces.cholesky import jittered_cholesky

SAMPLES = 20_000


def prior(num_inputs: int = 1) -> ForcePrior:
    lengthscale = torch.tensor([[0.4, 0.8], [0.9, 0.5]], dtype=torch.float64)[:, :num_inputs]
    variance = torch.tensor([2.0, 0.5], dtype=torch.float64)
    return ForcePrior(lengthscale, variance, num_forces=2, num_inputs=num_inputs)


def assert_moments(values: Tensor, mean: Tensor, covariance: Tensor) -> None:
    """Sample mean and covariance of [S, N] within 5 standard errors, those of a Gaussian.

    A finite basis makes a draw a Gaussian mixture: each entry's own fourth moment is used.
    """
    samples = len(values)
    centred = values - mean
    assert ((centred.mean(0)).abs() <= 5 * (centred.var(0) / samples).sqrt()).all()
    products = centred[:, :, None] * centred[:, None, :]
    error = products.mean(0) - covariance
    assert (error.abs() <= 5 * (products.var(0) / samples).sqrt()).all()


@pytest.mark.parametrize("num_inputs", [1, 2])
def test_covariance_is_the_textbook_formula(num_inputs: int) -> None:
    p = prior(num_inputs)
    x = torch.randn(4, num_inputs, dtype=torch.float64)
    got = p.covariance(x, x[:2])
    for q in range(2):
        for i in range(4):
            for j in range(2):
                exponent = sum(
                    ((x[i, k] - x[j, k]) / p.lengthscale[q, k]).item() ** 2
                    for k in range(num_inputs)
                )
                exact = p.variance[q].item() * math.exp(-exponent / 2)
                assert got[q, i, j].item() == pytest.approx(exact, rel=1e-13)


@pytest.mark.parametrize("num_inputs", [1, 2])
def test_prior_draws_have_the_prior_moments(num_inputs: int) -> None:
    p = prior(num_inputs)
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(5, num_inputs, dtype=torch.float64, generator=generator) / 2
    with torch.no_grad():
        values = p.draw(SAMPLES, 16, generator)(x)
        covariance = p.covariance(x, x)
        for q in range(2):
            assert_moments(values[:, :, q], torch.zeros(5, dtype=torch.float64), covariance[q])


def posterior(jitter: float, shared: bool) -> InducingPosterior:
    generator = torch.Generator().manual_seed(1)
    shape = (6, 1) if shared else (2, 6, 1)
    z = 3 * torch.rand(*shape, dtype=torch.float64, generator=generator)
    result = InducingPosterior(prior(), z, jitter=jitter)
    factor = torch.randn(2, 6, 6, dtype=torch.float64, generator=generator).tril(-1) / 4
    factor = factor + torch.diag_embed(0.2 + torch.rand(2, 6, dtype=torch.float64))
    result.whitened.set(torch.randn(2, 6, dtype=torch.float64, generator=generator), factor)
    return result


def textbook_moments(
    q: InducingPosterior, x: np.ndarray, force: int
) -> tuple[np.ndarray, np.ndarray]:
    """p(u(x) | v) averaged over q(v), v = L v'; shares numbers with the library, no code."""
    ell, variance = q.prior.lengthscale[force].item(), q.prior.variance[force].item()
    z = q.inducing_inputs.detach().expand(2, 6, 1)[force, :, 0].numpy()

    def k(a: Any, b: Any) -> Any:
        return variance * np.exp(-((a[:, None] - b[None, :]) ** 2) / (2 * ell**2))

    noisy = k(z, z) + q.jitter * variance * np.eye(6)
    L = np.linalg.cholesky(noisy)
    C = q.whitened.factor[force].detach().numpy()
    mean_v, cov_v = L @ q.whitened.mean[force].detach().numpy(), L @ C @ C.T @ L.T
    A = k(x, z) @ np.linalg.inv(noisy)
    return A @ mean_v, k(x, x) - A @ k(z, x) + A @ cov_v @ A.T


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("jitter", [1e-8, 0.05])
def test_matheron_is_the_textbook_conditional(jitter: float, shared: bool) -> None:
    """With a large jitter the noise η is needed: leaving it out fails here."""
    q = posterior(jitter, shared)
    x = torch.tensor([-0.5, 0.3, 1.2, 2.8], dtype=torch.float64)
    mean, covariance = (t.detach() for t in q.moments(x[:, None]))
    with torch.no_grad():
        values = q.draw(SAMPLES, 16, torch.Generator().manual_seed(2))(x[:, None])
    for force in range(2):
        exact_mean, exact_covariance = textbook_moments(q, x.numpy(), force)
        np.testing.assert_allclose(mean[:, force], exact_mean, atol=1e-6)
        np.testing.assert_allclose(covariance[force], exact_covariance, atol=1e-6)
        assert_moments(
            values[:, :, force], torch.tensor(exact_mean), torch.tensor(exact_covariance)
        )


def test_the_prior_is_where_the_posterior_starts() -> None:
    q = InducingPosterior(prior(), torch.linspace(0, 3, 8, dtype=torch.float64)[:, None])
    assert q.kl().tolist() == [0.0, 0.0]
    x = torch.rand(5, 1, dtype=torch.float64)
    mean, covariance = q.moments(x)
    assert mean.abs().max() == 0
    torch.testing.assert_close(covariance, q.prior.covariance(x, x), rtol=0, atol=1e-10)


def test_kl_is_that_of_torch() -> None:
    q = posterior(1e-8, shared=True)
    eye = torch.eye(6, dtype=torch.float64)
    for force in range(2):
        exact = kl_divergence(
            MultivariateNormal(q.whitened.mean[force], scale_tril=q.whitened.factor[force]),
            MultivariateNormal(torch.zeros(6, dtype=torch.float64), eye),
        )
        torch.testing.assert_close(q.kl()[force], exact)


def test_a_draw_is_one_function() -> None:
    path = posterior(1e-8, shared=True).draw(3, 10)
    x = torch.linspace(0, 3, 11, dtype=torch.float64)[:, None]
    torch.testing.assert_close(path(x), path(x))
    parts = torch.cat([path(part) for part in x.split(4)], dim=1)
    torch.testing.assert_close(path(x), parts, rtol=0, atol=1e-14)
    torch.testing.assert_close(path(x[None].repeat(3, 1, 1)), path(x))


def test_draws_repeat_with_their_generator_and_touch_no_global_state() -> None:
    q = posterior(1e-8, shared=True)
    x = torch.rand(4, 1, dtype=torch.float64)
    before = torch.get_rng_state()
    first, second = (q.draw(2, 10, torch.Generator().manual_seed(5))(x) for _ in range(2))
    assert torch.equal(first, second)
    assert torch.equal(before, torch.get_rng_state())


def test_gradients_reach_every_parameter() -> None:
    q = posterior(1e-6, shared=True)
    q.draw(2, 10)(torch.rand(4, 1, dtype=torch.float64)).square().sum().backward()
    for name, parameter in q.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        assert parameter.grad.abs().max() > 0, name


def test_float32_parameters_float64_factors() -> None:
    q = InducingPosterior(prior(), torch.linspace(0, 3, 40, dtype=torch.float64)[:, None]).float()
    path = q.draw(2, 10)
    assert path.coefficients.dtype == torch.float32
    assert path(torch.rand(5, 1)).isfinite().all()


def test_jitter_escalates_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    negative = torch.diag(torch.tensor([1.0, 1.0, -3e-5], dtype=torch.float64))[None]
    with caplog.at_level(logging.WARNING, logger="deeplfm"):
        factor, noise = jittered_cholesky(negative, torch.ones(1), 1e-8)
    assert noise.item() == pytest.approx(1e-4)
    assert "jitter raised to 0.0001" in caplog.text
    torch.testing.assert_close(factor @ factor.mT, negative + noise * torch.eye(3))


def test_only_the_matrix_that_fails_gets_more() -> None:
    bad = torch.diag(torch.tensor([1.0, -1e-6], dtype=torch.float64))
    both = torch.stack([torch.eye(2, dtype=torch.float64), bad])
    _, noise = jittered_cholesky(both, torch.ones(2, dtype=torch.float64), 1e-8)
    assert noise.tolist() == pytest.approx([1e-8, 1e-5])


def test_a_hopeless_matrix_is_an_error_never_nan() -> None:
    with pytest.raises(dlfm.NumericalError, match=r"positive definite.*Remove duplicate"):
        jittered_cholesky(-torch.eye(3, dtype=torch.float64), torch.tensor(1.0))
    with pytest.raises(dlfm.NumericalError, match=r"must be finite.*lengthscale"):
        jittered_cholesky(torch.full((2, 2), math.nan), torch.tensor(1.0))
