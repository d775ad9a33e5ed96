"""ODEs with Matérn forces as a state: covariances by double quadrature, readouts, starts."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import deeplfm as dlfm
from deeplfm.forces import Matern, SquaredExponential
from deeplfm.greens_functions import GreensFunction
from deeplfm.statespace import DrivenODE
from reference.covariance import Greens
from reference.matern import matern, matern_covariance, matern_cross_covariance

ORDERS = [0.5, 1.5, 2.5]
MEMORIES = ["infinite", "zero"]


def column(values: list[float]) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def decaying(rate: float) -> tuple[GreensFunction, Greens]:
    return dlfm.FirstOrder(rate), lambda t: np.exp(-rate * t)


def swinging(damping: float, turn: float) -> tuple[GreensFunction, Greens]:
    """α ± jω: e^{-αt} sin(ωt)/ω."""
    ode = dlfm.SecondOrder(damping, math.hypot(damping, turn))
    return ode, lambda t: np.exp(-damping * t) * np.sin(turn * t) / turn


def creeping(damping: float, root: float) -> tuple[GreensFunction, Greens]:
    """Two real poles α ± d: e^{-αt} sinh(dt)/d."""
    ode = dlfm.SecondOrder(damping, math.sqrt(damping**2 - root**2))
    return ode, lambda t: np.exp(-damping * t) * np.sinh(root * t) / root


def critical(damping: float) -> tuple[GreensFunction, Greens]:
    return dlfm.SecondOrder(damping, damping), lambda t: t * np.exp(-damping * t)


def third_order(a: float, b: float, c: float) -> tuple[GreensFunction, Greens]:
    """(p + a)(p + b)(p + c): partial fractions."""
    ode = dlfm.LinearODE([a * b * c, a * b + a * c + b * c, a + b + c])

    def greens(t: Any) -> Any:
        return (
            np.exp(-a * t) / ((b - a) * (c - a))
            + np.exp(-b * t) / ((a - b) * (c - b))
            + np.exp(-c * t) / ((a - c) * (b - c))
        )

    return ode, greens


def normalised(rate: float) -> tuple[GreensFunction, Greens]:
    return dlfm.FirstOrder(rate, normalised=True), lambda t: rate * np.exp(-rate * t)


rates = st.floats(0.8, 2.5)
# Modules are made in the test: the run-time check of annotations draws random numbers.
systems = st.one_of(
    st.tuples(st.just(decaying), rates),
    st.tuples(st.just(swinging), rates, st.floats(0.3, 3)),
    st.tuples(st.just(creeping), st.just(2.0), st.floats(1e-3, 0.9)),
    st.tuples(st.just(critical), rates),
    st.tuples(st.just(third_order), st.floats(0.9, 1.2), st.floats(1.5, 1.9), st.just(2.4)),
    st.tuples(st.just(normalised), rates),
)


def covariances(block: DrivenODE, early: float, late: float) -> Callable[[Tensor, Tensor], float]:
    """Of any two readouts, the first at a later time than the second."""
    steps = torch.tensor([early, late - early], dtype=torch.float64)
    transition, diffusion = block.moves(steps)
    P = transition[0] @ block.start() @ transition[0].mT + diffusion[0]
    return lambda later, earlier: float((later @ transition[1] @ P @ earlier).detach())


@settings(max_examples=25)
@given(
    systems, systems, st.sampled_from(ORDERS), st.floats(0.5, 2), st.floats(0.1, 2),
    st.floats(0, 2), st.sampled_from(MEMORIES),
)  # fmt: skip
def test_covariances_are_their_double_integrals(
    one: Any, other: Any, order: float, ell: float, early: float, lag: float, memory: Any
) -> None:
    (ode, g), (ode2, g2) = (make(*arguments) for make, *arguments in (one, other))
    S = torch.tensor([[1.3], [-0.7]], dtype=torch.float64)
    block = DrivenODE([ode, ode2], S, column([ell]), force=Matern(order), memory=memory)
    x2, x = early, early + lag
    past = 0.0 if memory == "zero" else x - 45.0  # slowest pole 0.8: e^{-36}
    covariance = covariances(block, x2, x)
    f, f2, u = block.outputs[0], block.outputs[1], block.forces[0]
    scale = 1.3 * 0.7
    truth = -scale * matern_covariance(x, x2, g, g2, ell, order, past)
    size = scale * math.sqrt(
        matern_covariance(x, x, g, g, ell, order, past)
        * matern_covariance(x2, x2, g2, g2, ell, order, past)
    )
    assert covariance(f, f2) == pytest.approx(truth, rel=1e-9, abs=1e-10 * size)
    truth = 1.3 * matern_cross_covariance(x, x2, g, ell, order, past)
    assert covariance(f, u) == pytest.approx(truth, rel=1e-9, abs=1e-10)
    truth = -0.7 * matern_cross_covariance(x2, x, g2, ell, order, past)  # u later than f
    assert covariance(u, f2) == pytest.approx(truth, rel=1e-9, abs=1e-10)
    assert covariance(u, u) == pytest.approx(float(matern(lag / ell, order)), rel=1e-12)


@pytest.mark.parametrize("order", ORDERS)
def test_two_forces_add_up_and_an_output_may_be_the_force(order: float) -> None:
    S = torch.tensor([[0.6, -1.1], [0.4, 0.9]], dtype=torch.float64)
    block = DrivenODE(
        [dlfm.NoDynamics(), dlfm.FirstOrder(1.2)], S, column([0.5, 1.5]), force=Matern(order)
    )
    covariance = covariances(block, 0.0, 0.8)
    shares = [float(matern(0.8 / ell, order)) for ell in (0.5, 1.5)]
    plain, driven = block.outputs
    assert covariance(plain, plain) == pytest.approx(0.36 * shares[0] + 1.21 * shares[1])
    assert covariance(block.forces[0], block.forces[1]) == 0
    greens = decaying(1.2)[1]
    truth = sum(
        a**2 * matern_covariance(0.8, 0.0, greens, greens, ell, order, -40)
        for a, ell in ((0.4, 0.5), (0.9, 1.5))
    )
    assert covariance(driven, driven) == pytest.approx(truth, rel=1e-10)


@pytest.mark.parametrize("kind", ["first", "second", "third"])
def test_one_template_is_a_list_of_its_rows(kind: str) -> None:
    rows = column([0.7, 1.9])[:, None]
    together: GreensFunction
    apart: list[GreensFunction]
    if kind == "first":
        together, apart = dlfm.FirstOrder(rows), [dlfm.FirstOrder(0.7), dlfm.FirstOrder(1.9)]
    elif kind == "second":
        together = dlfm.SecondOrder(rows, 2 * rows)
        apart = [dlfm.SecondOrder(0.7, 1.4), dlfm.SecondOrder(1.9, 3.8)]
    else:
        table = torch.tensor([[[6.0, 11.0, 6.0]], [[1.0, 3.0, 3.5]]], dtype=torch.float64)
        together, apart = dlfm.LinearODE(table), [dlfm.LinearODE(row[0]) for row in table]
    S = torch.tensor([[1.0, 0.3], [0.2, -2.0]], dtype=torch.float64)
    ell = column([0.4, 3.0])
    one, other = DrivenODE(together, S, ell), DrivenODE(apart, S, ell)
    torch.testing.assert_close(one.feedback, other.feedback, rtol=1e-14, atol=0)
    torch.testing.assert_close(one.outputs, other.outputs, rtol=1e-14, atol=0)
    torch.testing.assert_close(one.start(), other.start(), rtol=1e-12, atol=1e-14)


def test_one_ode_of_numbers_serves_every_output() -> None:
    S = torch.ones(3, 1, dtype=torch.float64)
    block = DrivenODE(dlfm.FirstOrder(2.0), S, column([1.0]))
    assert block.size == 3 + 3
    assert block.outputs.shape == (3, 6)
    variance = (block.outputs @ block.start() @ block.outputs.mT).diagonal()
    assert variance.tolist() == pytest.approx([variance[0].item()] * 3, rel=1e-14)


@pytest.mark.parametrize("memory", MEMORIES)
def test_where_it_starts(memory: Any) -> None:
    block = DrivenODE(
        dlfm.SecondOrder(0.3, 2.0), torch.ones(1, 1).double(), column([0.7]), memory=memory
    )
    P = block.start().detach()
    residual = (
        block.feedback @ P + P @ block.feedback.mT + block.noise * block.density @ block.noise.mT
    )
    size = 3 if memory == "zero" else 5  # with infinite memory F P + P Fᵀ + L q Lᵀ = 0
    assert residual[:size, :size].abs().max() <= 1e-14 * block.feedback.abs().max()
    assert bool((P[3:] == 0).all()) == (memory == "zero")
    assert float((block.forces @ P @ block.forces.mT).squeeze()) == pytest.approx(1, rel=1e-14)


def test_units_of_time_do_not_matter() -> None:
    """Lengthscales and time constants from 1e-6 to 1e6: the same numbers in other units."""
    S = torch.tensor([[1.0, -0.4]], dtype=torch.float64)
    wanted = None
    for unit in (1.0, 1e-6, 1e6):
        block = DrivenODE(
            dlfm.SecondOrder(0.3 / unit, 2.0 / unit, normalised=True), S, column([0.7, 3.0]) * unit
        )
        moves = block.moves(column([1e-3, 0.4, 900.0]) * unit)
        found = torch.cat([block.start()[None], *moves]).detach()
        wanted = found if wanted is None else wanted
        assert block.start().diagonal().min() > 1e-3
        torch.testing.assert_close(found, wanted, rtol=1e-9, atol=1e-14)


@pytest.mark.usefixtures("without_shape_checks")
def test_what_is_no_state_is_refused() -> None:
    S, ell = torch.ones(1, 1, dtype=torch.float64), column([1.0])
    with pytest.raises(dlfm.InputError, match="needs a stable ODE"):
        DrivenODE(dlfm.LinearODE([1.0, -0.1]), S, ell)
    with pytest.raises(dlfm.InputError, match="must be Markov"):
        DrivenODE(dlfm.FirstOrder(1.0), S, ell, force=SquaredExponential())
    with pytest.raises(dlfm.InputError, match=r"lengthscale must be \[1\]"):
        DrivenODE(dlfm.FirstOrder(1.0), S, column([1.0, 2.0]))
    with pytest.raises(dlfm.InputError, match="lengthscale must be above 0"):
        DrivenODE(dlfm.FirstOrder(1.0), S, column([-1.0]))
    with pytest.raises(dlfm.InputError, match="one per output"):
        DrivenODE([dlfm.FirstOrder(1.0)] * 2, S, ell)
    with pytest.raises(dlfm.InputError, match=r"numbers or \[D, 1\]"):
        DrivenODE(dlfm.FirstOrder(torch.ones(1, 2).double()), S, ell)
    with pytest.raises(dlfm.InputError, match=r"numbers or \[1, 1\]"):
        DrivenODE(dlfm.FirstOrder(torch.ones(2, 1).double()), S, ell)
    with pytest.raises(dlfm.InputError, match="steps must be 0 or above"):
        DrivenODE(dlfm.FirstOrder(1.0), S, ell).moves(column([0.1, -0.1]))
    with pytest.raises(dlfm.InputError, match="memory must be one of"):
        DrivenODE(dlfm.FirstOrder(1.0), S, ell, memory="none")  # type: ignore[arg-type]
