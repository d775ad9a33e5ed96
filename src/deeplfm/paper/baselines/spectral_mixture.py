"""A multi-output spectral mixture process for a series, exact over all observed entries.

    K_ij = k_{d_i d_j}(t_i - t_j) + σ_{d_i}² δ_ij     over entries (t_i, d_i) that were observed

Hyperparameters maximise the evidence: first of some of the entries, then of all.
"""

from typing import final

import torch
from torch import Tensor

from deeplfm.data import Dataset
from deeplfm.errors import InputError
from deeplfm.paper.baselines.door import Baseline, Mixture, State, Task
from deeplfm.paper.baselines.evidence import (
    Posterior,
    distinct_lags,
    minimise,
    negative_log_evidence,
)
from deeplfm.paper.baselines.exact_gp import MOST_ROWS, check_series
from deeplfm.paper.baselines.history import History
from deeplfm.paper.baselines.spectral_kernel import Layout, start
from deeplfm.shapes import check_count

_CHUNK = 2**23  # entries of a covariance between new and old points


@final
class SpectralMixtureGP(Baseline):
    """Components started at harmonics of the oscillation that the outputs share.

    num_components: one for trends, the others for the harmonics; rank: of each coregionalisation;
    phases: let outputs lag behind each other; steps: of L-BFGS at most, on some and on all entries;
    few: how many entries the first ones see.
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

    def _check(self, data: Dataset) -> None:
        for name in ("num_components", "rank", "steps", "few"):
            check_count(name, getattr(self, name))
        check_series("SpectralMixtureGP", data)
        entries = int(data.observed.sum())
        if entries > MOST_ROWS:
            raise InputError(
                f"SpectralMixtureGP needs at most {MOST_ROWS} observed entries; got {entries}. "
                "Use SLMC, or a part of the series."
            )

    def _fit(self, task: Task, history: History) -> State:
        layout = self._layout(task.y.shape[1])
        x, y = task.gaps()
        theta, bounds = (v.to(task.x) for v in start(layout, x[:, 0], y, task.seed))
        rows, outputs = task.observed.nonzero(as_tuple=True)
        if len(rows) > self.few:
            generator = torch.Generator().manual_seed(task.seed)
            some = torch.randperm(len(rows), generator=generator)[: self.few].to(rows.device)
            theta = self._trained(task, layout, rows[some], outputs[some], theta, bounds, history)
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
        """The best parameters for these entries; the history counts as if they were all."""
        lags, index = distinct_lags(task.x[:, 0])
        place = (index[rows[:, None], rows] * layout.outputs + outputs[:, None]) * layout.outputs
        place = (place + outputs).flatten()
        y = task.y[rows, outputs]
        scale = float(task.observed.sum()) / len(rows)

        def loss(point: Tensor) -> Tensor:
            table = layout.table(point, lags).flatten()
            covariance = table.index_select(0, place).view(len(rows), len(rows))
            noise = layout.parts(point)[-1]
            return negative_log_evidence(covariance + torch.diag(noise[outputs]), y)

        def record(value: float) -> None:
            history.add(scale * value)

        found, value = minimise(loss, theta, bounds, self.steps, record)
        record(value)
        return found

    def _mixture(self, state: State, x: Tensor, num_samples: int, seed: int) -> Mixture:
        known, targets, observed = state["x"][:, 0], state["y"], state["observed"]
        layout, theta = self._layout(targets.shape[1]), state["theta"]
        rows, outputs = observed.nonzero(as_tuple=True)
        times, count = known[rows], layout.outputs
        noise = layout.parts(theta)[-1]
        lags, index = distinct_lags(known)
        table = layout.table(theta, lags)
        own = table[index[rows[:, None], rows], outputs[:, None], outputs]
        posterior = Posterior(own + torch.diag(noise[outputs]), targets[rows, outputs])
        prior = layout.table(theta, torch.zeros_like(x[:1, 0]))[0].diagonal()
        means, variances = [], []
        for some in x[:, 0].split(max(1, _CHUNK // (len(times) * count))):
            lags = (some[:, None] - times).flatten()
            found = layout.table(theta, lags).view(len(some), len(times), count, count)
            cross = (
                found[:, torch.arange(len(times), device=x.device), :, outputs]
                .permute(1, 2, 0)
                .flatten(0, 1)
            )
            mean, variance = posterior.marginals(cross, prior.repeat(len(some)))
            means.append(mean.view(-1, count))
            variances.append(variance.view(-1, count))
        return torch.cat(means)[None], (torch.cat(variances) + noise).sqrt()[None]

    def _layout(self, outputs: int) -> Layout:
        return Layout(self.num_components, outputs, self.rank, self.phases)
