"""Green's functions against 50-digit arithmetic, an ODE solver and their own definitions."""

import copy
import math
from typing import Any

import mpmath as mp
import numpy as np
import pytest
import scipy.integrate
import torch
from torch.autograd import gradcheck
from torch.func import functional_call

import deeplfm as dlfm
from deeplfm.greens_functions import GreensFunction, Linear
from reference.greens import greens, second_order_gradients

RATIOS = [1.0, 1 + 1e-12, 1 - 1e-12, 1 + 1e-6, 1 - 1e-6, 1.001, 0.97, 0.1, 10.0]
T = torch.linspace(0, 3, 13, dtype=torch.float64)


def exact_roots(g: GreensFunction) -> list[Any]:
    """The poles of the factors as they are held, at 60 digits."""
    roots = []
    with mp.workdps(60):
        for factor in g.factors:
            if isinstance(factor, Linear):
                roots.append(mp.mpc(factor.rate.item()))
                continue
            half, product = mp.mpf(factor.damping.item()), mp.mpf(factor.product.item())
            root = mp.sqrt(mp.mpc(half**2 - product))
            roots += [half - root, half + root]
    return roots


def coefficients(roots: list[complex]) -> list[float]:
    polynomial = np.poly([-root for root in roots])
    return [float(value) for value in polynomial.real[::-1][:-1]]


@pytest.mark.parametrize("ratio", RATIOS)
@pytest.mark.parametrize("frequency", [0.5, 3.0, 40.0])
def test_second_order_in_every_regime(ratio: float, frequency: float) -> None:
    damping = frequency * ratio
    for t in (0.0, 0.02, 0.7, 2.5):
        g = dlfm.SecondOrder(damping, frequency)
        value = g(t)
        value.backward()
        exact = second_order_gradients("green", (t,), damping, frequency)
        with mp.workdps(30):
            assert abs(value.item() - exact["value"]) <= 1e-12 * abs(exact["value"])
            for name, key in (("damping", "alpha"), ("frequency", "omega0")):
                # raw is the logarithm of the value: undo the chain rule.
                raw: Any = g.quantities[name].raw
                got = raw.grad.item() / g.value(name).item()
                allowed = abs(exact[key]) + abs(exact["value"]) / g.value(name).item()
                assert abs(got - exact[key]) <= 1e-9 * allowed


@pytest.mark.parametrize("ratio", [1.0, 1 + 1e-6, 0.1, 10.0])
def test_second_order_solves_its_ode(ratio: float) -> None:
    """The impulse response: y(0) = 0, y'(0) = 1, no force."""
    omega0 = 2.0
    alpha = omega0 * ratio
    solution = scipy.integrate.solve_ivp(
        lambda _, y: [y[1], -2 * alpha * y[1] - omega0**2 * y[0]],
        (0, 3),
        [0.0, 1.0],
        method="DOP853",
        t_eval=T.numpy(),
        rtol=1e-12,
        atol=1e-14,
    )
    got = dlfm.SecondOrder(alpha, omega0)(T).detach().numpy()
    np.testing.assert_allclose(got, solution.y[0], rtol=0, atol=1e-9)


def test_first_order() -> None:
    torch.testing.assert_close(dlfm.FirstOrder(2.5)(T), torch.exp(-2.5 * T))


