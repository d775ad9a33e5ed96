"""The inducing layer against the exact latent force model: moments of draws, and bounds."""

import math

import pytest
import torch
from torch import Tensor
from torch.distributions import MultivariateNormal

import deeplfm as dlfm
from deeplfm.greens_functions import GreensFunction
from deeplfm.layers import InducingLayer
from inducing_layers import any_q, f64, kernel_of, layer_of, points

SAMPLES = 20_000


def sparse_moments(layer: InducingLayer, x: Tensor) -> tuple[Tensor, Tensor]:
    """The textbook sparse posterior from the exact kernels: joint mean and covariance [D·N]."""
    kernel, q = kernel_of(layer), layer.posterior
    outputs, count = layer.num_outputs, len(x)
    mean = torch.zeros(outputs * count, dtype=f64)
    covariance = kernel.matrix(x).detach()
    for force, z in enumerate(q.centers().detach()):
        ell = q.prior.lengthscale[force].detach()
        distance = ((z[:, None] - z[None]) / ell).square().sum(-1)
        gram = torch.exp(-distance / 2) + q.jitter * torch.eye(len(z), dtype=f64)
        root = torch.linalg.cholesky(gram)
        k_fu = kernel.force_covariance(x, z)[:, force].detach().reshape(-1, len(z))
        projection = k_fu @ torch.linalg.inv(gram)
        spread = root @ q.whitened.factor[force].detach()
        mean += projection @ root @ q.whitened.mean[force].detach()
        covariance += projection @ (spread @ spread.mT - gram) @ projection.mT
    return mean, covariance


def assert_within_errors(values: Tensor, mean: Tensor, covariance: Tensor) -> None:
    """Each draw has its own basis, so moments are unbiased: 5 standard errors, nothing added."""
    centred = values - mean
    assert (centred.mean(0).abs() <= 5 * (centred.var(0) / len(values)).sqrt()).all()
    products = centred[:, :, None] * centred[:, None, :]
    error = products.mean(0) - covariance
    assert (error.abs() <= 5 * (products.var(0) / len(values)).sqrt()).all()


def joint(values: Tensor) -> Tensor:
    """[S, N, D] as [S, D·N], outputs outermost like the kernel's matrix."""
    return values.transpose(1, 2).flatten(1)


@pytest.mark.parametrize("num_inputs", [1, 2, 3])
@pytest.mark.parametrize("name", ["first", "second", "none"])
def test_prior_draws_have_the_exact_covariance(name: str, num_inputs: int) -> None:
    layer = layer_of(name, num_inputs)
    x = points(num_inputs)
    with torch.no_grad():
        values = joint(layer.draw(SAMPLES, torch.Generator().manual_seed(1))(x[None]))
    assert_within_errors(
        values, torch.zeros(values.shape[1], dtype=f64), kernel_of(layer).matrix(x).detach()
    )


@pytest.mark.parametrize("jitter", [1e-6, 0.05])
@pytest.mark.parametrize(("name", "num_inputs"), [("first", 1), ("second", 1), ("first", 3)])
def test_draws_are_the_sparse_posterior(name: str, num_inputs: int, jitter: float) -> None:
    layer = layer_of(name, num_inputs, jitter=jitter)
    any_q(layer)
    x = points(num_inputs)
    mean, covariance = sparse_moments(layer, x)
    with torch.no_grad():
        values = joint(layer.draw(SAMPLES, torch.Generator().manual_seed(2))(x[None]))
        moments = layer.moments(x)
    assert_within_errors(values, mean, covariance)
    torch.testing.assert_close(moments.mean.mT.flatten(), mean, rtol=0, atol=1e-8)
    torch.testing.assert_close(
        moments.variance.mT.flatten(), covariance.diagonal(), rtol=0, atol=1e-8
    )


@pytest.mark.parametrize("name", ["first", "second"])
def test_from_rest_moments_are_those_of_draws_on_both_sides_of_the_origin(name: str) -> None:
    layer = layer_of(name, 1, memory="zero")
    any_q(layer)
    x = torch.tensor([[-1.5], [-0.6], [0.6], [1.5]], dtype=f64)
    with torch.no_grad():
        values = joint(layer.draw(SAMPLES, torch.Generator().manual_seed(7))(x[None]))
        moments = layer.moments(x)
    error = values - moments.mean.mT.flatten()
    assert (error.mean(0).abs() <= 5 * (error.var(0) / SAMPLES).sqrt()).all()
    squares = error.square()
    distance = squares.mean(0) - moments.variance.mT.flatten()
    assert (distance.abs() <= 5 * (squares.var(0) / SAMPLES).sqrt()).all()


def test_training_draws_share_a_basis_and_have_the_same_moments() -> None:
    """Over fresh bases; within one basis they have one set of waves."""
    layer = layer_of("first", 1, num_basis=8)
    any_q(layer)
    x = points(1, 3)
    mean, covariance = sparse_moments(layer, x)
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        path = layer.draw_for_training(4, generator)
        assert len(path.force.theta) == 1
        values = torch.cat(
            [joint(layer.draw_for_training(1, generator)(x[None])) for _ in range(600)]
        )
    assert_within_errors(values, mean, covariance)


