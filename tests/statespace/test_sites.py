"""Sites along readouts: exact where all is Gaussian, and near a long run of chains where not."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from deeplfm.statespace import Observations, Record, System
from deeplfm.statespace.sites import SitedPaths, by_quadrature, learnt, without_sites
from reference.annealed import CurvedSeries, Values
from statespace.test_system import some_rows, some_system

f64 = torch.float64
BEND = 0.3


class Curve:
    """One hidden mode at uneven times, seen through y = x + 0.3 x² with noise."""

    def __init__(self, size: float, noise: float, bend: float = BEND, count: int = 60) -> None:
        rng = np.random.default_rng(0)
        self.times = np.cumsum(rng.uniform(0.2, 0.8, count))
        lag = np.abs(self.times[:, None] - self.times)
        self.covariance = size**2 * np.exp(-0.1 * lag) * np.cos(lag) + 1e-10 * np.eye(count)
        x = np.linalg.cholesky(self.covariance) @ rng.standard_normal(count)
        self.y: Values = x + bend * x**2 + noise * rng.standard_normal(count)
        self.noise, self.bend = noise, bend
        decay, turn = torch.tensor([[0.1], [1.0]], dtype=f64)
        readout = torch.tensor([[size, 0.0]], dtype=f64)
        cut = Record(self.times, np.zeros(count, dtype=np.int64), self.y[:, None]).whole()
        none = torch.zeros(1, count, 1, 0, dtype=f64)
        self.rows = Observations(cut.timeline, cut.targets, cut.observed, none)
        system = System(decay, turn, None, readout, torch.ones(1, dtype=f64))
        self.start = without_sites(system, readout, self.rows)

    def log_density(self, x: Tensor) -> Tensor:
        left = (self.rows.targets - x - self.bend * x.square()) / self.noise
        return -left.square() / 2 - math.log(2 * math.pi * self.noise**2) / 2

    def sampled(self, chains: int, after: int) -> "tuple[float, float, Values, Values, Values]":
        series = CurvedSeries(self.covariance, self.y, self.bend, self.noise)
        found = series.sampled(chains, rungs=40, after=after, seed=0)
        return (found.log_evidence, found.error_of_evidence, found.mean, found.std,
                found.error_of_mean)  # fmt: skip


def gaussian(system: System, rows: Observations, mean: Tensor, variance: Tensor) -> Tensor:
    """E[log N(y; v, noise)]."""
    squared = (rows.targets - mean).square() + variance
    each = -(torch.log(2 * math.pi * system.noise) + squared / system.noise) / 2
    return torch.where(rows.observed, each, 0.0)


@pytest.mark.parametrize("lengths", [(25,), (12, 20)])
def test_one_whole_step_is_exact_where_all_is_gaussian(lengths: tuple[int, ...]) -> None:
    """Two outputs, uneven times, gaps; constants and lines of unknown weight."""
    system, rows = some_system(), some_rows(lengths)
    start = without_sites(system, system.loadings, rows)
    found = start.stepped(lambda m, v: gaussian(system, rows, m, v), 1.0)
    exact = float(system.evidence(rows).sum())
    bound = found.bound(lambda m, v: gaussian(system, rows, m, v))
    assert bound == pytest.approx(exact, rel=1e-8)
    smoothed = system.smooth(rows, system.loadings, rows.design)
    np.testing.assert_allclose(found.moments.mean, smoothed.mean, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(found.moments.variance, smoothed.variance, rtol=1e-6, atol=1e-6)


def test_a_model_with_gaussian_noise_is_its_own_sites() -> None:
    system, rows = some_system(), some_rows((25,))
    bound = SitedPaths(system, rows).bound(lambda m, v: gaussian(system, rows, m, v))
    assert bound == pytest.approx(float(system.evidence(rows).sum()), rel=1e-10)


def test_paths_without_sites_are_those_of_the_prior() -> None:
    start = Curve(0.7, 0.3).start
    assert abs(float(start.divergence())) < 1e-4  # the least sites are 1e-6 of what is known
    np.testing.assert_allclose(start.moments.variance, 0.49, rtol=1e-4)
    assert float(start.moments.mean.abs().max()) == 0


def test_a_divergence_is_that_of_two_dense_gaussians() -> None:
    curve = Curve(0.7, 0.3, count=20)
    rng = np.random.default_rng(1)
    width, target = (torch.tensor(part)[None, :, None] for part in rng.uniform(0.1, 1, (2, 20)))
    sites = replace(curve.rows, targets=target, scale=width)
    found = float(SitedPaths(curve.start.system, sites).divergence())
    K, W = torch.tensor(curve.covariance), torch.diag(width[0, :, 0])
    S = K - K @ torch.linalg.solve(K + W, K)
    mean = K @ torch.linalg.solve(K + W, target[0, :, 0])
    trace = torch.linalg.solve(K, S).trace() - 20
    expected = (trace + mean @ torch.linalg.solve(K, mean) + K.logdet() - S.logdet()) / 2
    assert found == pytest.approx(float(expected), rel=1e-5)


def test_a_parabola_is_followed_as_long_chains_do() -> None:
    """Means, standard deviations and the evidence; the bound is below it."""
    curve = Curve(0.7, 0.3)
    paths, bounds = learnt(curve.start, by_quadrature(curve.log_density))
    evidence, error, mean, std, error_of_mean = curve.sampled(300, 160)
    assert error < 0.05
    assert (error_of_mean / std).max() < 0.02
    own = paths.moments.mean[0, :, 0].numpy()
    size = paths.moments.variance[0, :, 0].sqrt().numpy()
    assert (np.abs(own - mean) / std).max() < 0.1
    assert (np.abs(size / std - 1)).max() < 0.15
    assert -4 * error < evidence - bounds[-1] < 0.5
    assert (np.diff(bounds) > 0).all()


def test_a_bound_stays_one_where_a_likelihood_is_convex() -> None:
    """Where the parabola turns a row may have been on either side of it."""
    curve = Curve(1.0, 0.3)
    paths, bounds = learnt(curve.start, by_quadrature(curve.log_density))
    evidence, error, *_ = curve.sampled(300, 4)
    assert error < 0.1
    assert -4 * error < evidence - bounds[-1] < 0.5
    assert bool((paths.width > 0).all())


def test_chains_find_an_evidence_that_is_known() -> None:
    curve = Curve(0.7, 0.3, bend=0.0, count=20)
    evidence, error, mean, std, error_of_mean = curve.sampled(100, 100)
    K = curve.covariance + 0.09 * np.eye(20)
    exact = -(curve.y @ np.linalg.solve(K, curve.y) + np.linalg.slogdet(2 * np.pi * K)[1]) / 2
    assert evidence == pytest.approx(exact, abs=4 * error + 1e-6)
    wanted = curve.covariance @ np.linalg.solve(K, curve.y)
    assert (np.abs(mean - wanted) < 5 * error_of_mean).all()
    across = curve.covariance @ np.linalg.solve(K, curve.covariance)
    np.testing.assert_allclose(std, np.sqrt(np.diag(curve.covariance - across)), rtol=0.05)


def test_what_is_not_observed_has_no_site() -> None:
    curve = Curve(0.7, 0.3)
    gone = curve.rows.observed.clone()
    gone[:, 20:30] = False
    rows = replace(curve.rows, observed=gone)
    start = without_sites(curve.start.system, curve.start.system.loadings, rows)
    density = by_quadrature(curve.log_density)
    paths, bounds = learnt(start, lambda m, v: torch.where(gone, density(m, v), 0.0))
    assert bool((paths.sites.targets[:, 20:30] == 0).all())
    assert bounds[-1] > bounds[0]
    spread = paths.moments.variance[0, :, 0]
    assert float(spread[25]) > 2 * float(spread[:20].max())


def test_quadrature_is_exact_for_polynomials() -> None:
    mean, variance = torch.tensor([[[0.4]]], dtype=f64), torch.tensor([[[0.3]]], dtype=f64)
    found = by_quadrature(lambda v: v**4)(mean, variance)
    exact = mean**4 + 6 * mean**2 * variance + 3 * variance**2
    np.testing.assert_allclose(found, exact, rtol=1e-12)