@pytest.mark.parametrize(
    "roots",
    [
        [1, 2, 3],
        [2, 2, 2],
        [2, 2.001, 2],
        [1, 1, 5, 5],
        [1 + 3j, 1 - 3j, 1 + 3j, 1 - 3j],
        [1, 10, 100],
        [1, 1.05, 1.2],
        [0.5, 0.5, 4 + 2j, 4 - 2j, 4.0001],
        [0, 0, 0],
        [0, 2j, -2j],
        [2j, -2j, 2j, -2j],
        [-0.5, 1, 2],
        [3],
        [0, 0],
        [-2, 5],
    ],
)
def test_linear_ode_of_any_order(roots: list[complex]) -> None:
    g = dlfm.LinearODE(coefficients(roots))
    assert g.order == len(roots)
    assert g.stable == all(complex(root).real > 0 for root in roots)
    exact = [greens(t, exact_roots(g)) for t in T.tolist()]
    largest = max(abs(value) for value in exact)
    for got, value in zip(g(T).tolist(), exact, strict=True):
        assert abs(got - value) <= 1e-12 * largest
    np.testing.assert_allclose(g.coefficients.detach(), coefficients(roots), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    "g",
    [
        dlfm.FirstOrder(1.3),
        dlfm.FirstOrder(1.3, normalised=True),
        dlfm.SecondOrder(0.3, 5.0),
        dlfm.SecondOrder(1.7, 1.7),
        dlfm.SecondOrder(1.7, 1.7, normalised=True),
        dlfm.SecondOrder(4.0, 1.0),
        dlfm.SecondOrder(2.0, 3.0, bounds={"damping": (0.1, 10.0)}),
        dlfm.LinearODE([2.0, 2.5, 1.2]),
        dlfm.LinearODE([8.0, 12.0, 6.0]),
    ],
    ids=lambda g: f"{type(g).__name__}{g.order}",
)
def test_gradcheck(g: GreensFunction) -> None:
    names = [name for name, _ in g.named_parameters()]
    t = torch.tensor([0.2, 1.1], dtype=torch.float64, requires_grad=True)

    def call(t: torch.Tensor, *values: torch.Tensor) -> torch.Tensor:
        return functional_call(g, dict(zip(names, values, strict=True)), (t,))  # type: ignore[no-any-return]

    assert gradcheck(call, (t, *g.parameters()), atol=1e-7)


@pytest.mark.parametrize(
    "g",
    [
        dlfm.FirstOrder(3.0, normalised=True),
        dlfm.SecondOrder(1.0, 4.0, normalised=True),
        dlfm.SecondOrder(4.0, 4.0, normalised=True),
        dlfm.LinearODE([6.0, 11.0, 6.0], normalised=True),
    ],
    ids=lambda g: f"{type(g).__name__}{g.order}",
)
def test_normalised_integrates_to_one(g: GreensFunction) -> None:
    nodes, weights = np.polynomial.legendre.leggauss(300)
    t = torch.tensor(20 * (nodes + 1))
    assert (g(t).detach().numpy() * 20 * weights).sum() == pytest.approx(1, abs=1e-8)
    zero = torch.zeros(1, dtype=torch.float64)
    assert g.transfer(zero).item() == pytest.approx(1, rel=1e-12)


def test_poles_and_residues_sum_to_g() -> None:
    damping = torch.tensor([[0.3, 2.0], [5.0, 1.0]], dtype=torch.float64)
    for g in (dlfm.SecondOrder(damping, 3.0), dlfm.FirstOrder(damping)):
        poles, residues = g.poles_and_residues()
        assert poles.shape == residues.shape == (2, 2, g.order)
        t = T[:, None, None]
        summed = (residues * torch.exp(-poles * t[..., None])).sum(-1)
        torch.testing.assert_close(summed.real, g(t), rtol=0, atol=1e-13)
        assert summed.imag.abs().max() <= 1e-14


def test_no_residues_where_poles_coincide() -> None:
    with pytest.raises(dlfm.InputError, match=r"distinct poles only.*critical.*Use g\(t\)"):
        dlfm.SecondOrder(2.0, 2.0).poles_and_residues()
    nodes, weights = dlfm.SecondOrder(2.0, 2.0).exponentials()
    summed = (weights * torch.exp(-nodes * T[:, None])).sum(-1)
    torch.testing.assert_close(summed.real, T * torch.exp(-2 * T), rtol=0, atol=1e-13)


def test_causal() -> None:
    t = torch.tensor([-1.0, 0.0, 1.0, math.nan], dtype=torch.float64)
    value = dlfm.FirstOrder(1.0)(t)
    assert value[:3].tolist() == [0.0, 1.0, math.exp(-1)]
    assert value[3].isnan()


def test_a_number_is_float64_until_the_module_is_cast() -> None:
    g = dlfm.SecondOrder(0.3, 5)
    assert g.damping.dtype == torch.float64
    assert g.damping.item() == 0.3  # kept exactly
    assert g.float()(torch.ones(2)).dtype == torch.float32


