"""Exact Gaussian processes, one per output, each over the rows where it was observed.

ExactGP    k = s² exp(-½ Σ_p (Δ_p/ℓ_p)²)
PeriodicGP k = s² exp(-2 sin²(πΔ/T)/λ² - ½ (Δ/ℓ)²) + r² exp(-½ (Δ/κ)²), for a series

The hyperparameters maximise the evidence, from a few starts.
"""

import math
from abc import abstractmethod
from typing import final

import numpy as np
import torch
from torch import Tensor

from deeplfm.data import Dataset
from deeplfm.errors import InputError
from deeplfm.models.starts.oscillation import dominant_oscillation
from deeplfm.models.starts.spectrum import enough, periodogram
from deeplfm.paper.baselines.base import Baseline, Mixture, State, Task
from deeplfm.paper.baselines.evidence import (
    Posterior,
    distinct_lags,
    minimise,
    negative_log_evidence,
)
from deeplfm.paper.baselines.history import History
from deeplfm.paper.baselines.registry import baseline
from deeplfm.shapes import check_count

MOST_ROWS = 10_000  # a covariance of 800 MB
_CHUNK = 2**24  # entries of a covariance between new and fitted points
NOISE_BOUNDS = (1e-6, 2.0)  # variances of the noise, for targets of variance 1
_TRIAL = 0.15  # share of the steps that every start is given


