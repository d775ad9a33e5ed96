"""wave_response against 50-digit arithmetic over the promised ranges."""

import functools
import math
from typing import Any

import mpmath as mp
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.autograd import gradcheck, gradgradcheck

from deeplfm.responses.waves import wave_moment, wave_response
from deeplfm.shapes import Memory
from derivatives import value_and_partials
from ranges import FLOAT32, FLOAT64, Precision, wave_cases
from reference.waves import wave, wave_gradients, wave_scale

NAMES = ("x", "omega", "s")


@pytest.mark.parametrize("precision", [FLOAT64, FLOAT32], ids=["float64", "float32"])
@pytest.mark.parametrize("memory", ["infinite", "zero"])
@settings(max_examples=100)
@given(data=st.data())
def test_values_and_gradients(precision: Precision, memory: Memory, data: Any) -> None:
    case: Any = data.draw(wave_cases(precision, memory))
    value, partials = value_and_partials(
        functools.partial(wave_response, memory=memory), case, precision.real
    )
    with mp.workdps(30):
        x, omega, s = case
        exact, scale = wave(x, omega, s, memory), wave_scale(x, omega, s, memory)
        assert math.isfinite(abs(value))
        if scale > precision.smallest:
            assert abs(value - exact) <= precision.value * scale
        gradients = wave_gradients(x, omega, s, memory)
        for name, argument, partial in zip(NAMES, case, partials, strict=True):
            allowed = abs(gradients[name]) + abs(exact) / abs(argument)
            assert math.isfinite(abs(partial))
            if allowed > precision.smallest:
                assert abs(partial - gradients[name]) <= precision.gradient * allowed


@pytest.mark.parametrize("memory", ["infinite", "zero"])
@pytest.mark.parametrize("order", [0, 1, 3])
def test_gradcheck(memory: Memory, order: int) -> None:
    x = torch.tensor([0.3, 1.0, 2.5, 1e-3], dtype=torch.float64, requires_grad=True)
    omega = torch.tensor([[0.7], [-3.0]], dtype=torch.float64, requires_grad=True)
    s = torch.tensor([1.0, 2.0 + 3.0j, 0.5 - 0.7j, 4.0], requires_grad=True)
    s = s.to(torch.complex128).detach().requires_grad_()
    function = functools.partial(wave_moment, memory=memory, order=order)
    assert gradcheck(function, (x, omega, s))
    assert gradgradcheck(function, (x, omega, s))
    real = torch.tensor(0.8, dtype=torch.float64, requires_grad=True)
    assert gradcheck(function, (x, omega, real))


def test_exactly_resonant_pole() -> None:
    """At s + jω = 0 the response is x e^{jωx}."""
    x = torch.tensor([0.0, 0.5, 3.0], dtype=torch.float64)
    got = wave_response(x, 2.0, torch.tensor(-2.0j, dtype=torch.complex128), "zero")
    torch.testing.assert_close(got, x * torch.exp(2j * x))


def test_before_the_origin_the_oriented_integral() -> None:
    for x in (-0.5, -3.0):
        got = wave_response(x, 1.5, 0.7, "zero").item()
        exact = wave(x, 1.5, 0.7, "zero")
        assert abs(got - exact) <= 1e-13 * abs(exact)


def test_broadcasts_over_every_argument() -> None:
    x = torch.rand(5, 1, 1, dtype=torch.float64)
    omega = torch.rand(1, 4, 1, dtype=torch.float64)
    pole = torch.rand(3, dtype=torch.float64) + 0.1
    assert wave_response(x, omega, pole).shape == (5, 4, 3)
    single = wave_response(x[2, 0, 0], omega[0, 1, 0], pole[1], "zero")
    torch.testing.assert_close(wave_response(x, omega, pole, "zero")[2, 1, 1], single)


def test_nan_passes_through() -> None:
    x = torch.tensor([1.0, math.nan])
    for memory in ("infinite", "zero"):
        assert wave_response(x, 1.0, 1.0, memory).isnan().tolist() == [False, True]