def test_learn_fixes_and_bounds_bound() -> None:
    g = dlfm.SecondOrder(0.3, 5.0, learn=False)
    assert not list(g.parameters())
    g = dlfm.SecondOrder(0.3, 5.0, learn={"damping"}, bounds={"damping": (0.1, 1.0)})
    assert [name for name, _ in g.named_parameters()] == ["quantities.damping.raw"]
    with torch.no_grad():
        for parameter in g.parameters():
            parameter.fill_(50.0)
    assert g.damping.item() == pytest.approx(1.0)
    with pytest.raises(dlfm.InputError, match="learn and bounds must name"):
        dlfm.SecondOrder(learn={"dumping"})


def test_a_template_is_copied() -> None:
    template = dlfm.SecondOrder(0.3, 5.0, learn={"damping"})
    copy_ = template.tiled(3, 2)
    assert copy_.poles().shape == (3, 2, 2)
    with torch.no_grad():
        for parameter in copy_.parameters():
            parameter.add_(1.0)
    assert template.damping.item() == 0.3
    assert [name for name, _ in copy_.named_parameters()] == ["quantities.damping.raw"]
    with pytest.raises(dlfm.InputError, match="broadcast"):
        dlfm.FirstOrder(torch.ones(4, 2)).tiled(3, 2)


def test_learning_keeps_an_ode_stable_and_state_travels() -> None:
    g = dlfm.LinearODE([2.0, 2.5, 1.2])
    with torch.no_grad():
        for parameter in g.parameters():
            parameter.normal_(std=3.0)
    assert (g.poles().real > 0).all()
    other = dlfm.LinearODE([1.0, 1.0, 1.0])
    other.load_state_dict(copy.deepcopy(g.state_dict()))
    torch.testing.assert_close(other(T), g(T))


def test_bounds_and_stability_travel_with_the_state() -> None:
    g = dlfm.SecondOrder(0.3, 5.0, bounds={"damping": (0.1, 10.0)})
    other = dlfm.SecondOrder(2.0, 5.0, bounds={"damping": (1.0, 100.0)})
    other.load_state_dict(g.state_dict())
    assert other.damping.item() == pytest.approx(0.3, rel=1e-12)
    with pytest.raises(RuntimeError, match="bounds"):
        dlfm.SecondOrder().load_state_dict(g.state_dict())
    unstable = dlfm.LinearODE([4.0, 1.0])
    unstable.load_state_dict(dlfm.LinearODE([4.0, -1.0]).state_dict())
    assert not unstable.stable


def test_tiling_keeps_bounds_and_values() -> None:
    g = dlfm.FirstOrder(0.3, bounds={"decay": (0.1, 1.0)}).tiled(2, 1)
    with torch.no_grad():
        for parameter in g.parameters():
            parameter.fill_(60.0)
    assert g.value("decay").tolist() == [[pytest.approx(1.0)], [pytest.approx(1.0)]]


def test_residues_of_a_normalised_system() -> None:
    g = dlfm.SecondOrder(1.0, 4.0, normalised=True)
    poles, residues = g.poles_and_residues()
    assert (residues / poles).sum().real.item() == pytest.approx(1.0)  # ∫G


def test_long_lags_of_repeated_poles_on_the_axis() -> None:
    t = torch.tensor([30.0, 3000.0], dtype=torch.float64)
    torch.testing.assert_close(dlfm.LinearODE([0.0, 0.0, 0.0])(t), t**2 / 2)
    t = torch.tensor([1.0, 100.0], dtype=torch.float64)
    exact = (torch.sin(2 * t) - 2 * t * torch.cos(2 * t)) / 16
    torch.testing.assert_close(dlfm.LinearODE([16.0, 0.0, 8.0, 0.0])(t), exact, rtol=0, atol=1e-9)


def test_a_number_takes_the_type_of_its_company() -> None:
    assert dlfm.SecondOrder(torch.tensor([[0.3, 0.4]])).frequency.dtype == torch.float32


def test_batched_linear_ode() -> None:
    rows = torch.tensor([[[2.0, 3.0, 1.0], [6.0, 11.0, 6.0]]], dtype=torch.float64)
    g = dlfm.LinearODE(rows)
    assert g(T[:, None, None]).shape == (13, 1, 2)
    torch.testing.assert_close(g.coefficients, rows)
    torch.testing.assert_close(g(T[:, None, None])[:, 0, 1], dlfm.LinearODE([6.0, 11.0, 6.0])(T))
