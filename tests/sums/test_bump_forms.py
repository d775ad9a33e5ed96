"""Polynomials and series of bumps against the bumps themselves: values and gradients."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import deeplfm as dlfm
from deeplfm.greens_functions import FixedDynamics, GreensFunction
from deeplfm.responses import bump_response
from deeplfm.sums import bump_sum, plane_wave_sum
from deeplfm.sums.torch.bump_polynomials import polynomial_sum
from deeplfm.sums.torch.bump_series import series_of
from deeplfm.sums.torch.bump_stretches import bumps_at_nodes, coefficients_needed, stretch
from deeplfm.sums.torch.first_order_bump import first_order_bump


def arguments(
    samples: int, own_inputs: bool, inputs: int, outputs: int, forces: int, span: float = 2.0
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(samples + 10 * inputs + 100 * outputs)

    def uniform(*shape: int) -> Tensor:
        return torch.rand(shape, generator=generator, dtype=torch.float64)

    x = span * uniform(*((samples, 200) if own_inputs else (1, 3000)), inputs)
    centers = span * uniform(forces, 9, inputs)
    lengthscale = 0.3 + 0.3 * uniform(forces, inputs)
    return x, centers, lengthscale, uniform(samples, outputs, forces, 9) - 0.5


@pytest.mark.parametrize(
    ("g", "inputs", "outputs", "forces"),
    [
        (dlfm.FirstOrder(3.0), 1, 2, 1),
        (dlfm.FirstOrder(3.0), 3, 2, 1),
        (dlfm.FirstOrder(200.0, normalised=True), 2, 1, 2),
        (dlfm.SecondOrder(0.5, 4.0), 2, 2, 1),
        (dlfm.LinearODE([20.0, 15.0, 4.0]), 1, 1, 1),
        (dlfm.NoDynamics(), 2, 3, 2),
    ],
)
@pytest.mark.parametrize("own_inputs", [True, False])
def test_polynomials_are_the_bumps(
    g: GreensFunction, inputs: int, outputs: int, forces: int, own_inputs: bool
) -> None:
    """Values and gradients to everything, in float64: within 1e-11 of a bump each, added up."""
    given_ = arguments(30, own_inputs, inputs, outputs, forces)
    tiled = g.tiled(outputs, inputs)
    assert bumps_at_nodes(tiled.fixed(), *given_[:3]) is not None
    x, z, ell, c = wanted = [one.clone().requires_grad_() for one in given_]
    everything = [*wanted, *tiled.parameters()]
    fast = polynomial_sum(tiled.fixed(), x, z, ell, c)
    assert fast is not None
    slow = bump_sum.by("plain", tiled, x, z, ell, c, "infinite")
    along = torch.randn(slow.shape, generator=torch.Generator().manual_seed(0)).double()
    pairs = [
        (fast, slow),
        *zip(
            *(torch.autograd.grad(f, everything, along, allow_unused=True) for f in (fast, slow)),
            strict=True,
        ),
    ]
    for one, other in pairs:
        if other is None:
            continue
        # A slope of a polynomial of degree r loses up to r² of what its values have.
        torch.testing.assert_close(
            one, other, rtol=0, atol=1e-8 * float(other.detach().abs().max())
        )


@pytest.mark.parametrize(
    "g",
    [
        dlfm.FirstOrder(30.0),
        dlfm.SecondOrder(4.0, 4.0),
        dlfm.SecondOrder(0.5, 12.0, normalised=True),
        dlfm.LinearODE([20.0, 15.0, 4.0]),
    ],
)
@pytest.mark.parametrize("own_inputs", [True, False])
def test_a_series_is_the_bumps(g: GreensFunction, own_inputs: bool) -> None:
    """In float64: within 1e-11 of a bump each, added up; a slope has up to (x - z)²/ℓ² of it."""
    given_ = arguments(6, own_inputs, 1, 2, 2, span=8.0)
    tiled = g.tiled(2, 1)
    x, z, ell, c = wanted = [one.clone().requires_grad_() for one in given_]
    everything = [*wanted, *tiled.parameters()]
    series = series_of(tiled.fixed(), x, z, ell, c)
    assert series is not None
    middle, frequency, *weights = series
    fast = plane_wave_sum.by("plain", x - middle, frequency[None, :, None], *weights)
    slow = bump_sum.by("plain", tiled, x, z, ell, c, "infinite")
    along = torch.randn(slow.shape, generator=torch.Generator().manual_seed(0)).double()
    by_fast, by_slow = (torch.autograd.grad(f, everything, along) for f in (fast, slow))
    for one, other in zip((fast, *by_fast), (slow, *by_slow), strict=True):
        torch.testing.assert_close(
            one, other, rtol=0, atol=1e-8 * float(other.detach().abs().max())
        )


def test_a_series_is_for_an_ode_that_forgets() -> None:
    x, centers, lengthscale, c = arguments(2, False, 1, 1, 1)
    slow, fast = (dlfm.SecondOrder(rate, 5.0).tiled(1, 1).fixed() for rate in (1e-3, 1.0))
    still = dlfm.NoDynamics().tiled(1, 1).fixed()

    def has_series(dynamics: FixedDynamics, x: Tensor, lengthscale: Tensor) -> bool:
        return series_of(dynamics, x, centers, lengthscale, c) is not None

    assert has_series(fast, x, lengthscale)
    assert not has_series(slow, x, lengthscale)
    assert not has_series(still, x, lengthscale)
    assert not has_series(fast, torch.full_like(x, torch.nan), lengthscale)
    many = x.expand(2, -1, -1).repeat(1, 2**9, 1)
    assert not has_series(fast, many, lengthscale / 10)


@settings(max_examples=40, deadline=None)
@given(st.floats(0.01, 60), st.floats(-1.2, 1.2), st.sampled_from([1e-5, 1e-11]))
def test_so_many_coefficients_are_enough(width: float, place: float, tolerance: float) -> None:
    found = stretch(-width, width, 1.0, tolerance)
    assert found is not None
    x = torch.linspace(-width, width, 501, dtype=torch.float64)
    bump = torch.exp(-((found.nodes() - place * width) ** 2) / 2)
    angles = torch.acos((x - found.middle) / found.half)
    orders = torch.arange(found.size)
    nodes = torch.acos((found.nodes() - found.middle) / found.half)
    matrix = torch.cos(orders[:, None] * nodes) * (2 / found.size)
    matrix[0] /= 2
    got = torch.cos(angles[:, None] * orders) @ (matrix @ bump)
    expected = torch.exp(-((x - place * width) ** 2) / 2)
    assert (got - expected).abs().max() <= tolerance + 1e-13 * found.size


def test_a_stretch_may_be_too_long() -> None:
    assert stretch(0.0, 1e4, 1.0, 1e-5) is None
    assert coefficients_needed(10.0, 1e-5) is not None


@settings(max_examples=40, deadline=None)
@given(st.floats(-30, 30), st.floats(0.01, 3), st.floats(1e-3, 1e3))
def test_first_order_bumps(lag: float, lengthscale: float, rate: float) -> None:
    values = [torch.tensor(one, dtype=torch.float64) for one in (lag, lengthscale, rate)]
    ours = [one.clone().requires_grad_() for one in values]
    theirs = [one.clone().requires_grad_() for one in values]
    got = first_order_bump(*ours)
    expected = bump_response(theirs[0], torch.zeros_like(theirs[0]), theirs[1], theirs[2])
    torch.testing.assert_close(got, expected, rtol=1e-11, atol=1e-300)
    size = 1 + (rate * lengthscale) ** 2 + (lag / lengthscale) ** 2
    pairs = zip(
        torch.autograd.grad(got, ours), torch.autograd.grad(expected, theirs), values, strict=True
    )
    for one, other, value in pairs:
        # Each derivative subtracts numbers up to (γℓ)² and (t/ℓ)² times the response.
        allowed = 1e-14 * size * float(expected.detach().abs()) / max(1e-3, abs(float(value)))
        assert abs(float(one - other)) <= allowed + 1e-10 * abs(float(other)) + 1e-300
