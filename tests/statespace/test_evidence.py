"""Blocks through the filter: the evidence is that of the dense Gaussian process, gradients too."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor

import deeplfm as dlfm
from deeplfm.forces import Matern
from deeplfm.greens_functions import FixedDynamics, Linear, Quadratic
from deeplfm.statespace import DrivenODE, Level, stack_blocks
from deeplfm.sums.markov_evidence import markov_evidence

NOISE = 0.05
GENERATOR = torch.Generator().manual_seed(3)
TIMES = torch.rand(40, generator=GENERATOR, dtype=torch.float64).mul(6).sort().values
TARGETS = torch.randn(40, 2, generator=GENERATOR, dtype=torch.float64)
OBSERVED = torch.rand(40, 2, generator=GENERATOR) < 0.7


def model(raw: Tensor, memory: Any) -> tuple[DrivenODE, Level]:
    """A decay and an oscillator that share a force, and a level of their own."""
    decay, damping, frequency, ell, slow = raw.exp()
    discriminant = (damping - frequency) * (damping + frequency)
    odes = [
        FixedDynamics((Linear(decay),), normalised=False, stable=True),
        FixedDynamics((Quadratic(damping, discriminant, frequency**2),), True, True),
    ]
    S = torch.tensor([[1.0], [-0.8]], dtype=torch.float64)
    driven = DrivenODE(odes, S, ell[None], force=Matern(2.5), memory=memory)
    return driven, Level(slow[None])


def by_filter(raw: Tensor, memory: Any, form: Any) -> Tensor:
    """-½ (log det + quadratic form + n log 2π) of the observed entries."""
    driven, level = model(raw, memory)
    block = stack_blocks([driven, level])
    steps, which = torch.unique(TIMES.diff(), return_inverse=True)
    transition, diffusion = block.moves(steps)
    loadings = torch.cat([driven.outputs, torch.full((2, 1), 0.3, dtype=torch.float64)], dim=1)
    none = torch.zeros(len(steps), 0, dtype=torch.float64)
    step = torch.cat([which.new_zeros(1), which]).to(torch.int32)[None]
    noise = torch.full((1, 1, 2), NOISE, dtype=torch.float64)
    log_det, gram = markov_evidence.by(
        form, none, none, transition, diffusion, block.start(), loadings, noise,
        TARGETS[None, :, :, None], step, OBSERVED[None],
    )  # fmt: skip
    count = int(OBSERVED.sum())
    return -0.5 * (log_det[0] + gram[0, 0, 0] + count * math.log(2 * math.pi))


def by_dense_matrix(raw: Tensor, memory: Any) -> Tensor:
    """The same with one covariance matrix of all entries, from Φ between every two times."""
    driven, level = model(raw, memory)
    begin = driven.moves(TIMES - TIMES[0])
    P = begin.transition @ driven.start() @ begin.transition.mT + begin.diffusion
    lags = TIMES[:, None] - TIMES
    later = driven.transition(lags.clamp(min=0).flatten()).view(40, 40, *P.shape[1:])
    half = driven.outputs @ later @ P @ driven.outputs.mT  # [later, earlier, D, D]
    joint = torch.where((lags >= 0)[..., None, None], half, half.transpose(0, 1).mT)
    joint = joint + 0.09 * torch.exp(-level.decay * lags.abs())[..., None, None]
    matrix = joint.transpose(1, 2).reshape(80, 80) + NOISE * torch.eye(80, dtype=torch.float64)
    chosen = OBSERVED.flatten()
    law = torch.distributions.MultivariateNormal(
        torch.zeros(int(chosen.sum()), dtype=torch.float64), matrix[chosen][:, chosen]
    )
    density: Tensor = law.log_prob(TARGETS.flatten()[chosen])
    return density


@pytest.mark.parametrize("form", ["plain", "auto"])
@pytest.mark.parametrize("memory", ["infinite", "zero"])
def test_the_evidence_is_that_of_the_dense_process(memory: Any, form: str) -> None:
    raw = torch.tensor([1.2, 0.4, 3.0, 0.8, 0.1], dtype=torch.float64).log().requires_grad_()
    found, exact = by_filter(raw, memory, form), by_dense_matrix(raw, memory)
    torch.testing.assert_close(found, exact, rtol=1e-10, atol=0)
    (slope,) = torch.autograd.grad(found, raw)
    (wanted,) = torch.autograd.grad(exact, raw)
    torch.testing.assert_close(slope, wanted, rtol=1e-8, atol=1e-9)


def test_no_dynamics_is_an_ordinary_process() -> None:
    """Values of a Matérn force seen directly have the textbook's covariance."""
    ones = torch.ones(1, 1, dtype=torch.float64)
    block = DrivenODE(dlfm.NoDynamics(), ones, ones[0] * 0.7)
    lags = TIMES - TIMES[0]
    covariance = block.outputs @ block.transition(lags) @ block.start() @ block.outputs.mT
    wanted = Matern(2.5).correlation((lags / 0.7) ** 2)
    torch.testing.assert_close(covariance[:, 0, 0], wanted, rtol=1e-12, atol=1e-14)
