"""Steps of any length and stiffness: matrix exponentials and Lyapunov's equation in mpmath."""

import itertools
import math
from typing import Any

import mpmath as mp
import pytest
import torch
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from torch import Tensor

import deeplfm as dlfm
from deeplfm.forces import Matern
from deeplfm.greens_functions import FixedDynamics, GreensFunction, Linear, Quadratic
from deeplfm.statespace import DrivenODE
from deeplfm.statespace.triangular import pair_exponential
from ranges import log_uniform

EPS = 2.0**-52
DIGITS = 340  # Q of five states over 1e-18 of their time scale is 1e-160 of P
kinds = st.sampled_from(["first", "swinging", "critical", "creeping", "third"])


def column(values: list[float]) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def block_of(kind: str, rate: float, ratio: float, ell: float, order: float) -> DrivenODE:
    """One output, one force; `rate` is the ODE's fastest or its turn, `ratio` below 1 its next."""
    ode: GreensFunction
    if kind == "first":
        ode = dlfm.FirstOrder(rate)
    elif kind == "third":
        ode = dlfm.LinearODE([rate**3 / 2, rate**2, 1.7 * rate])
    else:
        damping = {"swinging": ratio * rate, "critical": rate, "creeping": rate / ratio}[kind]
        ode = dlfm.SecondOrder(damping, rate)
    ode.requires_grad_(False)
    S, lengthscale = torch.ones(1, 1).double(), column([ell])
    return DrivenODE(ode, S, lengthscale, force=Matern(order))


def exact(block: DrivenODE, step: float) -> tuple[Any, Any]:
    """Φ = e^{Fh}, and Q = P - ΦPΦᵀ with FP + PFᵀ = -LLᵀ, all in so many digits that it holds."""
    F = mp.matrix(block.feedback.tolist())
    M = F.rows
    L = mp.matrix(block.system.noise.tolist())
    W = L * L.T
    index = [(i, j) for i in range(M) for j in range(i + 1)]
    number = {pair: k for k, pair in enumerate(index)}
    A, b = mp.matrix(len(index), len(index)), mp.matrix(len(index), 1)
    for k, (i, j) in enumerate(index):
        for m in range(M):
            A[k, number[max(m, j), min(m, j)]] += F[i, m]
            A[k, number[max(i, m), min(i, m)]] += F[j, m]
        b[k] = -W[i, j]
    solved = mp.lu_solve(A, b)
    P = mp.matrix(M, M)
    for (i, j), k in number.items():
        P[i, j] = P[j, i] = solved[k]
    transition = mp.expm(F * mp.mpf(step))
    return transition, P - transition * P * transition.T


@settings(max_examples=60)
@given(
    kinds, log_uniform(-6, 6), log_uniform(-3, -0.1), log_uniform(-6, 6),
    st.sampled_from([0.5, 1.5, 2.5]), log_uniform(-9, 6), st.booleans(),
)  # fmt: skip
@example("swinging", 1.0, 0.1, 1.0, 2.5, 1e-3, True)
@example("swinging", 1e6, 1e-3, 1e6, 2.5, 1e-9, True)
@example("creeping", 1e-6, 1e-3, 1e-6, 2.5, 1e6, True)
@example("third", 1e6, 1e-3, 1e6, 2.5, 1e6, False)
def test_a_step_is_exact_whatever_its_length(
    kind: str, rate: float, ratio: float, ell: float, order: float, length: float, of_force: bool
) -> None:
    block = block_of(kind, rate, ratio, ell, order)
    step = length * (ell if of_force else 1 / rate)
    cycles = float(block.feedback.abs().max()) * step
    transition, diffusion = (one[0].detach() for one in block.moves(column([step])))
    position = positions(block)
    with mp.workdps(DIGITS):
        Phi, Q = exact(block, step)
        scale = [math.sqrt(block.start()[i, i].item()) for i in position]
        # F is rounded, so a pole turns by cycles·EPS more or less; a decayed one does not matter.
        tolerance = 1e-13 + 4 * EPS * min(cycles, 1e9)
        for i, j in itertools.product(range(block.size), repeat=2):
            error = abs(transition[i, j].item() - Phi[i, j])
            assert error <= tolerance * (abs(Phi[i, j]) + scale[i] / scale[j]), (i, j)
        # A velocity is a difference of positions, exact to their rounding; all else to its own.
        rounding = [tolerance * mp.sqrt(Q[i, i]) for i in range(block.size)]
        for i, k in enumerate(position):
            rounding[i] += (i != k) * 8 * EPS * mp.sqrt(Q[k, k])
            assert diffusion[i, i].item() > 0
        for i, j in itertools.product(range(block.size), repeat=2):
            error = abs(diffusion[i, j].item() - Q[i, j])
            allowed = rounding[i] * mp.sqrt(Q[j, j]) + rounding[j] * mp.sqrt(Q[i, i])
            assert error <= allowed + rounding[i] * rounding[j], (i, j)


