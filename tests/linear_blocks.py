"""Small linear SDEs written out by hand, and the covariance of any of them, to test paths with."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

Matrices = Callable[[Tensor], list[list[Any]]]


@dataclass(frozen=True)
class LinearBlock:
    """A block given by the entries of its matrices, each a function of the step."""

    size: int
    phi: Matrices
    noise: Matrices
    covariance: list[list[float]]

    def transition(self, steps: Tensor) -> Tensor:
        return self._stacked(self.phi, steps)

    def diffusion(self, steps: Tensor) -> Tensor:
        return self._stacked(self.noise, steps)

    def start(self) -> Tensor:
        return torch.tensor(self.covariance, dtype=torch.float64)

    def _stacked(self, matrices: Matrices, steps: Tensor) -> Tensor:
        rows = [
            torch.stack([torch.as_tensor(entry).double().expand(steps.shape) for entry in row], -1)
            for row in matrices(steps)
        ]
        return torch.stack(rows, -2)


def ornstein_uhlenbeck(decay: float, variance: float = 1.0) -> LinearBlock:
    """A level that forgets, stationary."""
    return LinearBlock(
        1,
        lambda d: [[(-decay * d).exp()]],
        lambda d: [[-variance * torch.expm1(-2 * decay * d)]],
        [[variance]],
    )


def walk(rate: float = 1.0, start: float = 0.0) -> LinearBlock:
    """A random walk."""
    return LinearBlock(1, lambda d: [[1]], lambda d: [[rate * d]], [[start]])


def integrated_walk(rate: float = 1.0) -> LinearBlock:
    """Position and velocity; noise enters the velocity alone."""
    return LinearBlock(
        2,
        lambda d: [[1, d], [0, 1]],
        lambda d: [[rate * d**3 / 3, rate * d**2 / 2], [rate * d**2 / 2, rate * d]],
        [[0, 0], [0, 0]],
    )


def one_noise_for_two(rate: float = 1.0) -> LinearBlock:
    """A walk, twice itself, and a constant: the noise has rank 1 of 3."""
    return LinearBlock(
        3,
        lambda d: [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
        lambda d: [[rate * d, 2 * rate * d, 0], [2 * rate * d, 4 * rate * d, 0], [0, 0, 0]],
        [[1, 0, 0.5], [0, 1, 0], [0.5, 0, 1]],
    )


def two_levels_of_one_noise(first: float, second: float) -> LinearBlock:
    """dx_i = -λ_i x_i dt + dβ: over short steps both move alike, and x_1 - x_2 has a derivative."""
    rates = (first, second)
    return LinearBlock(
        2,
        lambda d: [[(-first * d).exp(), 0], [0, (-second * d).exp()]],
        lambda d: [[-torch.expm1(-(a + b) * d) / (a + b) for b in rates] for a in rates],
        [[1 / (a + b) for b in rates] for a in rates],
    )


def matern32(rate: float) -> LinearBlock:
    """A smooth stationary force and its derivative; for steps above 1e-3 / rate."""

    def phi(d: Tensor) -> list[list[Any]]:
        x, e = rate * d, (-rate * d).exp()
        return [[e * (1 + x), e * d], [-e * rate * x, e * (1 - x)]]

    def noise(d: Tensor) -> list[list[Any]]:
        x, e2 = rate * d, (-2 * rate * d).exp()
        # The series of 1 - e^{-2x}(1 + 2x + 2x²) where its terms would cancel.
        series = sum((-2 * x) ** k * _factor(k) for k in range(3, 24))
        first = torch.where(x < 0.5, -series, 1 - e2 * (1 + 2 * x + 2 * x**2))
        mixed = 2 * rate * x**2 * e2
        last = rate**2 * (2 * x * e2 * (2 - x) - torch.expm1(-2 * x) - 2 * x * e2)
        return [[first, mixed], [mixed, last]]

    return LinearBlock(2, phi, noise, [[1, 0], [0, rate**2]])


def _factor(k: int) -> float:
    """Coefficient of y^k in e^y (1 - y + y²/2)."""
    from math import factorial

    return 1 / factorial(k) - 1 / factorial(k - 1) + 0.5 / factorial(k - 2)


def side_by_side(*blocks: LinearBlock) -> LinearBlock:
    """Independent blocks as one."""

    def joined(matrices: list[Matrices]) -> Matrices:
        return lambda d: _diagonal([matrix(d) for matrix in matrices])

    return LinearBlock(
        sum(block.size for block in blocks),
        joined([block.phi for block in blocks]),
        joined([block.noise for block in blocks]),
        _diagonal([block.covariance for block in blocks]),
    )


def _diagonal(parts: list[list[list[Any]]]) -> list[list[Any]]:
    size, rows, before = sum(len(part) for part in parts), [], 0
    for part in parts:
        for row in part:
            rows.append([0] * before + list(row) + [0] * (size - before - len(part)))
        before += len(part)
    return rows


def covariance(block: LinearBlock, elapsed: np.ndarray, stationary: bool) -> np.ndarray:
    """cov(w_i(t), w_j(t')) as [M, N, M, N]; what is not stationary holds before the origin."""
    M, N = block.size, len(elapsed)
    result = np.empty((M, N, M, N))
    start = block.start().numpy()
    clipped = elapsed if stationary else np.maximum(elapsed, 0)
    for i, early in enumerate(clipped):
        since = torch.tensor([0.0 if stationary else early], dtype=torch.float64)
        phi, noise = block.transition(since).numpy()[0], block.diffusion(since).numpy()[0]
        here = start if stationary else phi @ start @ phi.T + noise
        for j, late in enumerate(clipped):
            if late >= early:
                step = torch.tensor([late - early], dtype=torch.float64)
                cross = here @ block.transition(step).numpy()[0].T
                result[:, i, :, j] = cross
                result[:, j, :, i] = cross.T
    return result
