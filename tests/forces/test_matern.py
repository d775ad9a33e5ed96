"""Matérn forces: the textbook's covariance, its spectrum, its mixture and its Markov state."""

import math

import numpy as np
import pytest
import scipy.integrate
import scipy.linalg
import scipy.special
import scipy.stats
import torch
from hypothesis import given
from hypothesis import strategies as st

import deeplfm as dlfm
from deeplfm.forces import ForcePrior, MarkovForce, Matern, SquaredExponential
from ranges import log_uniform

ORDERS = [0.5, 1.5, 2.5]


def textbook(r: float, order: float) -> float:
    """2^{1-ν}/Γ(ν) a^ν K_ν(a), a = √(2ν) r, with SciPy's Bessel function."""
    a = math.sqrt(2 * order) * r
    if a == 0:
        return 1.0
    return float(2 ** (1 - order) / math.gamma(order) * a**order * scipy.special.kv(order, a))


@given(st.sampled_from(ORDERS), log_uniform(-6, 2))
def test_the_correlation_is_the_textbook_formula(order: float, r: float) -> None:
    squared = torch.tensor(r, dtype=torch.float64) ** 2
    found = Matern(order).correlation(squared).item()
    assert found == pytest.approx(textbook(r, order), rel=1e-11, abs=1e-200)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_its_ends_are_one_and_zero(order: float, dtype: torch.dtype) -> None:
    ends = Matern(order).correlation(torch.tensor([0.0, 1e30], dtype=dtype))
    assert ends.tolist() == [1.0, 0.0]
    assert ends.dtype == dtype


@pytest.mark.parametrize("order", ORDERS)
def test_gradients_are_those_of_the_textbook(order: float) -> None:
    squared = torch.tensor([1e-10, 1e-3, 0.7, 5.0], dtype=torch.float64, requires_grad=True)
    kernel = Matern(order)
    assert torch.autograd.gradcheck(kernel.correlation, (squared[1:].detach().requires_grad_(),))
    assert torch.autograd.gradgradcheck(
        kernel.correlation, (squared[1:].detach().requires_grad_(),)
    )
    (slope,) = torch.autograd.grad(kernel.correlation(squared).sum(), squared)
    # dk/dr² = -(1/2r) e^{-r}; -(3/2) e^{-√3r}; -(5/6) (1 + √5 r) e^{-√5r}
    r = squared.detach().sqrt()
    a = math.sqrt(2 * order) * r
    exact = {0.5: -0.5 / r, 1.5: -1.5 * torch.ones(4), 2.5: -5 / 6 * (1 + a)}[order]
    torch.testing.assert_close(slope, (exact * torch.exp(-a)).double(), rtol=1e-13, atol=0)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_equal_points_have_gradients(order: float, dtype: torch.dtype) -> None:
    prior = ForcePrior(torch.tensor(0.7, dtype=dtype), 1.5, kernel=Matern(order))
    x = torch.tensor([[0.2], [0.2], [1.0]], dtype=dtype, requires_grad=True)
    prior.covariance(x, x).sum().backward()
    assert x.grad is not None
    assert bool(x.grad.isfinite().all())
    assert all(
        bool(one.grad.isfinite().all()) for one in prior.parameters() if one.grad is not None
    )


@pytest.mark.parametrize("order", ORDERS)
def test_the_mixture_is_the_kernel(order: float) -> None:
    r = torch.cat([torch.zeros(1), torch.logspace(-4, 1.5, 300)]).double()
    kernel = Matern(order)
    mixed = sum(weight * torch.exp(-0.5 * (r / s) ** 2) for weight, s in kernel.mixture())
    # 1e-6 of the weight is left out at its narrow end.
    torch.testing.assert_close(
        torch.as_tensor(mixed), kernel.correlation(r**2), atol=1.5e-6, rtol=0
    )


