"""Closed-form starts: the regressions are the exact posteriors, and prior variances are 1."""

import math
from typing import Any

import pytest
import torch

import deeplfm as dlfm
from deeplfm.greens_functions import GreensFunction
from deeplfm.layers import FourierLayer
from deeplfm.layers.fourier import Weights
from deeplfm.layers.frequencies import Frequencies
from deeplfm.likelihoods import Gaussian
from deeplfm.models.starts.base import posterior_of_weights
from deeplfm.models.starts.features import features_at
from deeplfm.models.starts.fourier import fit_weights, unit_variance
from deeplfm.variational.parameters import Quantity

SHARED = {"shared_forces": True, "num_forces": 2}


def layer(
    weights: Weights = "full", physics: GreensFunction | None = None, **options: object
) -> FourierLayer:
    made = FourierLayer(
        2, 3, greens_function=physics or dlfm.FirstOrder(2.0), num_features=5, weights=weights,
        per_output=True, generator=torch.Generator().manual_seed(0), **options,  # type: ignore[arg-type]
    )  # fmt: skip
    if made.output_sensitivities is not None:
        with torch.no_grad():
            made.output_sensitivities.copy_(torch.tensor([[1.0, 0.3], [0.5, -1.0], [0.1, 2.0]]))
    return made


def data() -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    x = torch.rand(80, 2, generator=generator, dtype=torch.float64)
    y = torch.stack([torch.sin(5 * x[:, 0]), x[:, 1], torch.cos(4 * x.sum(1))], dim=1)
    y = y + 3 + 0.2 * torch.randn(y.shape, generator=generator, dtype=torch.float64)
    y[10:30, 0] = torch.nan
    return x, y


