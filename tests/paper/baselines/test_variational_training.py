"""The training of variational baselines: rates, weights of rows, starts, and the deep bound."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import scipy.stats
import torch
from torch import Tensor, nn

from deeplfm.paper.baselines.adam import check_gpytorch, inducing_start, lengthscale_start, train
from deeplfm.paper.baselines.base import Task
from deeplfm.paper.baselines.deep_gp import DeepGP
from deeplfm.paper.baselines.history import History
from deeplfm.paper.baselines.sparse import SLMC, SVGP, bound_of


@pytest.fixture(autouse=True)
def gpytorch_is_imported() -> None:
    """As before every fit; its first import gives warnings."""
    check_gpytorch("training")


def task(rows: int = 40, inputs: int = 1, outputs: int = 1) -> Task:
    random = torch.Generator().manual_seed(0)
    x = torch.rand(rows, inputs, generator=random, dtype=torch.float64)
    y = torch.randn(rows, outputs, generator=random, dtype=torch.float64)
    return Task(x, y, torch.rand(rows, outputs, generator=random) > 0.2, 0, False)


class Slope(nn.Module):
    """A bound that rises by 1 per unit of its parameter: every step of Adam is then its rate."""

    def __init__(self) -> None:
        super().__init__()
        self.place = nn.Parameter(torch.zeros((), dtype=torch.float64))


def test_the_rate_falls_like_a_cosine_to_a_hundredth() -> None:
    module, history, steps = Slope(), History(), 20
    train(module, lambda rows, weight: module.place * 1.0, task(), history, steps, 0.5, None)
    rates = [0.5 * (0.01 + 0.99 * math.cos(math.pi * s / steps / 2) ** 2) for s in range(steps)]
    places = np.concatenate([[0.0], np.cumsum(rates)])
    np.testing.assert_allclose(history.arrays()["loss"], -places[:-1], rtol=1e-6, atol=1e-12)
    assert float(module.place.detach()) == pytest.approx(places[-1], rel=1e-6)


@pytest.mark.parametrize(("size", "weight"), [(None, 1.0), (10, 4.0), (16, 2.5)])
def test_rows_of_a_batch_stand_for_all(size: int | None, weight: float) -> None:
    module = Slope()
    calls: list[tuple[int, float]] = []

    def bound(rows: Tensor | None, given: float) -> Tensor:
        calls.append((40 if rows is None else len(rows), given))
        return module.place * 1.0

    train(module, bound, task(), History(), 3, 0.1, size)
    assert calls == [(size or 40, weight)] * 3


def test_many_inputs_are_thinned_before_their_centres_are_sought() -> None:
    """Five centres of [0, 1] are 1/20 from a point on average; five random points are not."""
    x = torch.rand(3000, 1, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    points = inducing_start(Task(x, x, x > 0, 0, False), 5)
    assert (x - points.T).abs().min(1).values.mean() < 0.055


def test_lengthscales_start_at_three_points_or_at_the_distance_of_rows() -> None:
    assert lengthscale_start(torch.zeros(12, 1)) == 0.25
    assert lengthscale_start(torch.zeros(12, 9)) == 3.0


def test_outputs_start_with_a_variance_of_one() -> None:
    mixing = SLMC(num_latents=4)._mixing(task(outputs=3))
    assert mixing.shape == (4, 3)
    np.testing.assert_allclose(mixing.square().sum(0), 1)
    assert len(np.unique(mixing)) == 12


@pytest.mark.parametrize("learn", [True, False])
def test_inducing_points_move_if_they_may(learn: bool) -> None:
    t = np.linspace(0, 1, 30)
    model = SVGP(6, learn, steps=5, learning_rate=0.05, dtype="float64", progress=False)
    model.fit(t, np.sin(9 * t))
    x = torch.tensor(t)[:, None]
    first = inducing_start(Task(x, x, x > -1, 0, False), 6)
    last = model.fitted_.state["module.latents.variational_strategy.inducing_points"][0]
    assert torch.allclose(first, last, atol=1e-6) is not learn


def captured(model: DeepGP, data: Task, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Any]:
    """The module and the bound that a fit would train."""
    kept: list[Any] = []
    monkeypatch.setattr(
        "deeplfm.paper.baselines.deep_gp.train",
        lambda module, bound, *_: kept.extend([module, bound]),
    )
    model.fit_state(data, History())
    return kept[0], kept[1]


def normal_kl(mean: Any, covariance: Any) -> float:
    """KL(N(m, S) ‖ N(0, I)), the textbook's formula."""
    trace, log_det = np.trace(covariance), np.linalg.slogdet(covariance)[1]
    return float((trace + mean @ mean - len(mean) - log_det) / 2)