@pytest.mark.parametrize("order", ORDERS)
def test_its_spectrum_is_a_student_t(order: float) -> None:
    """Quantiles of |ω| by SciPy's Student-t; the share below one has a binomial spread."""
    count = 40_000
    like = torch.zeros((), dtype=torch.float64)
    scales = Matern(order).spectral_scales((count,), torch.Generator().manual_seed(0), like)
    normals = torch.randn(count, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    omega = (scales * normals).abs()
    for share in (0.2, 0.5, 0.9, 0.99):
        quantile = scipy.stats.t(2 * order).ppf((1 + share) / 2)
        below = float((omega <= quantile).double().mean())
        assert abs(below - share) <= 5 * math.sqrt(share * (1 - share) / count)


def covariance(state: MarkovForce, lag: float) -> float:
    """h e^{Fτ} P h by SciPy, with P from its Lyapunov solver."""
    F, L, h = (part.numpy() for part in (state.feedback, state.noise, state.readout))
    P = scipy.linalg.solve_continuous_lyapunov(F, -state.density.item() * np.outer(L, L))
    return float(h @ scipy.linalg.expm(F * lag) @ P @ h)


@given(st.sampled_from(ORDERS), log_uniform(-1, 1), log_uniform(-2, 1))
def test_its_states_have_its_covariance(order: float, ell: float, lag: float) -> None:
    kernel = Matern(order)
    lengthscale = torch.tensor(ell, dtype=torch.float64)
    exact = textbook(lag, order)
    for state in (kernel.markov_state(lengthscale), kernel.companion(lengthscale)):
        assert covariance(state, 0.0) == pytest.approx(1, rel=1e-9)
        assert covariance(state, lag * ell) == pytest.approx(exact, rel=1e-8, abs=1e-10)


@pytest.mark.parametrize("order", ORDERS)
def test_the_companion_form_is_that_of_its_polynomial(order: float) -> None:
    """u^(k) + … = w with (p + λ)^k, whose coefficients NumPy multiplies out."""
    state = Matern(order).companion(torch.tensor([0.5, 2.0], dtype=torch.float64))
    size = round(order + 0.5)
    for q, ell in enumerate((0.5, 2.0)):
        rate = math.sqrt(2 * order) / ell
        polynomial = np.poly([-rate] * size)[::-1]
        np.testing.assert_allclose(state.feedback[q, -1].numpy(), -polynomial[:-1], rtol=1e-12)
        np.testing.assert_array_equal(state.feedback[q, :-1, 1:].numpy(), np.eye(size - 1))
        # The density of white noise whose filtered variance is 1, by its integral.
        power, _ = scipy.integrate.quad(lambda w: (1 + w**2) ** -size / math.pi, 0, math.inf)
        assert state.density[q].item() == pytest.approx(rate ** (2 * size - 1) / power, rel=1e-9)
    assert state.noise.tolist() == [0.0] * (size - 1) + [1.0]
    assert state.readout.tolist() == [1.0] + [0.0] * (size - 1)


def test_the_smooth_force_has_no_state() -> None:
    assert SquaredExponential().markov_state(torch.ones(1, dtype=torch.float64)) is None


@pytest.mark.parametrize("order", [1, 3.5, "2.5"])
@pytest.mark.usefixtures("without_shape_checks")
def test_other_orders_are_refused(order: float) -> None:
    with pytest.raises(dlfm.InputError, match="order of a Matérn force must be one of"):
        Matern(order)


def test_a_model_with_it_is_saved_and_loaded(tmp_path: object) -> None:
    t = np.linspace(0, 6, 40)
    recipe = dlfm.InducingDLFM(num_inducing=8, num_basis=10, hidden_dim=1, force=Matern(1.5))
    training = dlfm.Training(steps=2, num_samples=2)
    model = dlfm.DeepLFMRegressor(recipe, training, progress=False).fit(t, np.sin(3 * t))
    model.save(str(tmp_path))
    again = dlfm.load(str(tmp_path))
    assert getattr(again.model, "force", None) == Matern(1.5)
    np.testing.assert_array_equal(again.predict(t), model.predict(t))
