"""Exact processes against the textbook, written with numpy; each output over its own rows."""

import math

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

import deeplfm as dlfm
from deeplfm.paper.baselines.base import Task
from deeplfm.paper.baselines.evidence import Posterior, distinct_lags, negative_log_evidence
from deeplfm.paper.baselines.exact_gp import ExactGP, PeriodicGP, dominant_period

Values = NDArray[np.float64]


def plane() -> tuple[Values, Values]:
    random = np.random.default_rng(0)
    X = random.uniform(size=(25, 2)) * [3.0, 10.0]
    y = np.stack([np.sin(2 * X[:, 0]), 5 + np.cos(X[:, 1]), X.sum(1)], 1)
    y += 0.1 * random.normal(size=(25, 3))
    y[:5, 0] = y[9:14, 1] = np.nan
    return X, y


def textbook(K: Values, y: Values, cross: Values, prior: float) -> tuple[Values, Values, float]:
    """Rasmussen & Williams, algorithm 2.1; K holds the noise, `prior` does not."""
    L = np.linalg.cholesky(K)
    alpha = np.linalg.solve(L.T, np.linalg.solve(L, y))
    reduced = np.linalg.solve(L, cross.T)
    evidence = -y @ alpha / 2 - np.log(np.diag(L)).sum() - len(y) / 2 * math.log(2 * math.pi)
    return cross @ alpha, prior - (reduced**2).sum(0), float(evidence)


def test_exact_gp_is_the_textbook() -> None:
    X, y = plane()
    model = ExactGP(steps=10).fit(X, y)
    fitted = model.fitted_
    new = X[:7] + 0.3
    x, asked = fitted.scaling.inputs(X), fitted.scaling.inputs(new)
    total = 0.0
    found = model.predictive(new)
    for d, theta in enumerate(fitted.state["theta"].numpy()):
        rows = ~np.isnan(y[:, d])
        variance, ell, noise = math.exp(theta[0]), np.exp(theta[1:3]), math.exp(theta[3])

        def kernel(a: Values, b: Values, ell: Values = ell, s: float = variance) -> Values:
            return np.asarray(s * np.exp(-((((a[:, None] - b[None]) / ell) ** 2).sum(-1)) / 2))

        scaled = (y[rows, d] - y[rows, d].mean()) / y[rows, d].std()
        K = kernel(x[rows], x[rows]) + noise * np.eye(rows.sum())
        mean, var, evidence = textbook(K, scaled, kernel(asked, x[rows]), variance)
        total += evidence
        unit = y[rows, d].std()
        # Rounding, times the condition number of K, which is below 1e6 / noise.
        np.testing.assert_allclose(found.mean[:, d], y[rows, d].mean() + unit * mean, rtol=1e-8)
        np.testing.assert_allclose(found.std[:, d], unit * np.sqrt(var + noise), rtol=1e-8)
    assert model.history_["loss"][-1] == pytest.approx(-total, rel=1e-10)
    assert found.samples.shape == (1, 7, 3)


def test_the_best_start_is_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each start is tried; the last run goes on from the best, and the history ends with its loss.

    Runs are replaced by ones that go nowhere: start k of three has the loss 7, 3 or 5, twice.
    """
    begun: list[float] = []

    def stays(loss: object, start: torch.Tensor, *_: object) -> tuple[torch.Tensor, float]:
        begun.append(float(start[1]))
        return start, [7.0, 3.0, 5.0, 2.5][(len(begun) - 1) % 4]

    monkeypatch.setattr("deeplfm.paper.baselines.exact_gp.minimise", stays)
    t = np.linspace(0, 1, 20)
    model = ExactGP(steps=10).fit(t, np.stack([np.sin(t), np.cos(t)], 1))
    assert len(set(begun[:3])) == 3
    assert begun[3] == begun[1]
    assert begun[7] == begun[5]
    np.testing.assert_allclose(model.history_["loss"], [2.5, 5.0])  # of one output, then of both


def test_variances_are_never_negative() -> None:
    """At an observed point without noise rounding may leave less than nothing."""
    eye = torch.eye(3, dtype=torch.float64)
    _, variance = Posterior(eye, eye[0]).marginals((1 + 1e-12) * eye, torch.ones(3).double())
    assert (variance == 0).all()


def test_the_period_is_that_of_the_highest_peak(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an oscillation that outputs share; the evidence may then move it by a fifth."""
    name = "deeplfm.paper.baselines.exact_gp.dominant_oscillation"
    monkeypatch.setattr(name, lambda x, y: None)
    x = torch.linspace(0, 1, 200, dtype=torch.float64)[:, None]
    y = torch.sin(2 * math.pi * x / 0.125) + 0.3 * torch.sin(2 * math.pi * x / 0.04)
    task = Task(x, y, torch.ones_like(y, dtype=torch.bool), 0, False)
    period = dominant_period(task)
    assert period == pytest.approx(0.125, rel=0.06)  # half of a step of the spectrum, 1 in 8
    starts, bounds = PeriodicGP()._starts(task, 0)
    np.testing.assert_allclose(starts[:, 1].exp(), period)
    np.testing.assert_allclose(bounds[1].exp(), [period / 1.2, period * 1.2])


