"""Levels, walks, trends, and blocks stacked: the textbook's formulas, tiny steps included."""

import math

import mpmath as mp
import pytest
import torch
from hypothesis import given
from torch import Tensor

import deeplfm as dlfm
from deeplfm.statespace import (
    Block,
    DrivenODE,
    IntegratedWalk,
    Level,
    RandomWalk,
    stack_blocks,
)
from ranges import log_uniform


def column(values: list[float]) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


@given(log_uniform(-6, 6), log_uniform(-12, 3))
def test_a_level_is_an_ornstein_uhlenbeck_process(decay: float, length: float) -> None:
    step = length / decay
    transition, diffusion = Level(column([decay])).moves(column([step]))
    with mp.workdps(40):
        exponent = mp.mpf(decay) * mp.mpf(step)
        assert transition.item() == pytest.approx(float(mp.exp(-exponent)), rel=1e-12, abs=1e-300)
        assert diffusion.item() == pytest.approx(float(-mp.expm1(-2 * exponent)), rel=1e-14)


def test_levels_are_independent_and_stationary() -> None:
    block = Level(column([0.1, 2.0, 30.0]))
    transition, diffusion = block.moves(column([0.3, 0.0]))
    P = block.start()
    assert torch.equal(P, torch.eye(3, dtype=torch.float64))
    torch.testing.assert_close(transition @ P @ transition.mT + diffusion, P.expand(2, 3, 3))
    assert torch.equal(transition[1], P)


@given(log_uniform(-6, 6), log_uniform(-9, 6))
def test_a_walk_grows_with_time(rate: float, step: float) -> None:
    block = RandomWalk(column([rate, 2 * rate]))
    transition, diffusion = block.moves(column([step]))
    assert torch.equal(transition[0], torch.eye(2, dtype=torch.float64))
    assert diffusion[0].diagonal().tolist() == pytest.approx([rate * step, 2 * rate * step])
    assert diffusion[0, 0, 1] == 0
    assert not bool(block.start().any())


@given(log_uniform(-6, 6), log_uniform(-9, 6))
def test_a_trend_is_its_integral(rate: float, step: float) -> None:
    """Q_ij = rate ∫ e_i(s) e_j(s) ds: a push s ago has moved the value by s, the slope by 1."""
    block = IntegratedWalk(column([rate, 3 * rate]))
    transition, diffusion = block.moves(column([step]))
    wanted = column([step**3 / 3, step**2 / 2, step**2 / 2, step]).view(2, 2) * rate
    torch.testing.assert_close(diffusion[0, :2, :2], wanted, rtol=1e-14, atol=0)
    torch.testing.assert_close(diffusion[0, 2:, 2:], 3 * wanted, rtol=1e-14, atol=0)
    assert not bool(diffusion[0, :2, 2:].any())
    line = torch.tensor([1.5, -0.2, 0.0, 7.0], dtype=torch.float64)
    moved = transition[0] @ line
    assert moved.tolist() == pytest.approx([1.5 - 0.2 * step, -0.2, 7 * step, 7.0])
    assert (block.values @ moved).tolist() == pytest.approx([1.5 - 0.2 * step, 7 * step])
    assert not bool(block.start().any())


def blocks() -> list[Block]:
    ode = DrivenODE(dlfm.FirstOrder(1.0), torch.ones(1, 1).double(), column([0.5]))
    return [Level(column([0.1, 2.0])), ode, IntegratedWalk(column([0.3])), RandomWalk(column([1]))]


@pytest.mark.parametrize("which", range(4))
def test_two_steps_are_one(which: int) -> None:
    block = blocks()[which]
    transition, diffusion = block.moves(column([0.7, 1.1, 1.8]))
    both = transition[1] @ diffusion[0] @ transition[1].mT + diffusion[1]
    torch.testing.assert_close(both, diffusion[2], rtol=1e-12, atol=1e-15)
    torch.testing.assert_close(transition[1] @ transition[0], transition[2], rtol=1e-12, atol=1e-15)


def test_stacked_blocks_do_not_meet() -> None:
    parts = blocks()
    stacked = stack_blocks(parts)
    steps = column([0.01, 4.0])
    assert stacked.size == 2 + 4 + 2 + 1
    first = 0
    mask = torch.ones(9, 9, dtype=torch.bool)
    for part in parts:
        own = slice(first, first + part.size)
        torch.testing.assert_close(stacked.transition(steps)[:, own, own], part.transition(steps))
        torch.testing.assert_close(stacked.diffusion(steps)[:, own, own], part.diffusion(steps))
        torch.testing.assert_close(stacked.start()[own, own], part.start())
        mask[own, own] = False
        first += part.size
    for whole in (*stacked.moves(steps), stacked.start()):
        assert not bool(whole[..., mask].any())


def test_gradients_in_their_rates() -> None:
    steps = column([1e-6, 0.3, 50.0])

    def values(rates: Tensor) -> Tensor:
        parts = [Level(rates), RandomWalk(rates), IntegratedWalk(rates)]
        return torch.cat([part.flatten() for part in stack_blocks(parts).moves(steps)])

    assert torch.autograd.gradcheck(values, (column([0.4, 3.0]).requires_grad_(),))
    slope = torch.autograd.functional.jacobian(
        lambda decay: Level(decay).diffusion(column([1e-12])).flatten(), column([2.0])
    )
    assert slope.item() == pytest.approx(2e-12 * math.exp(-4e-12), rel=1e-13)


@pytest.mark.usefixtures("without_shape_checks")
def test_bad_input_is_refused() -> None:
    with pytest.raises(dlfm.InputError, match="decay must be above 0"):
        Level(column([0.0]))
    with pytest.raises(dlfm.InputError, match=r"rate must be \[M\]"):
        RandomWalk(column([1.0])[0])
    with pytest.raises(dlfm.InputError, match="steps must be finite"):
        Level(column([1.0])).moves(column([math.nan]))
    with pytest.raises(dlfm.InputError, match="one or more"):
        stack_blocks([])
