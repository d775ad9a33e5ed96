"""Sparse processes: equal to the exact one where they can be, masks, and mixtures of outputs."""

import math
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

import deeplfm as dlfm
from deeplfm.paper.baselines.adam import expected_log_density, inducing_start, seeded
from deeplfm.paper.baselines.base import Task
from deeplfm.paper.baselines.deep_gp import DeepGP
from deeplfm.paper.baselines.exact_gp import ExactGP
from deeplfm.paper.baselines.sparse import SLMC, SVGP, bound_of

Values = NDArray[np.float64]


def task_of(model: Any, t: Values, y: Values) -> Task:
    """What `model` was fitted to, in its units."""
    scaling = model.fitted_.scaling
    x = torch.tensor(scaling.inputs(t[:, None]))
    targets = torch.tensor(scaling.targets(y))
    observed = ~targets.isnan()
    return Task(x, targets.nan_to_num(), observed, 0, False)


def test_with_all_points_it_is_the_exact_process() -> None:
    """Z = X: evidence - bound = KL(q ‖ p(f|y)), and no marginal can be farther apart than that."""
    t = np.linspace(0, 2, 20)
    y = np.sin(4 * t)[:, None] + 0.3 * np.random.default_rng(0).normal(size=(20, 1))
    settings: dict[str, Any] = {"num_inducing": 20, "learn_inducing": False, "batch_size": None}
    settings |= {"steps": 450, "learning_rate": 0.05, "dtype": "float64", "progress": False}
    sparse = SVGP(**settings)
    sparse.fit(t, y)
    task = task_of(sparse, t, y)
    model = sparse._model(sparse.fitted_.state)
    np.testing.assert_allclose(
        np.sort(model.latents.variational_strategy.inducing_points[0, :, 0].numpy()),
        task.x[:, 0].numpy(),
    )
    with torch.no_grad():
        bound = float(bound_of(model, task, None, 1.0))
    ell = model.latents.covar_module.lengthscale.detach()[0]
    theta = torch.cat([2 * model.mixing.abs().log(), ell[0].log(), model.log_noise]).detach()
    exact = ExactGP()
    K = exact._kernel(theta, task.x[:, None] - task.x[None])
    noise = float(theta[-1].exp())
    dense = torch.distributions.MultivariateNormal(
        torch.zeros(20, dtype=torch.float64), K + noise * torch.eye(20)
    )
    gap = float(dense.log_prob(task.y[:, 0])) - bound
    assert 0 < gap < 0.02

    exact.fit(t, y)
    exact.fitted_.state["theta"] = theta[None]
    new = np.linspace(-0.2, 2.2, 31)
    q, p = sparse.predictive(new), exact.predictive(new)
    floor = noise * float(sparse.fitted_.scaling.target_std[0]) ** 2
    ratio = (q.std**2 - floor) / (p.std**2 - floor)
    away = (q.mean - p.mean) ** 2 / (p.std**2 - floor)
    divergence = (ratio + away - 1 - np.log(ratio)) / 2
    assert divergence.max() <= gap


def test_what_was_not_observed_adds_nothing() -> None:
    random = torch.Generator().manual_seed(0)
    y, mean = torch.randn(2, 6, 2, generator=random, dtype=torch.float64)
    variance, noise = torch.rand(6, 2, generator=random).double(), torch.tensor([0.3, 2.0])
    observed = torch.rand(6, 2, generator=random) > 0.4
    total = 0.0
    for n, d in observed.nonzero().tolist():
        nodes, weights = np.polynomial.hermite_e.hermegauss(9)
        f = float(mean[n, d]) + math.sqrt(variance[n, d]) * nodes
        s = float(noise[d])
        logs = -((float(y[n, d]) - f) ** 2) / (2 * s) - math.log(2 * math.pi * s) / 2
        total += float(weights @ logs) / math.sqrt(2 * math.pi)
    y[~observed] = 1e9
    found = expected_log_density(y, observed, mean, variance, noise.double())
    assert float(found) == pytest.approx(total, rel=1e-7)


@pytest.mark.parametrize("cls", [SVGP, SLMC])
def test_gaps_equal_dropped_rows(cls: type[SVGP] | type[SLMC]) -> None:
    t = np.linspace(0, 1, 30)
    y = np.stack([np.sin(9 * t), np.cos(9 * t)], 1)
    y[10:20, 0] = np.nan
    rows = ~np.isnan(y[:, 0])
    apart = np.full((20 + 30, 2), np.nan)
    apart[:20, 0], apart[20:, 1] = y[rows, 0], y[:, 1]
    model = cls(num_inducing=8, steps=10, batch_size=None, dtype="float64", progress=False)
    together = model.fit(t, y).predict(t)
    dropped = model.fit(np.concatenate([t[rows], t]), apart).predict(t)
    # Ten steps of Adam raise rounding, 1e-16, by far less than this.
    np.testing.assert_allclose(together, dropped, rtol=1e-7, atol=1e-9)


