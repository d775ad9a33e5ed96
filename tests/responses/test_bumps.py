"""bump_response against 50-digit arithmetic over the promised ranges."""

import functools
import math
from typing import Any

import mpmath as mp
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.autograd import gradcheck, gradgradcheck

from deeplfm.responses.bumps import bump_moment, bump_response
from deeplfm.shapes import Memory
from derivatives import value_and_partials
from ranges import FLOAT32, FLOAT64, Precision, bump_cases
from reference.bumps import bump, bump_gradients, bump_scale

NAMES = ("x", "z", "ell", "s")


@pytest.mark.parametrize("precision", [FLOAT64, FLOAT32], ids=["float64", "float32"])
@pytest.mark.parametrize("memory", ["infinite", "zero"])
@settings(max_examples=80)
@given(data=st.data())
def test_values_and_gradients(precision: Precision, memory: Memory, data: Any) -> None:
    case = data.draw(bump_cases(precision, memory))
    check(case, precision, memory)


def check(
    case: tuple[float, float, float, float | complex], precision: Precision, memory: Memory
) -> None:
    value, partials = value_and_partials(
        functools.partial(bump_response, memory=memory), case, precision.real
    )
    with mp.workdps(30):
        exact, scale = bump(*case, memory), bump_scale(*case, memory)
        assert math.isfinite(abs(value))
        if scale > precision.smallest:
            assert abs(value - exact) <= precision.value * scale
        gradients = bump_gradients(*case, memory)
        for name, argument, partial in zip(NAMES, case, partials, strict=True):
            allowed = abs(gradients[name]) + abs(exact) / abs(argument)
            assert math.isfinite(abs(partial))
            if allowed > precision.smallest:
                assert abs(partial - gradients[name]) <= precision.gradient * allowed


CORNERS: list[tuple[float, float, float, float | complex]] = [
    (0.5, -3.0, 0.25, 180.0),  # where exp·erfc gives NaN
    (0.5, 0.5, 100.0, 1e3),  # γℓ = 1e5
    (1e-6, -0.02, 0.0078125, 2.0),  # x ≪ ℓ, z < 0
    (1e-6, 3.0, 1.0, 1e3 + 1e3j),
    (2.0, -40.0, 1.0, 0.001953125),  # the bump lies far back, before the origin
    (2.0, -40.0, 1.0, 0.001953125 + 8j),
    (50.0, 25.0, 1.0, 0.5),  # far inside the interval
    (50.0, 25.0, 1.0, 0.5 + 20j),
    (0.015625, 1.0, 0.0009765625, 3.0),  # |x - z| ≈ 1e3 ℓ, to the right: underflow
    (1.0, 0.015625, 0.0009765625, 3.0),
    (1.0, 0.015625, 0.0009765625, 3.0 + 900j),
]


@pytest.mark.parametrize("precision", [FLOAT64, FLOAT32], ids=["float64", "float32"])
@pytest.mark.parametrize("memory", ["infinite", "zero"])
@pytest.mark.parametrize("case", CORNERS)
def test_corners(
    precision: Precision, memory: Memory, case: tuple[float, float, float, float | complex]
) -> None:
    numbers = torch.tensor(case[:3], dtype=precision.real).tolist()
    pole = torch.tensor(case[3], dtype=precision.complex).item()
    check((*numbers, pole if pole.imag else pole.real), precision, memory)


@pytest.mark.parametrize("memory", ["infinite", "zero"])
def test_float32_is_finite_everywhere(memory: Memory) -> None:
    generator = torch.Generator().manual_seed(0)

    def log_uniform(low: float, high: float) -> torch.Tensor:
        return 10 ** (low + (high - low) * torch.rand(100_000, generator=generator))

    ell = log_uniform(-3, 2)
    distance = ell * log_uniform(-6, 3) * torch.randn(100_000, generator=generator).sign()
    x = log_uniform(-6, 3)
    pole = torch.complex(log_uniform(-3, 3), log_uniform(-3, 3))
    for s in (pole, pole.real.clone()):
        leaves = [t.clone().requires_grad_() for t in (x, x - distance, ell, s)]
        value = functools.partial(bump_response, memory=memory)(*leaves)
        assert value.isfinite().all()
        for gradient in torch.autograd.grad(value.real.sum(), leaves):
            assert gradient.isfinite().all()


