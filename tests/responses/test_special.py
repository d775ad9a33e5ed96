"""wofz and erfcx against SciPy, in both half-planes, values and gradients."""

from typing import Any

import numpy as np
import pytest
import scipy.special
import torch
from torch.autograd import gradcheck, gradgradcheck

from deeplfm.responses.special import erfcx, half_gaussian_moment, wofz

COUNT = 200_000


def upper_half_plane(generator: np.random.Generator) -> Any:
    """|z| from 1e-8 to 1e6 at all angles, many of them close to the real axis."""
    modulus = 10 ** generator.uniform(-8, 6, COUNT)
    modulus[::2] = generator.uniform(0, 12, COUNT // 2)
    angle = generator.uniform(0, np.pi, COUNT)
    near = 10 ** generator.uniform(-12, 0, COUNT // 4)
    angle[: COUNT // 4], angle[COUNT // 4 : 2 * (COUNT // 4)] = near, np.pi - near
    points = modulus * np.exp(1j * angle)
    points[:100] = modulus[:100]  # on the axis itself
    return points


@pytest.mark.parametrize(("dtype", "bar"), [(torch.complex128, 1e-12), (torch.complex64, 1e-5)])
def test_upper_half_plane(dtype: torch.dtype, bar: float) -> None:
    z = torch.tensor(upper_half_plane(np.random.default_rng(0)), dtype=dtype)
    exact = scipy.special.wofz(z.to(torch.complex128).numpy())
    for got in (wofz(z), erfcx(-1j * z)):
        error = np.abs(got.to(torch.complex128).numpy() - exact) / np.abs(exact)
        assert error.max() <= bar


def test_lower_half_plane() -> None:
    generator = np.random.default_rng(1)
    z = generator.uniform(0, 10, COUNT) * np.exp(-1j * generator.uniform(0, np.pi, COUNT))
    exact = scipy.special.wofz(z)
    error = np.abs(wofz(torch.tensor(z)).numpy() - exact)
    assert (error / (np.abs(exact) + 2 * np.abs(np.exp(-(z**2))))).max() <= 1e-12


def test_real_arguments_stay_real() -> None:
    a = torch.linspace(-5, 50, 500, dtype=torch.float64)
    assert erfcx(a).dtype == torch.float64
    torch.testing.assert_close(erfcx(a), torch.special.erfcx(a), rtol=1e-13, atol=0)
    np.testing.assert_allclose(wofz(a).numpy(), scipy.special.wofz(a.numpy()), rtol=1e-13)


def test_python_numbers() -> None:
    assert wofz(0.5 + 0.25j).item() == pytest.approx(scipy.special.wofz(0.5 + 0.25j), rel=1e-14)
    assert erfcx(2.0).item() == pytest.approx(scipy.special.erfcx(2.0), rel=1e-14)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 8.0, 30.0])
def test_gradients(scale: float) -> None:
    generator = torch.Generator().manual_seed(2)
    z = torch.randn(12, dtype=torch.complex128, generator=generator) * scale
    z = torch.complex(z.real, z.imag.abs()).requires_grad_()
    assert gradcheck(wofz, (z,))
    assert gradgradcheck(wofz, (z,))
    if scale <= 1:  # below the axis w grows like e^{-z²}
        below = z.detach().conj().resolve_conj().requires_grad_()
        assert gradcheck(wofz, (below,))
    a = z.detach().imag.clone().requires_grad_()
    assert gradcheck(erfcx, (a,))


def test_gradient_of_erfcx_keeps_its_digits_far_out() -> None:
    """erfcx' = 2a erfcx - 2/√π cancels; its own series is -1/(√π a²) (1 - 3/(2a²) + …)."""
    a = torch.tensor([1e3, 1e4, 1e5], dtype=torch.float32, requires_grad=True)
    (gradient,) = torch.autograd.grad(erfcx(a).sum(), a)
    exact = -1 / (np.sqrt(np.pi) * a.detach().double() ** 2) * (1 - 1.5 / a.detach().double() ** 2)
    torch.testing.assert_close(gradient.double(), exact, rtol=1e-6, atol=0)


@pytest.mark.parametrize("order", [0, 1, 2, 3, 5])
def test_moments_against_quadrature(order: int) -> None:
    nodes, weights = np.polynomial.legendre.leggauss(400)
    v, weight = 20 * (nodes + 1), 20 * weights  # e^{-v²/2} is 0 to rounding beyond 40
    for m in (0.3 + 0.2j, 3 - 4j, -2 + 1j, 11 + 3j, 0.1 - 12j):
        exact = np.sum(weight * v**order * np.exp(-m * v - v**2 / 2))
        terms = np.sum(weight * v**order * np.abs(np.exp(-m * v - v**2 / 2)))
        got = half_gaussian_moment(torch.tensor(m, dtype=torch.complex128), order).item()
        assert abs(got - exact) <= 1e-11 * terms
