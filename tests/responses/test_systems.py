"""Whole ODEs driven by waves and bumps: 50-digit arithmetic, an ODE solver, quadrature."""

from typing import Any

import mpmath as mp
import numpy as np
import pytest
import scipy.integrate
import torch
from torch.autograd import gradcheck
from torch.func import functional_call

import deeplfm as dlfm
from deeplfm.greens_functions import GreensFunction
from deeplfm.responses import quadrature, system_bump_response, system_wave_response
from deeplfm.shapes import Memory
from reference.greens import second_order_gradients

RATIOS = [1.0, 1 + 1e-12, 1 - 1e-12, 1 + 1e-6, 1 - 1e-6, 0.999, 1.05, 0.1, 10.0]
SYSTEMS: list[GreensFunction] = [
    dlfm.FirstOrder(2.0),
    dlfm.SecondOrder(0.4, 4.0),
    dlfm.SecondOrder(1.5, 1.5),
    dlfm.SecondOrder(5.0, 1.0, normalised=True),
    dlfm.LinearODE([2.0, 2.5, 1.2]),
    dlfm.LinearODE([8.0, 12.0, 6.0]),
    dlfm.LinearODE([36.0, 48.0, 28.0, 8.0], normalised=True),
    dlfm.NoDynamics(),
]


def name_of(g: GreensFunction) -> str:
    """A short name for a test."""
    return f"{type(g).__name__}{g.order}"


@pytest.mark.parametrize("memory", ["infinite", "zero"])
@pytest.mark.parametrize("kind", ["wave", "bump"])
@pytest.mark.parametrize("ratio", RATIOS)
def test_second_order_in_every_regime(ratio: float, kind: str, memory: Memory) -> None:
    for frequency in (0.5, 3.0, 40.0):
        damping = frequency * ratio
        for x, force in ((0.05, (0.1, 0.3)), (0.9, (0.4, 0.02)), (2.5, (-0.7, 1.1))):
            g = dlfm.SecondOrder(damping, frequency)
            if kind == "wave":
                point: tuple[float, ...] = (x, 30 * force[0])
                value = system_wave_response(g, x, 30 * force[0], memory)
            else:
                point = (x, *force)
                value = system_bump_response(g, x, *force, memory)
            exact = second_order_gradients(kind, point, damping, frequency, memory)
            check_against(g, value, exact)


def check_against(g: dlfm.SecondOrder, value: torch.Tensor, exact: dict[str, Any]) -> None:
    raws: list[Any] = [quantity.raw for quantity in g.quantities.values()]
    real = torch.autograd.grad(value.real, raws, retain_graph=True)
    imag = torch.autograd.grad(value.imag, raws) if value.is_complex() else [torch.zeros(())] * 2
    with mp.workdps(30):
        assert abs(value.item() - exact["value"]) <= 1e-11 * abs(exact["value"])
        for key, parameter, in_real, in_imag in zip(
            ("alpha", "omega0"), (g.damping, g.frequency), real, imag, strict=True
        ):
            got = mp.mpc(in_real.item(), in_imag.item()) / parameter.item()
            allowed = abs(exact[key]) + abs(exact["value"]) / parameter.item()
            assert abs(got - exact[key]) <= 1e-8 * allowed


@pytest.mark.parametrize("kind", ["wave", "bump"])
@pytest.mark.parametrize("ratio", [1.0, 1 + 1e-12, 1 - 1e-12, 1 + 1e-6, 1 - 1e-6, 0.1, 10.0])
def test_second_order_against_an_ode_solver(ratio: float, kind: str) -> None:
    """Zero memory is the solution that starts at rest."""
    omega0, z, ell = 2.0, 0.8, 0.3
    alpha = ratio * omega0
    x = np.linspace(0, 3, 10)

    def force(t: float) -> float:
        return float(np.cos(5 * t) if kind == "wave" else np.exp(-((t - z) ** 2) / (2 * ell**2)))

    solution = scipy.integrate.solve_ivp(
        lambda t, y: [y[1], force(t) - 2 * alpha * y[1] - omega0**2 * y[0]],
        (0, 3),
        [0.0, 0.0],
        method="DOP853",
        t_eval=x,
        rtol=1e-12,
        atol=1e-14,
    )
    g = dlfm.SecondOrder(alpha, omega0)
    if kind == "wave":
        got = system_wave_response(g, torch.tensor(x), 5.0, "zero").real.detach().numpy()
    else:
        got = system_bump_response(g, torch.tensor(x), z, ell, "zero").detach().numpy()
    np.testing.assert_allclose(got, solution.y[0], rtol=0, atol=1e-9)


@pytest.mark.parametrize("memory", ["infinite", "zero"])
@pytest.mark.parametrize("g", SYSTEMS, ids=name_of)
def test_every_system_against_quadrature(g: GreensFunction, memory: Memory) -> None:
    x = torch.tensor([0.05, 0.7, 2.3], dtype=torch.float64)
    wave = system_wave_response(g, x, 3.0, memory)
    summed = quadrature(g, lambda tau: torch.exp(3j * tau), x, memory)
    torch.testing.assert_close(wave.detach(), summed, rtol=0, atol=1e-11)
    bump = system_bump_response(g, x, 0.5, 0.3, memory)
    summed = quadrature(g, lambda tau: torch.exp(-((tau - 0.5) ** 2) / 0.18), x, memory)
    torch.testing.assert_close(bump.detach(), summed, rtol=0, atol=1e-11)


