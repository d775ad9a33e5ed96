"""A force kernel from outside the package: one class, registered; both recipes train with it."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
import pytest
import scipy.integrate
import torch
from torch import Tensor

import deeplfm as dlfm
from deeplfm.forces import ForceKernel, ForcePrior, MarkovForce
from deeplfm.layers import FourierLayer, InducingLayer
from deeplfm.models import Recipe
from deeplfm.randomness import normal
from deeplfm.statespace import DrivenODE


@dlfm.register
@final
@dataclass(frozen=True)
class Matern32(ForceKernel):
    """k(r) = (1 + √3 r) e^{-√3 r}: forces with one derivative."""

    def correlation(self, squared: Tensor) -> Tensor:
        r = torch.sqrt(3 * squared + 1e-18)  # a root has no slope at 0
        return (1 + r) * torch.exp(-r)

    def spectral_scales(
        self, shape: tuple[int, ...], generator: torch.Generator | None, like: Tensor
    ) -> Tensor:
        """A Student-t of three degrees is a normal over the root of a chi-square by three."""
        chi_square = normal((3, *shape), generator, like).square().sum(0)
        return torch.sqrt(3 / chi_square)

    def mixture(self) -> tuple[tuple[float, float], ...]:
        """k(r) = E exp(-3r²/(2v)), v chi-square: the trapezoidal rule over log v."""
        step = 0.5
        v = np.exp(np.arange(-10, 4.3, step))
        weights = step * v**1.5 * np.exp(-v / 2) / (2**1.5 * math.gamma(1.5))
        pairs = zip(weights / weights.sum(), np.sqrt(v / 3), strict=True)
        return tuple((float(weight), float(scale)) for weight, scale in pairs)

    def markov_state(self, lengthscale: Tensor) -> MarkovForce:
        """x' = -λx + noise, y' = λ(x - y) and u = √2 y: white noise through two equal poles."""
        rate = math.sqrt(3) / lengthscale.double()
        chain = torch.tensor([[-1.0, 0.0], [1.0, -1.0]], dtype=torch.float64)
        noise, last = torch.eye(2, dtype=torch.float64)
        return MarkovForce(rate[..., None, None] * chain, noise, 2 * rate, math.sqrt(2) * last)


def test_the_mixture_is_the_kernel() -> None:
    r = torch.linspace(0, 8, 200, dtype=torch.float64)
    mixed = sum(weight * torch.exp(-0.5 * (r / s) ** 2) for weight, s in Matern32().mixture())
    # The rule's error is e^{-π²/step}; what lies below its first node has weight e^{-15}.
    torch.testing.assert_close(
        torch.as_tensor(mixed), Matern32().correlation(r**2), atol=1e-6, rtol=0
    )


def test_its_state_has_its_covariance() -> None:
    one = torch.ones(1, 1, dtype=torch.float64)
    block = DrivenODE(dlfm.NoDynamics(), one, 0.6 * one[0], force=Matern32())
    lags = torch.linspace(0, 4, 30, dtype=torch.float64)
    covariance = block.forces @ block.transition(lags) @ block.start() @ block.forces.mT
    wanted = Matern32().correlation((lags / 0.6) ** 2)
    torch.testing.assert_close(covariance.flatten(), wanted, atol=1e-12, rtol=0)


def test_draws_have_its_covariance() -> None:
    prior = ForcePrior(0.7, 1.5, kernel=Matern32())
    count = 20_000
    path = prior.draw(count, 20, torch.Generator().manual_seed(0))
    x = torch.tensor([[0.0], [0.4], [1.5]], dtype=torch.float64)
    values = path(x)[..., 0].detach()
    wanted = prior.covariance(x, x)[0].detach()
    found = values.mT @ values / count
    # Products of two draws have a variance of k(0)² + k(r)², and more by the few waves of each.
    assert bool(((found - wanted).abs() <= 5 * math.sqrt(4 * 1.5**2 / count)).all())


@pytest.mark.parametrize("treatment", ["prior_draws", "fixed_noise", "resampled"])
def test_a_fourier_layer_draws_its_spectrum(treatment: Any) -> None:
    """|ω| of a Student-t: its median is 0.765/ℓ, where a normal has 0.674/ℓ."""
    layer = FourierLayer(
        1, 1, greens_function=dlfm.FirstOrder(), num_features=20_000, lengthscale=0.5,
        frequencies=treatment, force=Matern32(), generator=torch.Generator().manual_seed(0),
    )  # fmt: skip
    omega = layer.frequencies.draw(1, torch.Generator().manual_seed(1)).detach().abs()
    assert float(omega.median()) == pytest.approx(0.7649 / 0.5, rel=0.03)
    assert layer.kl().detach() == pytest.approx(0, abs=1e-9)  # q is the prior, given the scales


def test_the_variance_of_an_inducing_layer_is_its_integral() -> None:
    """∫ |H(ω)|² S(ω) dω/2π with the spectrum of the kernel, by SciPy."""
    decay, ell = 2.0, 0.6
    z = torch.linspace(0, 3, 8, dtype=torch.float64)[:, None]
    layer = InducingLayer(
        1, 1, greens_function=dlfm.FirstOrder(decay), inducing_inputs=z, lengthscale=ell,
        force=Matern32(),
    )  # fmt: skip
    rate = math.sqrt(3) / ell

    def density(omega: float) -> float:
        spectrum = 4 * rate**3 / (rate**2 + omega**2) ** 2
        return spectrum / (decay**2 + omega**2) / math.pi

    exact, _ = scipy.integrate.quad(density, 0, math.inf)
    found = layer.prior_variance(z[:1]).item()
    assert found == pytest.approx(exact, rel=1e-5)
    with torch.no_grad():
        moments = layer.moments(z)
        draws = layer.draw(4000, torch.Generator().manual_seed(0))(z[None])
    spread = moments.variance.sqrt()
    error = (draws.mean(0) - moments.mean).abs()
    assert bool((error <= 5 * spread / math.sqrt(4000)).all())
    ratio = draws.var(0) / moments.variance
    assert bool(((ratio - 1).abs() <= 5 * math.sqrt(3 / 4000)).all())


RECIPES = {
    "fourier": dlfm.FourierDLFM(num_features=20, force=Matern32()),
    "inducing": dlfm.InducingDLFM(num_inducing=12, num_basis=20, hidden_dim=2, force=Matern32()),
}


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES)
def test_it_trains_predicts_saves_and_loads(recipe: Recipe, tmp_path: Path) -> None:
    t = np.linspace(0, 6, 80)
    y = np.sin(3 * t) + 0.05 * np.random.default_rng(0).standard_normal(80)
    y[30:36] = np.nan
    training = dlfm.Training(steps=8, num_samples=3)
    model = dlfm.DeepLFMRegressor(recipe, training, progress=False).fit(t, y)
    assert np.isfinite(model.history_["loss"]).all()
    seen = ~np.isnan(y)
    assert model.score(t[seen], y[seen]) > 0.8
    model.save(tmp_path)
    again = dlfm.load(tmp_path)
    assert getattr(again.model, "force", None) == Matern32()
    np.testing.assert_array_equal(again.predict(t), model.predict(t))
    np.testing.assert_array_equal(
        again.latent_forces(t, num_samples=4).samples, model.latent_forces(t, num_samples=4).samples
    )


@pytest.mark.usefixtures("without_shape_checks")
def test_what_is_no_kernel_is_refused() -> None:
    with pytest.raises(dlfm.InputError, match="force must be a kernel"):
        dlfm.FourierDLFM(force="matern")  # type: ignore[arg-type]