class PerOutputGP(Baseline):
    """The common base of exact processes for single outputs; a subclass adds a kernel and starts.

    steps: the most steps of L-BFGS per output, from the best start; every start is tried with
    fewer. The history holds the negative log evidence of the outputs so far at every point that
    was tried, and ends with that of all outputs. No bar is shown.
    Hyperparameters are logarithms; the last one is the variance of the noise.
    """

    steps: int

    @abstractmethod
    def _kernel(self, theta: Tensor, difference: Tensor) -> Tensor:
        """The covariances [...] of points that are `difference` [..., P] apart."""

    @abstractmethod
    def _starts(self, task: Task, output: int) -> tuple[Tensor, Tensor]:
        """Starts [C, K] and bounds [K, 2] of the hyperparameters, as logarithms."""

    def check(self, data: Dataset) -> None:
        check_count("steps", self.steps)
        most = int(data.observed.sum(0).max())
        if most > MOST_ROWS:
            raise InputError(
                f"an exact Gaussian process needs at most {MOST_ROWS} rows; got {most}. Use SVGP."
            )

    def fit_state(self, task: Task, history: History) -> State:
        thetas = []
        total = 0.0
        for output in range(task.y.shape[1]):
            theta, loss = self._fit_output(task, output, history, total)
            total += loss
            thetas.append(theta)
        return {"x": task.x, "y": task.y, "observed": task.observed, "theta": torch.stack(thetas)}

    def _fit_output(
        self, task: Task, output: int, history: History, loss_before: float
    ) -> tuple[Tensor, float]:
        """The best hyperparameters of an output, and their loss.

        loss_before: the sum of the losses of the outputs before, which the history includes.
        """
        rows = task.observed[:, output]
        x, y = task.x[rows], task.y[rows, output]
        eye = torch.eye(len(x), dtype=x.dtype, device=x.device)
        series = x.shape[1] == 1
        lags, index = distinct_lags(x[:, 0]) if series else (x[:0, 0], x[:0, :0].long())

        def loss(theta: Tensor) -> Tensor:
            if series:
                table = self._kernel(theta, lags[:, None])
                covariance = table.index_select(0, index.flatten()).view_as(eye)
            else:
                covariance = self._kernel(theta, x[:, None] - x[None])
            return negative_log_evidence(covariance + theta[-1].exp() * eye, y)

        def record(value: float) -> None:
            history.add(loss_before + value)

        starts, bounds = self._starts(task, output)
        trial = max(1, round(_TRIAL * self.steps)) if len(starts) > 1 else 0
        tried = [
            minimise(loss, start, bounds, trial, record) if trial else (start, math.inf)
            for start in starts
        ]
        best = min(tried, key=lambda pair: pair[1])[0]
        theta, value = minimise(loss, best, bounds, self.steps, record)
        record(value)
        return theta, value

    def mixture(self, state: State, x: Tensor, num_samples: int, seed: int) -> Mixture:
        x_fitted, y_fitted, observed = state["x"], state["y"], state["observed"]
        means, deviations = [], []
        for output, theta in enumerate(state["theta"]):
            rows = observed[:, output]
            x_seen, y_seen = x_fitted[rows], y_fitted[rows, output]
            noise = theta[-1].exp() * torch.eye(len(x_seen), dtype=x.dtype, device=x.device)
            covariance = self._kernel(theta, x_seen[:, None] - x_seen[None]) + noise
            posterior = Posterior(covariance, y_seen)
            prior = self._kernel(theta, torch.zeros_like(x[:1]))
            marginals = [
                posterior.marginals(self._kernel(theta, chunk[:, None] - x_seen[None]), prior)
                for chunk in x.split(max(1, _CHUNK // len(x_seen)))
            ]
            mean, variance = (torch.cat(values) for values in zip(*marginals, strict=True))
            means.append(mean)
            deviations.append((variance + theta[-1].exp()).sqrt())
        return torch.stack(means, -1)[None], torch.stack(deviations, -1)[None]


@final
@baseline("gp", "GP", on=("toy", "series"), smoke={"steps": 3})
class ExactGP(PerOutputGP):
    """EQ kernel with a lengthscale per input, one process and one noise per output.

    steps: the most steps of L-BFGS per output.
    """

    def __init__(
        self,
        steps: int = 100,
        seed: int = 0,
        device: str = "auto",
        dtype: str = "float64",
        progress: bool = True,
    ) -> None:
        self.steps = steps
        self.seed = seed
        self.device = device
        self.dtype = dtype
        self.progress = progress

    def _kernel(self, theta: Tensor, difference: Tensor) -> Tensor:
        squares = (difference * (-theta[1:-1]).exp()).square().sum(-1)
        return torch.exp(theta[0] - squares / 2)

    def _starts(self, task: Task, output: int) -> tuple[Tensor, Tensor]:
        """Starts from wiggly and from smooth functions: the evidence chooses."""
        spread = task.x[task.observed[:, output]].std(0).clamp(min=1e-3)
        inputs = len(spread)
        shares = (0.03, 0.3, 2.0) if inputs == 1 else (1.0, 4.0)
        starts = [
            torch.cat([spread.new_tensor([1.0]), share * spread, spread.new_tensor([0.1])]).log()
            for share in shares
        ]
        bounds = [(1e-3, 1e3), *[(1e-4, 1e4)] * inputs, NOISE_BOUNDS]
        return torch.stack(starts), torch.tensor(bounds).log().to(task.x)


@final
@baseline("periodic-gp", "GP, locally periodic", smoke={"steps": 3})
class PeriodicGP(PerOutputGP):
    """Periodic × EQ + EQ for a series, started at the period that the data show.

    steps: the most steps of L-BFGS per output.
    """

    def __init__(
        self,
        steps: int = 100,
        seed: int = 0,
        device: str = "auto",
        dtype: str = "float64",
        progress: bool = True,
    ) -> None:
        self.steps = steps
        self.seed = seed
        self.device = device
        self.dtype = dtype
        self.progress = progress

    def check(self, data: Dataset) -> None:
        super().check(data)
        check_series(type(self).__name__, data)

    def _kernel(self, theta: Tensor, difference: Tensor) -> Tensor:
        variance, period, shape, memory, other, width = theta[:6].exp().unbind()
        lag = difference[..., 0]
        wave = 2 * (torch.sin(math.pi * lag / period) / shape).square()
        beats = variance * torch.exp(-wave - (lag / memory).square() / 2)
        return beats + other * torch.exp(-(lag / width).square() / 2)

    def _starts(self, task: Task, output: int) -> tuple[Tensor, Tensor]:
        """Starts with smooth and with sharp patterns that last for few periods or for many.

        The second kernel varies within a period. The period stays near its start: far from it the
        evidence has many local maxima.
        """
        period = dominant_period(task)
        starts = [
            [0.8, period, shape, memory * period, 0.05, width * period, 0.1]
            for shape, memory, width in ((0.3, 4.0, 0.4), (0.15, 4.0, 0.2), (0.8, 30.0, 0.4))
        ]
        bounds = [
            (1e-3, 1e3),
            (period / 1.2, period * 1.2),
            (0.02, 50.0),
            (period / 2, 1e3),
            (1e-6, 1e3),
            (period / 100, 1e3),
            NOISE_BOUNDS,
        ]
        return torch.tensor(starts).log().to(task.x), torch.tensor(bounds).log().to(task.x)


def check_series(name: str, data: Dataset) -> None:
    """Raise an error where there are several inputs, or too few observations for a spectrum."""
    if data.x.shape[1] != 1:
        raise InputError(
            f"{name} is for a series: X must have 1 input; got {data.x.shape[1]}. Use ExactGP."
        )
    if not enough(data.y):
        raise InputError(
            f"{name} needs an output with 3 observations or more; got fewer. Add data."
        )


def dominant_period(task: Task) -> float:
    """The period of the oscillation that the outputs share, or else of the spectrum's peak."""
    x, y = task.gaps()
    oscillation = dominant_oscillation(x[:, 0], y)
    if oscillation is not None:
        return 2 * math.pi / oscillation.frequency
    omega, power = periodogram(x[:, 0], y)
    return 2 * math.pi / float(omega[np.argmax(power)])