@pytest.mark.parametrize("roots", [[0.0, 0.0], [4.0, 0.0], [-1.0, 0.3], [0.0, 4.0, 0.0], [0.0]])
def test_an_unstable_ode_with_zero_memory(roots: list[float]) -> None:
    g = dlfm.LinearODE(roots)
    x = torch.tensor([0.05, 0.7, 2.3], dtype=torch.float64)
    wave = system_wave_response(g, x, 3.0, "zero").detach()
    torch.testing.assert_close(wave, quadrature(g, lambda tau: torch.exp(3j * tau), x, "zero"))
    bump = system_bump_response(g, x, 0.5, 0.3, "zero").detach()
    summed = quadrature(g, lambda tau: torch.exp(-((tau - 0.5) ** 2) / 0.18), x, "zero")
    torch.testing.assert_close(bump, summed)


@pytest.mark.parametrize("memory", ["infinite", "zero"])
@pytest.mark.parametrize("g", [*SYSTEMS[:5], dlfm.NoDynamics()], ids=name_of)
def test_gradcheck(g: GreensFunction, memory: Memory) -> None:
    names = [name for name, _ in g.named_parameters()]
    x = torch.tensor([0.3, 1.4], dtype=torch.float64, requires_grad=True)
    extra = torch.tensor(0.6, dtype=torch.float64, requires_grad=True)
    ell = torch.tensor(0.5, dtype=torch.float64, requires_grad=True)

    class Respond(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.g = g

        def forward(self, x: torch.Tensor, extra: torch.Tensor, ell: torch.Tensor) -> Any:
            wave = system_wave_response(self.g, x, extra, memory)
            return wave.real, wave.imag, system_bump_response(self.g, x, extra, ell, memory)

    respond = Respond()

    def call(x: Any, extra: Any, ell: Any, *values: Any) -> Any:
        named = {f"g.{name}": value for name, value in zip(names, values, strict=True)}
        return functional_call(respond, named, (x, extra, ell))

    assert gradcheck(call, (x, extra, ell, *g.parameters()), atol=1e-7)


def test_gradient_through_a_triple_pole() -> None:
    """Three equal poles are integrated around: the gradient against central differences."""
    x = torch.tensor([0.3, 1.4], dtype=torch.float64)
    g = dlfm.LinearODE([8.0, 12.0, 6.0])
    system_bump_response(g, x, 0.6, 0.5).sum().backward()
    for parameter in g.parameters():
        assert parameter.grad is not None
        values = []
        with torch.no_grad():
            for step in (1e-4, -1e-4):
                parameter.add_(step)
                values.append(system_bump_response(g, x, 0.6, 0.5).sum().item())
                parameter.sub_(step)
        assert parameter.grad.item() == pytest.approx((values[0] - values[1]) / 2e-4, rel=1e-6)


@pytest.mark.parametrize("memory", ["infinite", "zero"])
@pytest.mark.parametrize(
    "parameters", [(0.3, 5.0), (2.0, 2.0), (1e3, 1e3), (1e3, 1.0), (1e3, 5e3), (1e-3, 1e-3)]
)
def test_float32_is_finite_everywhere(parameters: tuple[float, float], memory: Memory) -> None:
    """Long lags, short and long forces: no power of them overflows in a branch not taken."""
    cases = [(1e3, 999.9, 0.01), (1e3, 999.999, 1e-3), (1e5, 3.0, 100.0), (1e-6, 3.0, 1.0)]
    x, z, ell = (torch.tensor(column, requires_grad=True) for column in zip(*cases, strict=True))
    g = dlfm.SecondOrder(*parameters).float()
    responses = (
        system_bump_response(g, x, z, ell, memory),
        system_wave_response(g, x, torch.tensor(0.01), memory).real,
        g(x),
    )
    for response in responses:
        assert response.isfinite().all()
        wanted = [x, *g.parameters()]
        for gradient in torch.autograd.grad(response.sum(), wanted, retain_graph=True):
            assert gradient.isfinite().all()


def test_float32_through_the_critical_point() -> None:
    """Single precision keeps three digits, of values and gradients."""
    x = torch.linspace(0.1, 3, 30)
    for ratio in (1.0, 1.0005, 1.003, 1.03, 1.3, 0.97):
        results = []
        for dtype in (torch.float64, torch.float32):
            g = dlfm.SecondOrder(2.0 * ratio, 2.0).to(dtype)
            value = system_bump_response(g, x.to(dtype), 0.5, 0.4, "zero").sum()
            value.backward()
            raws: list[Any] = [quantity.raw for quantity in g.quantities.values()]
            results.append((value.item(), *(raw.grad.item() for raw in raws)))
        for wide, narrow in zip(*results, strict=True):
            assert narrow == pytest.approx(wide, rel=1e-3)
