"""The training of variational baselines: Adam with a cosine rate over minibatches of rows.

    loss = -(N/|batch| Σ_rows E log p(y|f) - KL)

The file also has what all of them need: the expected log density of observed targets, a start of
the inducing points, a check that GPyTorch is installed, and a random state of their own.
"""

import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from deeplfm.errors import InputError, NumericalError
from deeplfm.models.starts.inducing_points import k_means
from deeplfm.paper.baselines.base import State, Task
from deeplfm.paper.baselines.history import History
from deeplfm.shapes import check_count
from deeplfm.training.minibatches import Minibatches
from deeplfm.training.progress import progress_bar

# The evidence lower bound by rows (None: all), each of which stands for so many rows.
Bound = Callable[[Tensor | None, float], Tensor]

_LAST = 0.01  # share of the rate that is left at the end
_SHOWN = 10  # steps between two reads of the loss, where a bar is shown


def train(
    module: nn.Module,
    bound: Bound,
    task: Task,
    history: History,
    steps: int,
    learning_rate: float,
    batch_size: int | None,
) -> None:
    """Maximise `bound` over the parameters of `module`."""
    total, device = len(task.x), task.x.device
    batches = Minibatches(total, batch_size, task.seed, device)
    weight = total / (batches.size or total)
    optimiser = torch.optim.Adam([p for p in module.parameters() if p.requires_grad], learning_rate)

    def rate(step: int) -> float:
        return _LAST + (1 - _LAST) * (1 + math.cos(math.pi * step / steps)) / 2

    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, rate)
    module.train()
    with progress_bar(steps, task.progress) as report, as_our_error():
        for step in range(steps):
            optimiser.zero_grad()
            loss = -bound(batches.rows(step), weight)
            loss.backward()
            optimiser.step()
            schedule.step()
            history.add(loss)
            if report is not None and step % _SHOWN == 0:
                report(step, float(loss.detach()))
    module.eval()


def expected_log_density(
    y: Tensor, observed: Tensor, mean: Tensor, variance: Tensor, noise: Tensor
) -> Tensor:
    """Σ E log N(y; f, σ²) [...] over observed targets, with f ~ N(mean, variance) [..., N, D].

    y, observed: [N, D].      noise: the variances σ² [D].
    """
    errors = ((y - mean).square() + variance) / noise + noise.log() + math.log(2 * math.pi)
    return torch.where(observed, errors, torch.zeros_like(errors)).sum((-2, -1)) / -2


def check_training(steps: int, learning_rate: float, batch_size: int | None, points: int) -> None:
    """Check the settings that every variational baseline has."""
    check_count("steps", steps)
    check_count("num_inducing", points)
    if batch_size is not None:
        check_count("batch_size", batch_size)
    if not 0 < learning_rate < math.inf:
        raise InputError(f"learning_rate must be above 0; got {learning_rate!r}. Pass 0.01.")


def check_gpytorch(name: str) -> None:
    """Import GPyTorch, or raise an error that says how to install it. Call it before any use."""
    try:
        with warnings.catch_warnings():  # torch warns about how GPyTorch compiles a function
            warnings.simplefilter("ignore", DeprecationWarning)
            import gpytorch  # noqa: F401
    except ImportError:
        raise InputError(
            f"{name} needs GPyTorch, which is not installed. Run pip install 'deeplfm[baselines]'."
        ) from None


def inducing_start(task: Task, count: int) -> Tensor:
    """Start of the inducing points [M, P]: k-means of the distinct inputs, M at most `count`."""
    rows = torch.unique(task.x.double().cpu(), dim=0)
    if len(rows) > count:
        sample = rows
        if len(rows) > 100 * count:  # so many are enough to see where inputs lie
            generator = torch.Generator().manual_seed(task.seed)
            sample = rows[torch.randperm(len(rows), generator=generator)[: 100 * count]]
        rows = torch.tensor(k_means(sample.numpy(), count, task.seed % 2**32))
    return torch.as_tensor(rows, dtype=task.x.dtype, device=task.x.device)


def lengthscale_start(points: Tensor) -> float:
    """Start of the lengthscale: three points of a series, or the typical distance of two rows."""
    count, inputs = points.shape
    return 3 / count if inputs == 1 else math.sqrt(inputs)


def state_of(module: nn.Module) -> State:
    """The state of a module, as a baseline keeps it."""
    return {f"module.{name}": value.detach() for name, value in module.state_dict().items()}


def load_into(module: nn.Module, state: State) -> None:
    """Put what `state_of` gave into a module of the same shape, and make it ready to predict."""
    prefix = "module."
    tensors = {n.removeprefix(prefix): v for n, v in state.items() if n.startswith(prefix)}
    module.to(state["x"])
    module.load_state_dict(tensors)
    module.eval()


@contextmanager
def as_our_error() -> Iterator[None]:
    """Raise NumericalError where GPyTorch cannot factorise a covariance."""
    from linear_operator.utils.errors import NanError, NotPSDError

    try:
        yield
    except (NanError, NotPSDError) as error:
        raise NumericalError(
            f"covariances must stay positive definite; one did not ({error}). "
            "Lower the learning rate, or use dtype='float64'."
        ) from None


@contextmanager
def seeded(seed: int, device: torch.device) -> Iterator[None]:
    """Seed the process's random state, from which GPyTorch draws, and restore it afterwards."""
    devices = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(seed)
        yield
