"""The best of four kernels: formulas, what the evidence chooses, and what it then predicts."""

import math

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

import deeplfm as dlfm
from deeplfm.paper.baselines.evidence_gp import (
    MATERN,
    MATERN_PERIODIC,
    RBF,
    RBF_PERIODIC,
    BestKernelGP,
)
from deeplfm.paper.datasets.general_series import process

T = np.arange(120.0)


def kind_of(y: NDArray[np.float64], period: float = 0.0) -> int:
    model = BestKernelGP(progress=False, period=period).fit(T, y)
    return round(float(model.fitted_.state["theta"][0, 0]))


def test_kernels_are_those_of_gpytorch() -> None:
    gpytorch = pytest.importorskip("gpytorch")
    lag = torch.linspace(-1, 1, 7, dtype=torch.float64)[:, None]
    zero = torch.zeros(1, 1, dtype=torch.float64)
    rbf, matern = gpytorch.kernels.RBFKernel(), gpytorch.kernels.MaternKernel(nu=1.5)
    waves = gpytorch.kernels.PeriodicKernel()
    rbf.lengthscale = matern.lengthscale = 0.4
    waves.period_length, waves.lengthscale = 0.3, 0.8**2  # GPyTorch does not square it
    for kind, base, wave in (
        (RBF, rbf, 0), (MATERN, matern, 0), (RBF_PERIODIC, rbf, 1), (MATERN_PERIODIC, matern, 1),
    ):  # fmt: skip
        natural = [math.exp(kind), 2.0, 0.4, 0.5, 0.3, 0.8, 0.1]
        theta = torch.tensor(natural, dtype=torch.float64).log()
        found = BestKernelGP()._kernel(theta, lag)
        expected = 2 * base(lag, zero).to_dense() + wave * 0.5 * waves(lag, zero).to_dense()
        np.testing.assert_allclose(found, expected[:, 0].detach(), rtol=1e-5)


def test_the_evidence_chooses() -> None:
    random = np.random.default_rng(0)
    smooth = process("rbf", 0).values[:120, 0]
    rough = random.normal(size=120).cumsum()
    seasonal = rough / 4 + 2 * np.sin(2 * np.pi * T / 12) ** 3 + 0.1 * random.normal(size=120)
    assert kind_of(smooth) in (RBF, RBF_PERIODIC)
    assert kind_of(rough) in (MATERN, MATERN_PERIODIC)
    assert kind_of(seasonal, period=12) == MATERN_PERIODIC
    model = BestKernelGP(period=12, progress=False).fit(T[:100], seasonal[:100])
    error = model.predict(T[100:]) - seasonal[100:]
    assert np.mean(error**2) < 0.5 * seasonal[100:].var()


def test_bad_periods() -> None:
    with pytest.raises(dlfm.InputError, match="period must be 0 or above"):
        BestKernelGP(period=-1.0).fit(T, T)
    with pytest.raises(dlfm.InputError, match="X must have 1 input"):
        BestKernelGP().fit(np.stack([T, T**2], 1), T)
