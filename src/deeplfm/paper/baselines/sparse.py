"""Sparse variational processes: independent outputs, and the linear model of coregionalisation.

    bound = Σ_observed E_q log N(y; f, σ_d²) - Σ_l KL(q_l ‖ p)

An output that was not observed in a row adds nothing to the bound there.
"""

from abc import abstractmethod
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
    from deeplfm.paper.gpytorch_models.sparse import SparseModel

_ROWS = 4096  # rows that are predicted at a time


class SparseGP(Baseline):
    """The common base of SVGP and SLMC: q over inducing points, trained on minibatches."""

    num_inducing: int
    learn_inducing: bool
    steps: int
    learning_rate: float
    batch_size: int | None

    @abstractmethod
    def _mixing(self, task: Task) -> Tensor:
        """The start of the mixing W [L, D], or of its diagonal [D]."""

    def check(self, data: Dataset) -> None:
        check_training(self.steps, self.learning_rate, self.batch_size, self.num_inducing)
        check_gpytorch(type(self).__name__)

    def fit_state(self, task: Task, history: History) -> State:
        from deeplfm.paper.gpytorch_models.sparse import SparseModel

        with seeded(task.seed, task.x.device):
            points = inducing_start(task, self.num_inducing)
            start = lengthscale_start(points)
            model = SparseModel(points, self._mixing(task), start, self.learn_inducing)

            def bound(rows: Tensor | None, weight: float) -> Tensor:
                return bound_of(model, task, rows, weight)

            train(model, bound, task, history, self.steps, self.learning_rate, self.batch_size)
        return state_of(model)

    def mixture(self, state: State, x: Tensor, num_samples: int, seed: int) -> Mixture:
        model = self._model(state)
        marginals = [model.marginals(chunk) for chunk in x.split(_ROWS)]
        mean, variance = (torch.cat(values) for values in zip(*marginals, strict=True))
        return mean[None], (variance + model.log_noise.exp()).sqrt()[None]

    def _model(self, state: State) -> "SparseModel":
        """The model that has this state."""
        check_gpytorch(type(self).__name__)
        from deeplfm.paper.gpytorch_models.sparse import SparseModel

        points = state["module.latents.variational_strategy.inducing_points"]
        model = SparseModel(points[0], state["module.mixing"], 1.0, self.learn_inducing)
        load_into(model, state)
        return model


def bound_of(model: "SparseModel", task: Task, rows: Tensor | None, weight: float) -> Tensor:
    """The evidence lower bound by a batch of rows, each of which stands for `weight` rows."""
    chosen = slice(None) if rows is None else rows
    mean, variance = model.marginals(task.x[chosen])
    noise = model.log_noise.exp()
    fit = expected_log_density(task.y[chosen], task.observed[chosen], mean, variance, noise)
    return weight * fit - model.kl()


@final
@baseline(
    "svgp",
    "SVGP",
    on=("table",),  # a series has the exact process
    smoke={"num_inducing": 6, "steps": 3, "batch_size": 16},
)
class SVGP(SparseGP):
    """Independent outputs, each with its own EQ kernel, inducing points and noise.

    num_inducing:   inducing points per output, started by k-means.
    learn_inducing: move them.
    steps:          steps of Adam.
    learning_rate:  its first rate, which falls like a cosine.
    batch_size:     rows of a step; None: all.
    """

    def __init__(
        self,
        num_inducing: int = 100,
        learn_inducing: bool = True,
        steps: int = 3000,
        learning_rate: float = 0.01,
        batch_size: int | None = 500,
        seed: int = 0,
        device: str = "auto",
        dtype: str = "float32",
        progress: bool = True,
    ) -> None:
        self.num_inducing = num_inducing
        self.learn_inducing = learn_inducing
        self.steps = steps
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.seed = seed
        self.device = device
        self.dtype = dtype
        self.progress = progress

    def _mixing(self, task: Task) -> Tensor:
        return torch.ones_like(task.y[0])


@final
@baseline("slmc", "SLMC", smoke={"num_inducing": 6, "steps": 3, "batch_size": 16})
class SLMC(SparseGP):
    """Outputs are mixtures of latent functions, so that one output informs about another.

    num_latents: how many latent functions; None: as many as outputs. The others are as in SVGP.
    """

    def __init__(
        self,
        num_latents: int | None = None,
        num_inducing: int = 100,
        learn_inducing: bool = True,
        steps: int = 3000,
        learning_rate: float = 0.01,
        batch_size: int | None = 500,
        seed: int = 0,
        device: str = "auto",
        dtype: str = "float32",
        progress: bool = True,
    ) -> None:
        self.num_latents = num_latents
        self.num_inducing = num_inducing
        self.learn_inducing = learn_inducing
        self.steps = steps
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.seed = seed
        self.device = device
        self.dtype = dtype
        self.progress = progress

    def check(self, data: Dataset) -> None:
        super().check(data)
        if self.num_latents is not None:
            check_count("num_latents", self.num_latents)

    def _mixing(self, task: Task) -> Tensor:
        """Random directions [L, D]; outputs start with a variance of 1."""
        outputs = task.y.shape[1]
        latents = self.num_latents or outputs
        generator = torch.Generator().manual_seed(task.seed)
        normal = torch.randn(latents, outputs, generator=generator, dtype=torch.float64)
        unit: Tensor = normal / normal.square().sum(0).sqrt()
        return unit.to(task.y)
