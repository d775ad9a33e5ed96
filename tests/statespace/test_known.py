"""Known inputs: against quadrature piece by piece, and in limits that have a formula."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import deeplfm as dlfm
from deeplfm.greens_functions import Dynamics, FixedDynamics, GreensFunction, Linear, Quadratic
from deeplfm.statespace import known_response

NODES, WEIGHTS = np.polynomial.legendre.leggauss(40)
HOLDS = ["constant", "linear"]


def column(values: Any) -> Tensor:
    return torch.as_tensor(np.asarray(values), dtype=torch.float64)


def integral(ode: Dynamics, times: Any, values: Any, t: float, hold: str, memory: str) -> float:
    """∫ G(t - τ) c(τ) dτ, 40 nodes between two samples, and the past before the first by ∫G."""
    ends = [*[s for s in times if s < t], t]
    total = 0.0
    for k in range(len(ends) - 1):
        low, high = ends[k], ends[k + 1]
        tau = low + (high - low) * (NODES + 1) / 2
        c = np.full_like(tau, values[k])
        if hold == "linear" and k + 1 < len(times):
            c += (values[k + 1] - values[k]) * (tau - low) / (times[k + 1] - low)
        G = ode.impulse_response(column(t - tau)).detach().numpy()
        total += float((WEIGHTS * c * G).sum() * (high - low) / 2)
    if memory == "infinite":
        lag = (NODES + 1) / 2 * max(t - times[0], 0)
        recent = ode.impulse_response(column(lag)).detach().numpy()
        all_of_it = float(ode.transfer(torch.zeros(1, dtype=torch.float64)).detach())
        total += values[0] * (
            all_of_it - float((WEIGHTS * recent).sum() * max(t - times[0], 0) / 2)
        )
    return total


def systems() -> list[GreensFunction]:
    return [
        dlfm.FirstOrder(0.9),
        dlfm.SecondOrder(0.3, 2.0),
        dlfm.SecondOrder(1.2, 1.2),
        dlfm.SecondOrder(3.0, 1.0, normalised=True),
        dlfm.LinearODE([1.0, 2.2, 2.9, 1.8]),
    ]


@settings(max_examples=40)
@given(
    st.lists(st.tuples(st.floats(0.05, 1.0), st.floats(-2, 2)), min_size=1, max_size=8),
    st.lists(st.floats(-1, 9), min_size=1, max_size=6),
    st.sampled_from(HOLDS), st.sampled_from(["infinite", "zero"]),
)  # fmt: skip
def test_the_answer_is_its_integral(
    samples: list[tuple[float, float]], query: list[float], hold: Any, memory: Any
) -> None:
    times = np.cumsum([gap for gap, _ in samples]) - 0.3
    values = np.array([value for _, value in samples])
    inputs = np.stack([values, values[::-1] + 1], axis=1)
    odes = systems()
    found = known_response(odes, column(times), column(inputs), column(query), hold, memory)
    assert found.shape == (len(query), len(odes), 2)
    for i, t in enumerate(query):
        for d, ode in enumerate(odes):
            for c in range(2):
                truth = integral(ode, times, inputs[:, c], t, hold, memory)
                assert found[i, d, c].item() == pytest.approx(truth, rel=1e-9, abs=1e-9)


def test_no_dynamics_is_the_input_itself() -> None:
    times, values = column([0.0, 1.0, 3.0]), column([[2.0], [4.0], [0.0]])
    query = column([-1.0, 0.0, 0.5, 1.0, 2.0, 3.0, 9.0])
    still = known_response(dlfm.NoDynamics(), times, values, query, "constant")
    assert still[:, 0, 0].tolist() == [2.0, 2.0, 2.0, 4.0, 4.0, 0.0, 0.0]
    ramp = known_response(dlfm.NoDynamics(), times, values, query, "linear")
    assert ramp[:, 0, 0].tolist() == [2.0, 2.0, 3.0, 4.0, 2.0, 0.0, 0.0]


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("hold", HOLDS)
def test_a_quick_ode_follows_and_a_slow_one_counts(hold: Any, unit: float) -> None:
    """Rates of 1e9 and 1e-9 per sample: c/γ at once, and the integral of c."""
    times = column([0.0, 1.0, 2.0, 3.0]) * unit
    values = column([[1.0], [-2.0], [4.0], [0.5]])
    quick, slow = 1e9 / unit, 1e-9 / unit
    found = known_response(
        [dlfm.FirstOrder(quick), dlfm.FirstOrder(slow)], times, values, times, hold, "zero"
    )
    # The sample of the same time has just begun: what came before it still stands.
    wanted = [0.0, 1.0, -2.0, 4.0] if hold == "constant" else [0.0, -2.0, 4.0, 0.5]
    assert (found[:, 0, 0] * quick).tolist() == pytest.approx(wanted, rel=1e-8)
    steps = [1.0, -2.0, 4.0] if hold == "constant" else [-0.5, 1.0, 2.25]
    counted = np.cumsum([0.0, *steps]) * unit
    assert found[:, 1, 0].tolist() == pytest.approx(counted.tolist(), rel=1e-8, abs=1e-300)


def test_a_constant_input_of_old_gives_the_steady_state() -> None:
    values = torch.full((5, 1), 3.0, dtype=torch.float64)
    odes = [dlfm.FirstOrder(0.5), dlfm.SecondOrder(0.1, 2.0), dlfm.FirstOrder(7.0, normalised=True)]
    times, query = column([0.0, 1.0, 2.0, 3.0, 4.0]), column([-5.0, 0.3, 40.0])
    found = known_response(odes, times, values, query)
    for row in found[:, :, 0].tolist():
        assert row == pytest.approx([6.0, 0.75, 3.0], rel=1e-13)
    at_rest = known_response(odes, times, values, query, memory="zero")
    assert not bool(at_rest[0].any())
    assert at_rest[1, 0, 0].item() == pytest.approx(6 * -math.expm1(-0.15), rel=1e-13)


def test_a_long_record_is_the_loop_over_it() -> None:
    """Uneven times, first order: y_{n+1} = e^{-γΔ} y_n + (1 - e^{-γΔ}) c_n / γ."""
    generator = np.random.default_rng(0)
    gaps = generator.exponential(0.01, 30_000)
    times, c = np.cumsum(gaps), generator.standard_normal(30_000)
    ode = dlfm.FirstOrder(2.0).requires_grad_(False)
    found = known_response(ode, column(times), column(c)[:, None], column(times), memory="zero")
    y, wanted = 0.0, [0.0]
    for gap, held in zip(gaps[1:], c[:-1], strict=True):
        y = math.exp(-2 * gap) * y - math.expm1(-2 * gap) * held / 2
        wanted.append(y)
    np.testing.assert_allclose(found[:, 0, 0].numpy(), wanted, rtol=0, atol=1e-12)


@pytest.mark.parametrize("hold", HOLDS)
@pytest.mark.parametrize("memory", ["infinite", "zero"])
def test_gradients_in_the_ode_and_in_the_values(hold: Any, memory: Any) -> None:
    times, query = column([0.0, 0.4, 1.5, 1.6]), column([-0.5, 0.2, 1.55, 4.0])

    def answer(numbers: Tensor, values: Tensor) -> Tensor:
        a, b = numbers
        factors = (Linear(a), Quadratic(b, (b - a) * (b + a), a**2))
        ode = FixedDynamics(factors, normalised=False, stable=True)
        return known_response(ode, times, values, query, hold, memory)

    numbers = column([1.3, 0.4]).requires_grad_()
    values = column([[1.0, 0.3], [-2.0, 0.1], [0.5, 2.0], [1.5, 1.0]]).requires_grad_()
    assert torch.autograd.gradcheck(answer, (numbers, values))


@pytest.mark.usefixtures("without_shape_checks")
def test_bad_input_is_refused() -> None:
    ode, times, values = dlfm.FirstOrder(1.0), column([0.0, 1.0]), column([[1.0], [2.0]])
    with pytest.raises(dlfm.InputError, match="times of known inputs must rise"):
        known_response(ode, times.flip(0), values, times)
    with pytest.raises(dlfm.InputError, match=r"values must be \[2, C\]"):
        known_response(ode, times, values[:1], times)
    with pytest.raises(dlfm.InputError, match="values must be finite"):
        known_response(ode, times, values * math.nan, times)
    with pytest.raises(dlfm.InputError, match="one sample or more"):
        known_response(ode, times[:0], values[:0], times)
    with pytest.raises(dlfm.InputError, match="hold must be one of"):
        known_response(ode, times, values, times, hold="spline")  # type: ignore[arg-type]
    with pytest.raises(dlfm.InputError, match="needs a stable ODE"):
        known_response(dlfm.LinearODE([0.0, 1.0]), times, values, times)
    assert known_response(ode, times, values, times[:0]).shape == (0, 1, 1)