def bound_at_optimum(layer: InducingLayer, x: Tensor, y: Tensor, noise: float) -> float:
    """The ELBO of the layer at the best q(v), with exact marginals."""
    with torch.no_grad():
        a = layer.features(x)[:, 0].flatten(1)
        precision = torch.eye(a.shape[1], dtype=f64) + a.mT @ a / noise
        covariance = torch.linalg.inv(precision)
        layer.posterior.whitened.set(
            (covariance @ a.mT @ y / noise)[None], torch.linalg.cholesky(covariance)[None]
        )
        mean, variance = (part[:, 0] for part in layer.moments(x))
        errors = (y - mean).square() + variance
        expected = -0.5 * (math.log(2 * math.pi * noise) + errors / noise).sum()
        return float(expected - layer.kl())


def one_output(
    g: GreensFunction, z: Tensor, lengthscale: float, jitter: float = 1e-8
) -> InducingLayer:
    return InducingLayer(
        1, 1, greens_function=g, inducing_inputs=z, lengthscale=lengthscale, jitter=jitter
    )


def series(count: int = 40) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(4)
    x = torch.rand(count, 1, generator=generator, dtype=f64).sort(dim=0).values
    y = torch.sin(9 * x[:, 0]) + 0.3 * torch.randn(count, generator=generator, dtype=f64)
    return x, y


@pytest.mark.parametrize("g", [dlfm.FirstOrder(3.0), dlfm.SecondOrder(0.8, 9.0)])
def test_best_bound_is_the_collapsed_one(g: GreensFunction) -> None:
    x, y = series()
    noise = 0.09
    layer = one_output(g, torch.linspace(-0.3, 1, 9, dtype=f64)[:, None], 0.2)
    kernel = kernel_of(layer)
    z = layer.posterior.inducing_inputs.detach()
    gram = torch.exp(-((z - z.mT) / 0.2).square() / 2) + 1e-8 * torch.eye(9, dtype=f64)
    k_fu = kernel.force_covariance(x, z)[0, 0].detach()
    explained = k_fu @ torch.linalg.solve(gram, k_fu.mT)
    cov = explained + noise * torch.eye(len(x), dtype=f64)
    evidence = MultivariateNormal(torch.zeros(len(x), dtype=f64), cov).log_prob(y)
    missed = (kernel.matrix(x).detach() - explained).trace() / (2 * noise)
    expected = float(evidence - missed)
    assert bound_at_optimum(layer, x, y, noise) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("decay", [2.0, 10.0])
def test_with_enough_inducing_points_the_bound_is_the_evidence(decay: float) -> None:
    x, y = series()
    ell, noise = 0.15, 0.09
    reach = float(x.min()) - 10 / decay - 3 * ell
    count = math.ceil((float(x.max()) - reach) / (ell / 2)) + 1
    z = torch.linspace(reach, float(x.max()), count, dtype=f64)[:, None]
    layer = one_output(dlfm.FirstOrder(decay), z, ell)
    cov = kernel_of(layer).matrix(x).detach() + noise * torch.eye(len(x), dtype=f64)
    exact = MultivariateNormal(torch.zeros(len(x), dtype=f64), cov).log_prob(y).item()
    assert bound_at_optimum(layer, x, y, noise) == pytest.approx(exact, rel=1e-4)


def test_without_dynamics_and_a_point_at_each_input_it_is_the_exact_gp() -> None:
    x, y = series()
    noise = 0.09
    layer = one_output(dlfm.NoDynamics(), x, 0.15)
    cov = torch.exp(-((x - x.mT) / 0.15).square() / 2) + noise * torch.eye(len(x), dtype=f64)
    exact = MultivariateNormal(torch.zeros(len(x), dtype=f64), cov).log_prob(y).item()
    assert bound_at_optimum(layer, x, y, noise) == pytest.approx(exact, rel=1e-4)


@pytest.mark.parametrize("num_inputs", [1, 2])
def test_an_instant_ode_is_no_dynamics(num_inputs: int) -> None:
    slow = layer_of("none", num_inputs)
    ell = slow.posterior.prior.lengthscale.min().item()
    fast = InducingLayer(
        num_inputs,
        2,
        greens_function=dlfm.FirstOrder(1e4 / ell, normalised=True),
        inducing_inputs=slow.posterior.inducing_inputs,
        num_forces=2,
        num_basis=24,
        lengthscale=slow.posterior.prior.lengthscale,
        shared_lengthscale=False,
    )
    for layer in (slow, fast):
        any_q(layer)
    with torch.no_grad():
        fast.sensitivities.copy_(slow.sensitivities)
        x = points(num_inputs, 30)[None]
        drawn = [one.draw(5, torch.Generator().manual_seed(0))(x) for one in (slow, fast)]
    torch.testing.assert_close(drawn[0], drawn[1], rtol=0, atol=1e-3)
