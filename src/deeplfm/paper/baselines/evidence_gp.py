"""The Gaussian process that a careful user would take: the best of four kernels by evidence.

    k = s² RBF(Δ/ℓ)   or   s² Matérn-3/2(Δ/ℓ),   either also  + p² exp(-2 sin²(πΔ/T)/λ²)

One process per output, each with the kernel that its data prefer.
"""

import math
from typing import final

import torch
from torch import Tensor

from deeplfm.data import Dataset
from deeplfm.errors import InputError
from deeplfm.paper.baselines.base import Task
from deeplfm.paper.baselines.exact_gp import (
    NOISE_BOUNDS,
    PerOutputGP,
    check_series,
    dominant_period,
)
from deeplfm.paper.baselines.registry import baseline

RBF, MATERN, RBF_PERIODIC, MATERN_PERIODIC = range(4)
_SHARES = (0.03, 0.3)  # where lengthscales start, of the range of the times


@final
@baseline("best-gp", "exact GP, best kernel", on=("general",), smoke={"steps": 3})
class BestKernelGP(PerOutputGP):
    """RBF or Matérn-3/2, with or without a periodic part: the evidence chooses.

    steps:  the most steps of L-BFGS per output.
    period: where the period starts, in rows; 0 takes the one that the data show.
    """

    def __init__(
        self,
        steps: int = 60,
        period: float = 0.0,
        seed: int = 0,
        device: str = "auto",
        dtype: str = "float64",
        progress: bool = True,
    ) -> None:
        self.steps = steps
        self.period = period
        self.seed = seed
        self.device = device
        self.dtype = dtype
        self.progress = progress

    def check(self, data: Dataset) -> None:
        super().check(data)
        check_series("BestKernelGP", data)
        if not 0 <= self.period < math.inf:
            raise InputError(f"period must be 0 or above; got {self.period!r}. Pass rows, or 0.")

    def _kernel(self, theta: Tensor, difference: Tensor) -> Tensor:
        """The first number is the kind of kernel; its gradient is 0, so that it stays."""
        kind, lag = round(float(theta[0].detach())), difference[..., 0].abs()
        variance, width, wave, period, shape = theta[1:6].exp().unbind()
        scaled = lag / width
        if kind in (MATERN, MATERN_PERIODIC):
            root = math.sqrt(3) * scaled
            base = variance * (1 + root) * torch.exp(-root)
        else:
            base = variance * torch.exp(-scaled.square() / 2)
        if kind in (RBF, MATERN):
            return base
        swing = 2 * (torch.sin(math.pi * lag / period) / shape).square()
        return base + wave * torch.exp(-swing)

    def _starts(self, task: Task, output: int) -> tuple[Tensor, Tensor]:
        step = float(task.x[:, 0].sort().values.diff().median())
        period = self.period * step or dominant_period(task)
        kinds = (RBF, MATERN, RBF_PERIODIC, MATERN_PERIODIC)
        starts = [
            [math.exp(kind), 0.5, share, 0.5, period, 1.0, 0.1]
            for kind in kinds
            for share in _SHARES
        ]
        bounds = [
            (1.0, math.exp(kinds[-1])),
            (1e-3, 1e3),
            (1e-4, 1e3),
            (1e-4, 1e3),
            (period / 1.2, period * 1.2),
            (0.05, 50.0),
            NOISE_BOUNDS,
        ]
        return torch.tensor(starts).log().to(task.x), torch.tensor(bounds).log().to(task.x)
