"""Deep Gaussian processes by doubly stochastic variational inference (DGP-DSVI).

    bound = 1/S Σ_s Σ_observed E log N(y; f, σ_d²) - Σ_layers KL,   f | h_s from the last layer

It predicts the mixture of the Gaussians that its samples lead to: they are never averaged into one.
Each row has samples of its own, so that rows in another order get other samples.
"""

from typing import TYPE_CHECKING, final

import torch
from torch import Tensor

from deeplfm.data import Dataset
from deeplfm.paper.baselines.adam import (
    check_gpytorch,
    check_training,
    expected_log_density,
    inducing_start,
    lengthscale_start,
    load_into,
    seeded,
    state_of,
    train,
)
from deeplfm.paper.baselines.base import Baseline, Mixture, State, Task
from deeplfm.paper.baselines.history import History
from deeplfm.paper.baselines.registry import baseline
from deeplfm.shapes import check_count

if TYPE_CHECKING:
    from deeplfm.paper.gpytorch_models.deep import DeepModel

_CHUNK = 2**23  # numbers of one kind that a prediction holds at once


@final
@baseline(
    "dgp-dsvi",
    "DGP-DSVI",
    on=("toy", "series", "table"),
    smoke={"num_inducing": 6, "num_samples": 2, "steps": 3, "batch_size": 16},
)
class DeepGP(Baseline):
    """Layers of sparse processes, EQ kernels with a lengthscale per input, one noise per output.

    num_layers:    how many layers; the last one has one process per output.
    hidden_dim:    processes of each other layer.
    num_inducing:  inducing points of each process.
    num_samples:   samples of a step of training.
    steps:         steps of Adam.
    learning_rate: its first rate, which falls like a cosine.
    batch_size:    rows of a step; None: all.
    """

    def __init__(
        self,
        num_layers: int = 2,
        hidden_dim: int = 3,
        num_inducing: int = 100,
        num_samples: int = 10,
        steps: int = 1000,
        learning_rate: float = 0.01,
        batch_size: int | None = 200,
        seed: int = 0,
        device: str = "auto",
        dtype: str = "float32",
        progress: bool = True,
    ) -> None:
        self.num_layers = num_layers
        self.hidden_dim = hidden_dim
        self.num_inducing = num_inducing
        self.num_samples = num_samples
        self.steps = steps
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.seed = seed
        self.device = device
        self.dtype = dtype
        self.progress = progress

    def check(self, data: Dataset) -> None:
        for name in ("num_layers", "hidden_dim", "num_samples"):
            check_count(name, getattr(self, name))
        check_training(self.steps, self.learning_rate, self.batch_size, self.num_inducing)
        check_gpytorch("DeepGP")

    def fit_state(self, task: Task, history: History) -> State:
        with seeded(task.seed, task.x.device):
            points = inducing_start(task, self.num_inducing)
            model = self._model(points, task.y.shape[1])

            def bound(rows: Tensor | None, weight: float) -> Tensor:
                chosen = slice(None) if rows is None else rows
                mean, variance = model.marginals(task.x[chosen], self.num_samples)
                y, observed = task.y[chosen], task.observed[chosen].expand_as(mean)
                noise = model.log_noise.exp()
                fit = expected_log_density(y, observed, mean, variance, noise)
                return weight * fit.mean() - model.kl()

            train(model, bound, task, history, self.steps, self.learning_rate, self.batch_size)
        return state_of(model)

    def mixture(self, state: State, x: Tensor, num_samples: int, seed: int) -> Mixture:
        points = state["module.layers.0.variational_strategy.inducing_points"]
        noise = state["module.log_noise"].exp()
        model = self._model(points[0], len(noise))
        load_into(model, state)
        widest = max(self.hidden_dim, len(noise)) * points.shape[1]
        rows = max(1, _CHUNK // (num_samples * widest))
        with seeded(seed, x.device):
            marginals = [model.marginals(chunk, num_samples) for chunk in x.split(rows)]
        mean, variance = (torch.cat(values, dim=1) for values in zip(*marginals, strict=True))
        return mean, (variance + noise).sqrt()

    def _model(self, points: Tensor, outputs: int) -> "DeepModel":
        check_gpytorch("DeepGP")
        from deeplfm.paper.gpytorch_models.deep import DeepModel

        widths = [self.hidden_dim] * (self.num_layers - 1)
        return DeepModel(points, widths, outputs, lengthscale_start(points))
