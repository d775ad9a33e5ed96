"""Closed-form starts: the regressions are the exact posteriors, and prior variances are 1."""

import math
from typing import Any

import numpy as np
import pytest
import torch

import deeplfm as dlfm
from deeplfm.data import dataset, fit_scaling
from deeplfm.greens_functions import GreensFunction
from deeplfm.layers import FourierLayer
from deeplfm.layers.fourier import Weights
from deeplfm.layers.frequencies import Frequencies
from deeplfm.likelihoods import Gaussian
from deeplfm.models.starts.base import posterior_of_weights
from deeplfm.models.starts.features import features_at
from deeplfm.models.starts.fourier import (
    _HIDDEN_NOISE,
    fit_weights,
    unit_variance,
)
from deeplfm.models.starts.frequencies import _near
from deeplfm.models.starts.oscillation import dominant_oscillation
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


@pytest.mark.parametrize("options", [{}, SHARED])
def test_expectations_are_a_prior(options: dict[str, Any]) -> None:
    """Against the function-space formula with the prior diag(s²)."""
    made, (x, y) = layer(**options), data()
    phi = features_at(made, x)
    generator = torch.Generator().manual_seed(3)
    one = 0.1 + torch.rand(10, generator=generator, dtype=torch.float64)
    expected = one.repeat(phi.shape[-1] // 10)
    mean = fit_weights(made, phi, y, expected=expected)
    mixed = phi.expand(-1, 3, -1)
    if made.output_sensitivities is not None:
        mixed = (
            mixed.unflatten(-1, (2, -1)) * made.output_sensitivities.detach()[..., None]
        ).flatten(-2)
    seen = ~y.isnan()
    for outputs in [(0, 1, 2)] if options else [(0,), (1,), (2,)]:
        rows = torch.cat([mixed[seen[:, d], d] for d in outputs])
        centred = torch.cat([y[seen[:, d], d] - made.offset.detach()[d] for d in outputs])
        scaled = rows * expected.square()
        noise = _HIDDEN_NOISE * torch.eye(len(rows), dtype=torch.float64)
        solved = torch.linalg.solve(rows @ scaled.mT + noise, centred)
        everywhere = torch.cat([mixed[:, d] for d in outputs])
        got = torch.cat([mean[:, d] - made.offset.detach()[d] for d in outputs])
        # Noise of 1e-5 beside a prior of 1: five of sixteen digits are lost twice.
        torch.testing.assert_close(got, everywhere @ scaled.mT @ solved, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(made.weights.prior_std, one.expand_as(made.weights.prior_std))


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


def test_what_drifts_beside_an_oscillation_takes_more_of_the_input() -> None:
    x = np.linspace(0, 1, 600)
    beats = np.exp(4 * np.cos(60 * x))  # too few for a phase
    beats = (beats - beats.mean()) / beats.std()
    y = np.stack([beats, 0.3 * beats + np.sin(7 * x) + np.cos(11 * x)], axis=1)
    data = dataset(x, y + 0.02 * np.random.default_rng(0).standard_normal(y.shape))
    scaling = fit_scaling(data)
    recipe = dlfm.FourierDLFM().resolved(data, scaling)
    model = recipe.build(data, scaling, torch.Generator().manual_seed(0))
    last = model.layers[-1]
    assert isinstance(last, FourierLayer)
    sensitivities = last.sensitivities.detach()[:, 0]
    shares = sensitivities[:, -1] / sensitivities[:, 0]
    assert shares[0] == pytest.approx(0.5)
    assert shares[1] == pytest.approx(1.5)


def test_little_is_expected_far_from_an_oscillation() -> None:
    x = np.linspace(0, 1, 500)
    drift = 0.6 * np.sin(9 * x)
    y = np.stack([np.cos(150 * x + drift), np.cos(300 * x + 2 * drift)], axis=1)
    found = dominant_oscillation(x, y)
    assert found is not None
    omega, expected = _near(found, 100, 2 * np.pi, torch.Generator().manual_seed(0))
    far = expected < 1
    assert far.sum() == 35
    offsets = (omega - found.frequency).abs()
    assert offsets[far].max() > 0.4 * found.frequency
    kept = offsets[~far & (omega.abs() > 1)]  # without those next to 0
    assert len(kept) == 60
    assert kept.max() < 0.3 * found.frequency


@pytest.mark.parametrize("count", [1, 2, 3, 7])
@pytest.mark.parametrize("drift", [0.0, 0.6])
def test_few_frequencies_are_as_many_as_asked_for(count: int, drift: float) -> None:
    x = np.linspace(0, 1, 500)
    found = dominant_oscillation(x, np.cos(150 * x + drift * np.sin(9 * x))[:, None])
    assert found is not None
    omega, expected = _near(found, count, 2 * np.pi, torch.Generator().manual_seed(0))
    assert len(omega) == len(expected) == count
    assert omega.isfinite().all()


def test_frequencies_start_where_told_at_the_least_kl() -> None:
    """Fixed noise: Ω is exact, and no other spread of q(Ω) with that Ω costs less."""
    ell = Quantity("lengthscale", 0.5).tiled(1, 1, 2)
    frequencies = Frequencies(ell, 6, "fixed_noise", torch.Generator().manual_seed(0))
    omega = torch.linspace(-40, 60, 12, dtype=torch.float64).reshape(1, 1, 6, 2)
    lengthscale = torch.tensor([[[0.02, 0.05]]], dtype=torch.float64)
    frequencies.start(omega, 1.0, lengthscale)
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