def test_one_output_tells_of_another() -> None:
    random = np.random.default_rng(1)
    t = np.linspace(0, 1, 60)
    source = np.sin(15 * t) + np.sin(26 * t + 1)
    y = np.stack([source, -3 * source + 1], 1) + 0.05 * random.normal(size=(60, 2))
    truth = y[20:40, 0].copy()
    y[20:40, 0] = np.nan
    settings: dict[str, Any] = {"num_inducing": 20, "steps": 350, "learning_rate": 0.05}
    settings |= {"batch_size": None, "progress": False}
    errors = []
    for model in (SLMC(num_latents=1, **settings), SVGP(**settings)):
        found = model.fit(t, y).predict(t[20:40])[:, 0]
        errors.append(np.sqrt(((found - truth) ** 2).mean()) / source.std())
    assert errors[0] < 0.3 < 0.8 < errors[1]


def test_mixing_is_that_of_gpytorch() -> None:
    """Marginals of the linear model of coregionalisation, as GPyTorch's own strategy has them."""
    gpytorch = pytest.importorskip("gpytorch")
    t, y = np.linspace(0, 1, 20), np.random.default_rng(0).normal(size=(20, 3))
    ours = SLMC(num_latents=2, num_inducing=5, steps=30, dtype="float64", progress=False)
    ours.fit(t, y)
    model = ours._model(ours.fitted_.state)

    class Reference(gpytorch.models.ApproximateGP):  # type: ignore[misc]
        def __init__(self) -> None:
            strategy = gpytorch.variational.LMCVariationalStrategy(
                model.latents.variational_strategy, num_tasks=3, num_latents=2, latent_dim=-1
            )
            super().__init__(strategy)

    reference = Reference().double().eval()
    reference.variational_strategy.lmc_coefficients.data.copy_(model.mixing)
    x = torch.linspace(0, 1, 7, dtype=torch.float64)[:, None]
    with torch.no_grad():
        expected, (mean, variance) = reference(x), model.marginals(x)
    torch.testing.assert_close(mean, expected.mean)
    torch.testing.assert_close(variance, expected.variance, rtol=0, atol=2e-6)  # its own jitter


def test_minibatches_stand_for_all_rows() -> None:
    """The mean bound of the batches of an epoch is the bound of all rows."""
    t = np.linspace(0, 1, 40)
    y = np.sin(9 * t)[:, None]
    sparse = SVGP(num_inducing=5, steps=5, dtype="float64", progress=False)
    sparse.fit(t, y)
    model, task = sparse._model(sparse.fitted_.state), task_of(sparse, t, y)
    with torch.no_grad():
        whole = float(bound_of(model, task, None, 1.0))
        parts = [float(bound_of(model, task, rows, 4.0)) for rows in torch.arange(40).split(10)]
    assert np.mean(parts) == pytest.approx(whole, rel=1e-10)


def test_inducing_points_lie_among_the_inputs() -> None:
    x = torch.rand(500, 2, generator=torch.Generator().manual_seed(0))
    empty = torch.zeros(500, 1)
    points = inducing_start(Task(x, empty, empty > 0, 0, False), 20)
    assert points.shape == (20, 2)
    nearest = torch.cdist(x, points).min(1).values
    # Twenty centers of a unit square: cells of area 1/20, whose points are about 0.09 away.
    assert nearest.mean() < 0.12


def test_the_random_state_is_left_alone() -> None:
    before = torch.get_rng_state()
    with seeded(3, torch.device("cpu")):
        first = torch.rand(2)
    assert torch.equal(torch.get_rng_state(), before)
    with seeded(3, torch.device("cpu")):
        assert torch.equal(torch.rand(2), first)


def test_gpytorch_is_asked_for_only_where_it_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    code = "import sys, deeplfm.paper.baselines; sys.exit('gpytorch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
    monkeypatch.setitem(sys.modules, "gpytorch", None)
    t = np.linspace(0, 1, 20)
    for model in (SVGP(), SLMC(), DeepGP()):
        with pytest.raises(dlfm.InputError, match=r"pip install 'deeplfm\[baselines\]'"):
            model.fit(t, t)
    ExactGP(steps=1).fit(t, t)


def test_errors_say_what_to_do() -> None:
    t = np.linspace(0, 1, 20)
    for wrong, message in (
        ({"steps": 0}, "steps must be an integer of at least 1"),
        ({"num_inducing": 0}, "num_inducing must be an integer of at least 1"),
        ({"batch_size": 0}, "batch_size must be an integer of at least 1"),
        ({"learning_rate": 0.0}, "learning_rate must be above 0; got 0.0"),
    ):
        for cls in (SVGP, SLMC, DeepGP):
            with pytest.raises(dlfm.InputError, match=message):
                cls(**wrong).fit(t, t)
    with pytest.raises(dlfm.InputError, match="num_latents must be an integer"):
        SLMC(num_latents=0).fit(t, t)
    with pytest.raises(dlfm.NumericalError, match="must stay positive definite"):
        SVGP(num_inducing=5, steps=3, learning_rate=1e30, progress=False).fit(t, t)