def positions(block: DrivenODE) -> list[int]:
    """Of every state itself, or the position whose velocity it is."""
    found = list(range(block.size))
    for first in block.system.pairs:
        found[first + 1] = first
    return found


@settings(max_examples=60)
@given(
    kinds, log_uniform(-6, 6), log_uniform(-3, -0.1), log_uniform(-6, 6),
    st.sampled_from([0.5, 1.5, 2.5]), log_uniform(-9, 6), log_uniform(-4, 0),
)  # fmt: skip
def test_two_steps_are_one(
    kind: str, rate: float, ratio: float, ell: float, order: float, length: float, share: float
) -> None:
    block = block_of(kind, rate, ratio, ell, order)
    whole = length * ell
    first = whole * share / (1 + share)
    second = whole - first
    assume(float(block.feedback.abs().max()) * whole < 1e9)
    transition, diffusion = block.moves(column([whole, first, second]))
    spread = diffusion[0].diagonal().sqrt()
    spread = torch.maximum(spread, 1e-5 * spread[positions(block)])
    both = transition[2] @ diffusion[1] @ transition[2].mT + diffusion[2]
    error = (both - diffusion[0]).abs() / (spread[:, None] * spread)
    cycles = float(block.feedback.abs().max()) * whole
    assert float(error.max()) <= 1e-10 + 1e-15 * cycles
    scale = block.start().diagonal().sqrt()[positions(block)]
    error = (transition[2] @ transition[1] - transition[0]).abs() / (scale[:, None] / scale)
    assert float(error.max()) <= 1e-12 + 1e-15 * cycles
    # Positive semi-definite: correlations have no eigenvalue below 0 but by rounding.
    for one, own in zip(diffusion, diffusion.diagonal(dim1=1, dim2=2).sqrt(), strict=True):
        assert torch.equal(one, one.mT)
        smallest = torch.linalg.eigvalsh(one / (own[:, None] * own)).min()
        assert float(smallest) >= -1e-14 * block.size


def test_steps_of_many_lengths_are_those_of_each_alone() -> None:
    block = block_of("swinging", 2.0, 0.1, 0.7, 2.5)
    steps = column([3.0, 0.0, 1e-6, 500.0, 0.2, 3.0, 1e4])
    together = block.moves(steps)
    for i, step in enumerate(steps):
        for found, alone in zip(together, block.moves(step[None]), strict=True):
            torch.testing.assert_close(found[i], alone[0], rtol=1e-13, atol=1e-16)
    assert torch.equal(together.transition[1], torch.eye(5).double())
    assert not bool(together.diffusion[1].any())
    assert together.transition[6].abs().max() == 0
    torch.testing.assert_close(together.diffusion[6], block.start(), rtol=1e-13, atol=1e-15)
    assert block.moves(steps[:0]).transition.shape == (0, 5, 5)


def test_the_naive_form_fails_where_this_one_holds() -> None:
    """P - ΦPΦᵀ in floating point has no digit left at 1e-3 of a time scale, or a wrong sign."""
    block = block_of("first", 1.0, 0.5, 1.0, 2.5)
    transition, diffusion = block.moves(column([1e-3]))
    P = block.start()
    naive = (P - transition[0] @ P @ transition[0].mT).diagonal()
    assert float((naive / diffusion[0].diagonal() - 1).abs().max()) > 0.1


def log_moves(block: DrivenODE, step: float) -> Tensor:
    """Numbers of size 1: Φ and P in units of standard deviations, and the logarithm of diag Q."""
    transition, diffusion = block.moves(column([step]))
    P = block.start()
    unit = P.diagonal().sqrt()
    parts = [transition[0] * unit / unit[:, None], P / (unit[:, None] * unit)]
    own = diffusion[0].diagonal()
    correlation = diffusion[0] / (own[:, None] * own).sqrt()
    return torch.cat([*(part.flatten() for part in parts), own.log(), correlation.flatten()])