def test_gradient_of_the_evidence() -> None:
    random = torch.Generator().manual_seed(0)
    root = torch.randn(4, 4, generator=random, dtype=torch.float64)
    y = torch.randn(4, generator=random, dtype=torch.float64)

    def loss(a: torch.Tensor) -> torch.Tensor:
        return negative_log_evidence(a @ a.T + torch.eye(4, dtype=torch.float64), y)

    assert torch.autograd.gradcheck(loss, root.requires_grad_())


def test_hyperparameters_are_found() -> None:
    """No neighbour is better: the evidence is at a maximum inside the bounds."""
    t = np.linspace(0, 1, 60)
    y = np.sin(9 * t) + 0.2 * np.random.default_rng(1).normal(size=60)
    model = ExactGP()
    model.fit(t, y)
    state, best = model.fitted_.state, model.history_["loss"][-1]
    x, targets = state["x"], state["y"][:, 0]
    for k in range(3):
        for step in (-0.3, 0.3):
            theta = state["theta"][0].clone()
            theta[k] += step
            K = model._kernel(theta, x[:, None] - x[None])
            moved = negative_log_evidence(K + theta[-1].exp() * torch.eye(60).double(), targets)
            assert moved > best
    noise = float(model.fitted_.scaling.target_std[0] * (state["theta"][0, -1] / 2).exp())
    assert noise == pytest.approx(
        0.2, rel=5 / math.sqrt(2 * 50)
    )  # 60 values, 10 spent on the curve


@pytest.mark.parametrize("cls", [ExactGP, PeriodicGP])
def test_gaps_equal_dropped_rows(cls: type[ExactGP] | type[PeriodicGP]) -> None:
    """Each output only sees its own rows, however they are laid out."""
    t = np.linspace(0, 1, 40)
    y = np.stack([np.sin(30 * t), np.cos(30 * t)], 1)
    y += 0.2 * np.random.default_rng(0).normal(size=y.shape)
    y[10:20, 0] = np.nan
    rows = ~np.isnan(y[:, 0])
    apart = np.full((30 + 40, 2), np.nan)
    apart[:30, 0], apart[30:, 1] = y[rows, 0], y[:, 1]
    together = cls(steps=5).fit(t, y).predictive(t)
    dropped = cls(steps=5).fit(np.concatenate([t[rows], t]), apart).predictive(t)
    # The same numbers up to rounding, which five steps may raise a thousandfold each.
    np.testing.assert_allclose(together.mean, dropped.mean, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(together.std, dropped.std, rtol=1e-6)


def test_lags_of_a_grid_are_few_and_right() -> None:
    x = torch.linspace(0, 1, 30, dtype=torch.float64)
    lags, index = distinct_lags(x)
    assert len(lags) == 59
    torch.testing.assert_close(lags[index], x[:, None] - x[None], rtol=0, atol=1e-15)


def test_periodic_gp_carries_a_pattern_into_a_gap() -> None:
    t = np.linspace(0, 20, 200)
    truth = np.exp(np.sin(2 * np.pi * t / 2.5))
    y = truth + 0.1 * np.random.default_rng(0).normal(size=200)
    gap = (t > 8) & (t < 13)
    y[gap] = np.nan
    model = PeriodicGP(steps=40).fit(t, y)
    p = model.predictive(t[gap])
    # Six other periods, each with noise 0.1: far below the pattern's own spread.
    assert np.sqrt(((p.mean[:, 0] - truth[gap]) ** 2).mean()) < 0.1
    assert (
        ExactGP(steps=40).fit(t, y).score(t[gap], truth[gap])
        < 0.5
        < model.score(t[gap], truth[gap])
    )
    period = float(model.fitted_.state["theta"][0, 1].exp() * 20)
    assert min(abs(period - 2.5 * k) for k in (1, 2)) < 0.05


def test_kernels_are_those_of_gpytorch() -> None:
    kernels = pytest.importorskip("gpytorch.kernels")
    theta = torch.tensor([0.8, 0.2, 0.6, 0.9, 0.3, 0.05, 0.1], dtype=torch.float64).log()
    x = torch.linspace(0, 1, 9, dtype=torch.float64)[:, None]
    wave, memory, rest = (
        kernel.double()
        for kernel in (kernels.PeriodicKernel(), kernels.RBFKernel(), kernels.RBFKernel())
    )
    period, memory.lengthscale, rest.lengthscale = theta[[1, 3, 5]].exp()
    wave.period_length, wave.lengthscale = period, (2 * theta[2]).exp()  # not squared there
    parts = [kernel(x).to_dense() for kernel in (wave, memory, rest)]
    expected = 0.8 * parts[0] * parts[1] + 0.3 * parts[2]
    torch.testing.assert_close(PeriodicGP()._kernel(theta, x[:, None] - x[None]), expected)


def test_errors_say_what_to_do() -> None:
    X, y = plane()
    with pytest.raises(dlfm.InputError, match="PeriodicGP is for a series: X must have 1 input"):
        PeriodicGP().fit(X, y)
    with pytest.raises(dlfm.InputError, match="steps must be an integer of at least 1; got 0"):
        ExactGP(steps=0).fit(X, y)
    many = np.linspace(0, 1, 10_001)
    with pytest.raises(dlfm.InputError, match=r"at most 10000 rows; got 10001\. Use SVGP"):
        ExactGP().fit(many, many)
    with pytest.raises(dlfm.InputError, match="3 observations or more"):
        PeriodicGP().fit([0.0, 1.0], [1.0, 2.0])
