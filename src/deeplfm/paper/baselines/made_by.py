"""The model that made the data, with its true numbers: no other can be better on average.

    cov(y_d(t), y_e(t')) = B_de k(t - t') + noise² 1[d = e, t = t'],   B = [[1, ρ], [ρ, 1]]
    a walk:  k(t, t') = step² min(t, t') + a level that is not known

Numbers are in units of the data; a local level model is a Gaussian process too.
"""

import math
from typing import Literal, TypeAlias, final, get_args

import torch
from torch import Tensor

from deeplfm.data import Dataset
from deeplfm.errors import InputError
from deeplfm.paper.baselines.base import Baseline, Mixture, State, Task
from deeplfm.paper.baselines.evidence import Posterior, negative_log_evidence
from deeplfm.paper.baselines.history import History
from deeplfm.paper.baselines.registry import baseline

TrueKernel: TypeAlias = Literal["rbf", "matern32", "walk"]

_LEVEL = 1e4  # variance of the level of a walk before data come, in squared steps


@final
@baseline("made-by", "the model that made the data", on=("general",))
class MadeBy(Baseline):
    """A Gaussian process over all outputs together, whose numbers are given, not learnt.

    kernel:      "rbf", "matern32" or "walk".
    size:        standard deviation of the processes, or of one unit of time of a walk.
    lengthscale: in units of the input; a walk has none.
    noise:       standard deviation of the noise.
    correlation: ρ of any two outputs.

    It computes in float64 on the CPU: `device`, `dtype`, `seed` and `progress` change nothing.
    """

    def __init__(
        self,
        kernel: TrueKernel = "rbf",
        size: float = 1.0,
        lengthscale: float = 1.0,
        noise: float = 0.1,
        correlation: float = 0.0,
        seed: int = 0,
        device: str = "auto",
        dtype: str = "float64",
        progress: bool = True,
    ) -> None:
        self.kernel = kernel
        self.size = size
        self.lengthscale = lengthscale
        self.noise = noise
        self.correlation = correlation
        self.seed = seed
        self.device = device
        self.dtype = dtype
        self.progress = progress

    def check(self, data: Dataset) -> None:
        if self.kernel not in get_args(TrueKernel):
            raise InputError(
                f"kernel must be one of {get_args(TrueKernel)}; got {self.kernel!r}. Choose one."
            )
        if data.x.shape[1] != 1:
            raise InputError(
                f"MadeBy is for a series: X must have 1 input; got {data.x.shape[1]}. Use ExactGP."
            )

    def fit_state(self, task: Task, history: History) -> State:
        """The observed values, one below the other, in the units of the data."""
        units = {name: torch.tensor(v) for name, v in task.units().items()}
        x, y = (torch.tensor(values) for values in task.gaps())
        rows, outputs = torch.nonzero(task.observed.cpu(), as_tuple=True)
        raw = y * units["target_std"] + units["target_mean"]
        state = {"x": x, "rows": rows, "outputs": outputs, "y": raw[rows, outputs]} | units
        history.add(float(negative_log_evidence(self._observed(state), state["y"])))
        return state

    def mixture(self, state: State, x: Tensor, num_samples: int, seed: int) -> Mixture:
        count = len(state["target_mean"])
        posterior = Posterior(self._observed(state), state["y"])
        t, outputs = self._times(state, state["x"])[state["rows"]], state["outputs"]
        asked = self._times(state, x.double())
        means, deviations = [], []
        for d in range(count):
            own = torch.full_like(asked, d).long()
            cross = self._covariance(asked, own, t, outputs)
            prior = torch.stack(
                [self._covariance(s[None], own[:1], s[None], own[:1])[0, 0] for s in asked]
            )
            mean, variance = posterior.marginals(cross, prior)
            means.append(mean)
            deviations.append((variance + self.noise**2).sqrt())
        mean = (torch.stack(means, -1) - state["target_mean"]) / state["target_std"]
        return mean[None], (torch.stack(deviations, -1) / state["target_std"])[None]

    def _observed(self, state: State) -> Tensor:
        """The covariance of the observed values, with their noise."""
        t, outputs = self._times(state, state["x"])[state["rows"]], state["outputs"]
        noise = self.noise**2 * torch.eye(len(t), dtype=t.dtype)
        return self._covariance(t, outputs, t, outputs) + noise

    def _times(self, state: State, x: Tensor) -> Tensor:
        """Times in units of the input, from the first row on."""
        return x[:, 0] * state["input_scale"]

    def _covariance(self, t: Tensor, d: Tensor, s: Tensor, e: Tensor) -> Tensor:
        """Covariances [n, m] of outputs d at times t with outputs e at times s."""
        alike = torch.where(d[:, None] == e, 1.0, self.correlation)
        if self.kernel == "walk":
            shared = torch.minimum(t[:, None], s) + _LEVEL
        else:
            scaled = (t[:, None] - s).abs() / self.lengthscale
            if self.kernel == "rbf":
                shared = torch.exp(-scaled.square() / 2)
            else:
                root = math.sqrt(3) * scaled
                shared = (1 + root) * torch.exp(-root)
        return self.size**2 * alike * shared
