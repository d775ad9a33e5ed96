"""A multi-output spectral mixture process for a series, exact over all observed entries.

    K_ij = k_{d_i d_j}(t_i - t_j) + σ_{d_i}² δ_ij     over entries (t_i, d_i) that were observed

The hyperparameters maximise the evidence: first that of some entries, then that of all.
"""

from typing import final

import torch
from torch import Tensor

from deeplfm.data import Dataset
from deeplfm.errors import InputError
from deeplfm.paper.baselines.base import Baseline, Mixture, State, Task
from deeplfm.paper.baselines.evidence import (
    Posterior,
    distinct_lags,
    minimise,
    negative_log_evidence,
)
from deeplfm.paper.baselines.exact_gp import MOST_ROWS, check_series
from deeplfm.paper.baselines.history import History
from deeplfm.paper.baselines.registry import baseline
from deeplfm.paper.baselines.spectral_kernel import Layout, start
from deeplfm.shapes import check_count

_CHUNK = 2**23  # entries of a covariance between new and fitted points


@final
@baseline(
    "mixture-gp",
    "GP, spectral mixture",
    smoke={"num_components": 2, "steps": 3, "few": 40},
)
class SpectralMixtureGP(Baseline):
    """Components started at harmonics of the oscillation that the outputs share.

    num_components: one for trends, the others for the harmonics.
    rank:           the rank of the coregionalisation of each component.
    phases:         let outputs lag behind each other.
    steps:          the most steps of L-BFGS, on few entries and again on all.
    few:            how many entries the first steps see.
    """

    def __init__(
        self,
        num_components: int = 16,
        rank: int = 1,
        phases: bool = True,
        steps: int = 100,
        few: int = 1000,
        seed: int = 0,
        device: str = "auto",
        dtype: str = "float64",
        progress: bool = True,
    ) -> None:
        self.num_components = num_components
        self.rank = rank
        self.phases = phases
        self.steps = steps
        self.few = few
        self.seed = seed
        self.device = device
        self.dtype = dtype
        self.progress = progress

    def check(self, data: Dataset) -> None:
        for name in ("num_components", "rank", "steps", "few"):
            check_count(name, getattr(self, name))
        check_series("SpectralMixtureGP", data)
        entries = int(data.observed.sum())
        if entries > MOST_ROWS:
            raise InputError(
                f"SpectralMixtureGP needs at most {MOST_ROWS} observed entries; got {entries}. "
                "Use SLMC, or a part of the series."
            )

    def fit_state(self, task: Task, history: History) -> State:
        layout = self._layout(task.y.shape[1])
        x, y = task.gaps()
        theta, bounds = (v.to(task.x) for v in start(layout, x[:, 0], y, task.seed))
        rows, outputs = task.observed.nonzero(as_tuple=True)
        if len(rows) > self.few:
            generator = torch.Generator().manual_seed(task.seed)
            few = torch.randperm(len(rows), generator=generator)[: self.few].to(rows.device)
            theta = self._trained(task, layout, rows[few], outputs[few], theta, bounds, history)
        theta = self._trained(task, layout, rows, outputs, theta, bounds, history)
        return {"x": task.x, "y": task.y, "observed": task.observed, "theta": theta}

    def _trained(
        self,
        task: Task,
        layout: Layout,
        rows: Tensor,
        outputs: Tensor,
        theta: Tensor,
        bounds: Tensor,
        history: History,
    ) -> Tensor:
        """The best parameters [K] for the entries (rows, outputs), two arrays of indices.

        The history scales the loss of few entries up, as if they were all.
        """
        lags, index = distinct_lags(task.x[:, 0])
        place = (index[rows[:, None], rows] * layout.outputs + outputs[:, None]) * layout.outputs
        place = (place + outputs).flatten()
        y = task.y[rows, outputs]
        scale = float(task.observed.sum()) / len(rows)

        def loss(point: Tensor) -> Tensor:
            by_lag = layout.covariances(point, lags).flatten()
            covariance = by_lag.index_select(0, place).view(len(rows), len(rows))
            noise = layout.unpacked(point)[-1]
            return negative_log_evidence(covariance + torch.diag(noise[outputs]), y)

        def record(value: float) -> None:
            history.add(scale * value)

        best, value = minimise(loss, theta, bounds, self.steps, record)
        record(value)
        return best

    def mixture(self, state: State, x: Tensor, num_samples: int, seed: int) -> Mixture:
        times, targets, observed = state["x"][:, 0], state["y"], state["observed"]
        layout, theta = self._layout(targets.shape[1]), state["theta"]
        rows, outputs = observed.nonzero(as_tuple=True)
        entry_times, count = times[rows], layout.outputs
        noise = layout.unpacked(theta)[-1]
        lags, index = distinct_lags(times)
        by_lag = layout.covariances(theta, lags)
        covariance = by_lag[index[rows[:, None], rows], outputs[:, None], outputs]
        posterior = Posterior(covariance + torch.diag(noise[outputs]), targets[rows, outputs])
        prior = layout.covariances(theta, torch.zeros_like(x[:1, 0]))[0].diagonal()
        entries = torch.arange(len(rows), device=x.device)
        means, variances = [], []
        for chunk in x[:, 0].split(max(1, _CHUNK // (len(rows) * count))):
            lags = (chunk[:, None] - entry_times).flatten()
            by_pair = layout.covariances(theta, lags).view(len(chunk), len(rows), count, count)
            cross = by_pair[:, entries, :, outputs].permute(1, 2, 0).flatten(0, 1)
            mean, variance = posterior.marginals(cross, prior.repeat(len(chunk)))
            means.append(mean.view(-1, count))
            variances.append(variance.view(-1, count))
        return torch.cat(means)[None], (torch.cat(variances) + noise).sqrt()[None]

    def _layout(self, outputs: int) -> Layout:
        return Layout(self.num_components, outputs, self.rank, self.phases)