@pytest.mark.parametrize("memory", ["infinite", "zero"])
@pytest.mark.parametrize("step", [1e-6, 0.3, 40.0])
@pytest.mark.parametrize("kind", ["first", "swinging", "critical", "creeping", "third"])
def test_gradients_in_all_parameters(kind: str, step: float, memory: Any) -> None:
    """By the logarithm of each parameter, with central differences."""

    def values(logarithms: Tensor) -> Tensor:
        a, b, ell, ell2 = logarithms[:4].exp()
        factors: tuple[Linear | Quadratic, ...] = (Linear(a),)
        if kind != "first":
            quadratic = Quadratic(b, (b - a) * (b + a), a**2)
            factors = (quadratic,) if kind != "third" else (Linear(a), quadratic)
        ode = FixedDynamics(factors, normalised=False, stable=True)
        S = torch.stack([logarithms[4:6], 2 * logarithms[5:7]])
        block = DrivenODE(ode, S, torch.stack([ell, ell2]), force=Matern(1.5), memory=memory)
        outputs = (block.outputs @ block.start() @ block.outputs.mT).flatten()
        if memory == "zero":
            return torch.cat([block.start().flatten(), block.outputs.flatten()])
        return torch.cat([log_moves(block, step), outputs])

    b = {"first": 1.0, "swinging": 0.3, "critical": 1.3, "creeping": 4.0, "third": 0.5}[kind]
    point = column([1.3, b, 0.7, 3.0]).log()
    point = torch.cat([point, column([1.1, -0.6, 0.8])]).requires_grad_()
    assert torch.autograd.gradcheck(
        values, (point,), eps=1e-5, atol=1e-6, rtol=1e-6, fast_mode=True
    )


@settings(max_examples=60)
@given(
    st.sampled_from(["first", "second", "third"]), log_uniform(-6, 6), log_uniform(-2, 2),
    log_uniform(-6, 6), log_uniform(-9, 6),
)  # fmt: skip
def test_gradients_know_that_units_of_time_do_not_matter(
    kind: str, rate: float, ratio: float, ell: float, length: float
) -> None:
    """Euler: Σ over rates of ∂/∂log rate equals Σ over times of ∂/∂log time, stiff or not."""
    logarithms = column([rate, rate * ratio, ell, length * ell]).log().requires_grad_()
    a, b, lengthscale, step = logarithms.exp()
    factors: tuple[Linear | Quadratic, ...] = (Linear(a),)
    if kind != "first":
        quadratic = Quadratic(b, (b - a) * (b + a), a**2)
        factors = (quadratic,) if kind == "second" else (Linear(b), quadratic)
    ode = FixedDynamics(factors, normalised=True, stable=True)
    block = DrivenODE(ode, torch.ones(1, 1).double(), lengthscale[None])
    own, P = block.diffusion(step[None])[0].diagonal(), block.start().diagonal()
    kept = [i for i, k in enumerate(positions(block)) if i == k]  # not velocities, see above
    for value in (*own.log()[kept], *P.log()[kept]):
        (slope,) = torch.autograd.grad(value, logarithms, retain_graph=True)
        assert bool(slope.isfinite().all())
        assert float(slope.abs().max()) < 30  # a power of no more than 2 · 6 + 1 in each of two
        difference = slope[0] + slope[1] - slope[2] - slope[3]
        assert abs(float(difference)) <= 1e-9 * (1 + float(slope.abs().max()))


@given(log_uniform(-6, 6), st.floats(-1, 1), log_uniform(-6, 3))
@settings(max_examples=200)
def test_a_pair_is_its_exponential(frequency: float, closeness: float, length: float) -> None:
    """Swinging, creeping and all that lies close to critical, with the exact matrix as it is."""
    damping = frequency * 10 ** (4 * closeness**3)
    step = length / frequency
    q = (damping - frequency) * (damping + frequency)
    tensors = (column([one]) for one in (step, damping, q, frequency))
    found = pair_exponential(*tensors)[0, 0]
    with mp.workdps(80):
        a, w, h = mp.mpf(damping), mp.mpf(frequency), mp.mpf(step)
        F = mp.matrix([[0, w], [-w, -2 * a]])
        truth = mp.expm(F * h)
        for i in range(2):
            for j in range(2):
                # The discriminant is rounded: relative errors grow with the phase.
                size = max(abs(truth[i, 0]), abs(truth[i, 1]))
                allowed = 1e-14 + 8 * EPS * length * (1 + damping / frequency)
                error = abs(found[i, j].item() - truth[i, j])
                assert error <= allowed * size + mp.mpf(10) ** -60