def moved(strategy: Any, seed: int) -> float:
    """Move a q away from its start; its KL, summed over the processes of the batch."""
    q = strategy._variational_distribution
    random = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        q.variational_mean.add_(0.5 * torch.randn(q.variational_mean.shape, generator=random))
        q.chol_variational_covar.mul_(0.7)
    means, roots = q.variational_mean.detach().numpy(), q.chol_variational_covar.detach().numpy()
    pairs = zip(means, np.tril(roots), strict=True)
    return sum(normal_kl(mean, root @ root.T) for mean, root in pairs)


def expected(data: Task, rows: Any, mean: Tensor, variance: Tensor, noise: Tensor) -> float:
    """Σ over observed entries of E log N(y; f, noise), by quadrature; f has [N, D] moments."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(9)
    total = 0.0
    for n, d in np.argwhere(data.observed[rows].numpy()):
        f = float(mean[n, d]) + math.sqrt(float(variance[n, d])) * nodes
        logs = scipy.stats.norm(f, math.sqrt(float(noise[d]))).logpdf(float(data.y[rows][n, d]))
        total += float(weights @ logs) / math.sqrt(2 * math.pi)
    return total


def test_the_deep_bound_is_its_definition(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mean over the samples of what a batch says for all rows, less the KL of both layers."""
    data = task(rows=12, inputs=2, outputs=2)
    model = DeepGP(num_inducing=4, num_samples=3, hidden_dim=2, dtype="float64", progress=False)
    module, bound = captured(model, data, monkeypatch)
    # The last layer starts at its prior: its KL is 0.
    q = module.layers[-1].variational_strategy._variational_distribution
    assert not q.variational_mean.any()
    torch.testing.assert_close(q.chol_variational_covar[0], torch.eye(4).double())
    kl = sum(moved(layer.variational_strategy, k) for k, layer in enumerate(module.layers))
    noise = module.log_noise.detach().exp()
    for rows, weight in ((None, 1.0), (torch.tensor([0, 3, 4, 8]), 3.0)):
        some = slice(None) if rows is None else rows
        found = evaluate(partial(bound, rows, weight))
        mean, variance = evaluate(partial(module.marginals, data.x[some], 3))
        fits = [expected(data, some, mean[s], variance[s], noise) for s in range(3)]
        assert float(found) == pytest.approx(weight * np.mean(fits) - kl, rel=1e-5)


def test_the_sparse_bound_is_its_definition() -> None:
    data = task(rows=12, outputs=2)
    mixing = torch.tensor([[0.6, -0.8], [0.3, 0.1], [1.0, 0.5]], dtype=torch.float64)
    module = sparse_model(inducing_start(data, 4), mixing)
    module.marginals(data.x)  # the first call puts q at its start
    kl = moved(module.latents.variational_strategy, 0)
    noise = module.log_noise.detach().exp()
    for rows, weight in ((None, 1.0), (torch.tensor([0, 3, 4, 8]), 3.0)):
        some = slice(None) if rows is None else rows
        found = evaluate(partial(bound_of, module, data, rows, weight))
        mean, variance = evaluate(partial(module.marginals, data.x[some]))
        fit = expected(data, some, mean, variance, noise)
        assert float(found) == pytest.approx(weight * fit - kl, rel=1e-5)


def sparse_model(points: Tensor, mixing: Tensor) -> Any:
    from deeplfm.paper.gpytorch_models.sparse import SparseModel

    return SparseModel(points, mixing, 0.3, True)


def evaluate(function: Callable[[], Any]) -> Any:
    """With the same random numbers every time, and as GPyTorch trains."""
    torch.manual_seed(5)
    with torch.no_grad():
        return function()


def test_new_rows_are_predicted_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    t = np.linspace(0, 1, 30)
    model = SVGP(6, steps=5, dtype="float64", progress=False)
    model.fit(t, np.sin(9 * t))
    whole = model.predictive(t)
    monkeypatch.setattr("deeplfm.paper.baselines.sparse._ROWS", 7)
    chunked = model.predictive(t)
    np.testing.assert_allclose(chunked.mean, whole.mean, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(chunked.std, whole.std, rtol=1e-9)