@pytest.mark.parametrize("memory", ["infinite", "zero"])
@pytest.mark.parametrize("order", [0, 1, 2])
@pytest.mark.parametrize("real", [True, False])
def test_gradcheck(memory: Memory, order: int, real: bool) -> None:
    generator = torch.Generator().manual_seed(3)
    x = 5 * torch.rand(3, dtype=torch.float64, generator=generator)
    x[:2] = torch.tensor([1e-3, 0.4])
    z = 4 * torch.randn(2, 1, dtype=torch.float64, generator=generator)
    ell = 0.3 + torch.rand(3, dtype=torch.float64, generator=generator)
    s: torch.Tensor = 0.1 + 3 * torch.rand(3, dtype=torch.float64, generator=generator)
    if not real:
        s = torch.complex(s, 4 * torch.randn(3, dtype=torch.float64, generator=generator))
    leaves = [t.requires_grad_() for t in (x, z, ell, s)]
    function = functools.partial(bump_moment, memory=memory, order=order)
    assert gradcheck(function, leaves)
    assert gradgradcheck(function, leaves)


@pytest.mark.parametrize("order", [1, 3, 5])
@pytest.mark.parametrize("memory", ["infinite", "zero"])
def test_moments(order: int, memory: Memory) -> None:
    cases: list[Any] = [(1.5, 0.2, 0.7, 2.0), (0.3, -1.0, 0.5, 1.0 + 2j), (4.0, 1.0, 0.3, 0.4)]
    for case in cases:
        got = functools.partial(bump_moment, memory=memory, order=order)(*case).item()
        x, z, ell, s = case
        exact = bump(x, z, ell, s, memory, order)
        largest = bump(x, z, ell, complex(s).real, memory, order)
        assert abs(got - exact) <= 1e-11 * abs(largest)


def test_before_the_origin_the_oriented_integral() -> None:
    for z in (-2.0, -0.3, 0.5):
        got = bump_response(-0.5, z, 0.4, 1.5, "zero").item()
        exact = bump(-0.5, z, 0.4, 1.5, "zero")
        assert abs(got - exact) <= 1e-13 * abs(exact)


def test_real_for_a_real_pole_else_complex() -> None:
    assert bump_response(1.0, 0.0, 1.0, 2.0).dtype == torch.float64
    assert bump_response(1.0, 0.0, 1.0, 2.0 + 1.0j).dtype == torch.complex128
    x = torch.ones(3)
    assert bump_response(x, 0.0, 1.0, torch.tensor(2.0)).dtype == torch.float32
    assert bump_response(x, 0.0, 1.0, torch.tensor(2.0 + 1j)).dtype == torch.complex64


def test_a_real_pole_is_a_complex_pole_with_no_imaginary_part() -> None:
    x = torch.linspace(0, 3, 40, dtype=torch.float64)
    for memory in ("infinite", "zero"):
        real = bump_response(x, 1.0, 0.3, 2.0, memory)
        both = bump_response(x, 1.0, 0.3, 2.0 + 0j, memory)
        torch.testing.assert_close(both.real, real, rtol=1e-12, atol=0)


def test_broadcasts_over_every_argument() -> None:
    x = torch.rand(5, 1, 1, 1, dtype=torch.float64, requires_grad=True)
    z, ell = torch.rand(4, 1, 1, dtype=torch.float64), torch.rand(3, 1, dtype=torch.float64) + 0.1
    pole = torch.rand(2, dtype=torch.float64) + 0.1
    value = bump_response(x, z, ell, pole, "zero")
    assert value.shape == (5, 4, 3, 2)
    (gradient,) = torch.autograd.grad(value.sum(), x)
    assert gradient.shape == x.shape