@pytest.mark.parametrize(
    "physics",
    [
        dlfm.FirstOrder(2.0),
        dlfm.FirstOrder(1e-9),
        dlfm.SecondOrder(damping=1.5, frequency=1.5),
        dlfm.SecondOrder(damping=0.3, frequency=20.0),
        dlfm.NoDynamics(),
    ],
)
@pytest.mark.parametrize(
    "options", [{}, SHARED, {"random_phases": True, "input_weights": True}, {"inputs": "product"}]
)
@pytest.mark.parametrize("rows", [3, 6000])  # all at once, and in pieces
def test_features_are_those_of_the_layer(
    physics: GreensFunction, options: dict[str, Any], rows: int
) -> None:
    if "random_phases" in options and physics.order == 0:
        with pytest.raises(dlfm.InputError, match="belong to a sum over inputs"):
            layer(physics=physics, **options)
        return
    made = layer(physics=physics, lengthscale=0.1, **options)
    generator = torch.Generator().manual_seed(2)
    x = 4 * torch.rand(rows, 2, generator=generator, dtype=torch.float64) - 2
    with torch.no_grad():
        made.frequencies.noise[:, :, 0] *= 1e-9  # a wave that hardly turns
        if made.frequencies.location is not None:
            made.frequencies.location[:, :, 0] *= 1e-9
        expected = made.features(x[None], made.frequencies.draw(1))[0].flatten(-2)
    # Rounding of e^{jωx} with |ωx| up to a few hundred, through ODEs whose gain is 1 or less here.
    torch.testing.assert_close(features_at(made, x), expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("options", [{}, SHARED])
@pytest.mark.parametrize("weights", ["full", "diagonal"])
def test_weights_are_the_posterior_of_a_regression(
    weights: Weights, options: dict[str, Any]
) -> None:
    """Against the function-space formula: E f = K (K + σ²I)^{-1} (y - c), by draws with W = mean.

    The spread of q is that of the posterior where q can be it: full weights, nothing shared.
    """
    made, (x, y), likelihood = layer(weights, **options), data(), Gaussian().tiled(3)
    mean = fit_weights(made, features_at(made, x), y, likelihood)
    noise = likelihood.noise_variance.detach()
    with torch.no_grad():
        phi = made.features(x[None], made.frequencies.draw(1))[0]  # N D Q F
        if made.output_sensitivities is not None:
            phi = phi * made.output_sensitivities[..., None]
        phi = phi.flatten(-2)
        seen = ~y.isnan()
        groups = [(0, 1, 2)] if options else [(0,), (1,), (2,)]
        for outputs in groups:
            rows = torch.cat([phi[seen[:, d], d] for d in outputs])
            sigma = torch.cat([noise[d].expand(int(seen[:, d].sum())) for d in outputs])
            centred = torch.cat([y[seen[:, d], d] - made.offset[d] for d in outputs])
            gain = torch.linalg.inv(rows @ rows.mT + torch.diag(sigma))
            everywhere = torch.cat([phi[:, d] for d in outputs])
            expected = everywhere @ rows.mT @ gain @ centred
            got = torch.cat([mean[:, d] - made.offset[d] for d in outputs])
            torch.testing.assert_close(got, expected, rtol=1e-5, atol=1e-5)
            if weights == "full" and not options:
                covariance = torch.eye(phi.shape[-1]) - rows.mT @ gain @ rows
                factor = made.weights.factor[outputs[0]]
                torch.testing.assert_close(factor @ factor.mT, covariance, rtol=1e-6, atol=1e-8)
    assert noise.min() > 0.02  # the truth is 0.04


def test_the_model_draws_what_was_fitted() -> None:
    made, (x, y) = layer(), data()
    mean = fit_weights(made, features_at(made, x), y, Gaussian().tiled(3))
    with torch.no_grad():
        draws = made.draw(4000, torch.Generator().manual_seed(0))(x[None])
    allowed = 5 * draws.std(0) / math.sqrt(4000)
    assert ((draws.mean(0) - mean).abs() <= allowed).all()


@pytest.mark.parametrize("inputs", ["sum", "product"])
def test_unit_variance(inputs: str) -> None:
    made, (x, _) = layer(inputs=inputs), data()
    scaled = unit_variance(made, features_at(made, x))
    with torch.no_grad():
        phi = made.features(x[None], made.frequencies.draw(1))[0].flatten(-2)
    torch.testing.assert_close(scaled, phi)
    torch.testing.assert_close(phi.square().sum(-1).mean(0), torch.ones(3, dtype=torch.float64))


def test_expectations_are_a_prior() -> None:
    """Against the function-space formula with the prior diag(s²); repeated rows count once."""
    generator = torch.Generator().manual_seed(3)
    phi = torch.randn(40, 1, 10, generator=generator, dtype=torch.float64)
    y = torch.randn(40, 1, generator=generator, dtype=torch.float64)
    y[7:12] = torch.nan
    std = 0.1 + torch.rand(10, generator=generator, dtype=torch.float64)
    seen, noise = ~y[:, 0].isnan(), torch.tensor([0.2], dtype=torch.float64)
    found = posterior_of_weights(phi, y, noise, estimate=False, with_offset=False, prior_std=std)
    rows = phi[seen, 0]
    scaled = rows * std.square()
    gain = torch.linalg.inv(rows @ scaled.mT + 0.2 * torch.eye(len(rows), dtype=torch.float64))
    torch.testing.assert_close(found.mean, scaled.mT @ gain @ y[seen, 0])
    covariance = torch.diag(std.square()) - scaled.mT @ gain @ scaled
    torch.testing.assert_close(torch.linalg.inv(found.precision), covariance)
    for estimate in (False, True):
        once, thrice = noise.clone(), noise.clone()
        one = posterior_of_weights(phi, y, once, estimate=estimate, prior_std=std)
        three = posterior_of_weights(
            phi.repeat(3, 1, 1),
            y.repeat(3, 1),
            thrice,
            estimate=estimate,
            prior_std=std,
            repeated=3,
        )
        torch.testing.assert_close((three, thrice), (one, once))


def test_the_evidence_is_that_of_the_function_space() -> None:
    generator = torch.Generator().manual_seed(4)
    phi = torch.randn(30, 1, 8, generator=generator, dtype=torch.float64)
    y = torch.randn(30, 1, generator=generator, dtype=torch.float64)
    y[4:9] = torch.nan
    noise = torch.tensor([0.3], dtype=torch.float64)
    found = posterior_of_weights(phi, y, noise, estimate=False, with_offset=False).evidence
    seen = ~y[:, 0].isnan()
    rows = phi[seen, 0]
    covariance = rows @ rows.mT + noise * torch.eye(25, dtype=torch.float64)
    exact = torch.distributions.MultivariateNormal(torch.zeros(25).double(), covariance)
    constant = 25 / 2 * math.log(2 * math.pi)
    assert found == pytest.approx(float(exact.log_prob(y[seen, 0])) + constant, rel=1e-9)


def test_frequencies_start_where_told_at_the_least_kl() -> None:
    """Fixed noise: Ω is exact, and no other spread of q(Ω) with that Ω costs less."""
    ell = Quantity("lengthscale", 0.5).tiled(1, 1, 2)
    frequencies = Frequencies(ell, 6, "fixed_noise", torch.Generator().manual_seed(0))
    omega = torch.linspace(-40, 60, 12, dtype=torch.float64).reshape(1, 1, 6, 2)
    lengthscale = torch.tensor([[[0.02, 0.05]]], dtype=torch.float64)
    carriers = torch.full_like(omega, 12.0)
    frequencies.start(omega, 1.0, lengthscale, carriers)
    torch.testing.assert_close(frequencies.draw(3)[0], omega)
    torch.testing.assert_close(frequencies.lengthscale(), lengthscale)
    frequencies.kl().backward()
    assert frequencies.log_std is not None
    assert frequencies.log_std.grad is not None
    assert frequencies.log_std.grad.abs().max() < 1e-9
    moved = Frequencies(ell, 6, "resampled", torch.Generator().manual_seed(0))
    moved.start(omega, 0.1, lengthscale)
    torch.testing.assert_close(moved.mean, omega)
    drawn = moved.draw(4000, torch.Generator().manual_seed(1))
    assert (drawn.std(0) - 0.1).abs().max() < 5 * 0.1 / math.sqrt(2 * 4000)
    fixed = Frequencies(ell, 6, "prior_draws")
    fixed.start(omega, 0.1, lengthscale)
    torch.testing.assert_close(fixed.draw(3)[0], omega)
    fixed.lengthscale.set(2 * lengthscale)
    torch.testing.assert_close(fixed.draw(3)[0], omega / 2)
