"""What must hold of every likelihood: density, cdf, sampling and moments are of one distribution.

Those of the package and those of users, through the components that predictions are made of.
"""

from typing import Any

import numpy as np
import pytest
import scipy.integrate
import scipy.stats
import torch

from deeplfm.data import Scaling
from deeplfm.evaluation import Components, Predictive
from deeplfm.likelihoods import Gaussian, Likelihood, StudentT
from deeplfm.likelihoods.components import LikelihoodComponents
from own_likelihoods import Geometric, Laplace, LogNormal

NOISE = torch.tensor([0.04, 2.0], dtype=torch.float64)
LIKELIHOODS: dict[str, Likelihood] = {
    "gaussian": Gaussian(NOISE),
    "student": StudentT(NOISE, degrees=5.0),
    "laplace": Laplace(NOISE),
    "log_normal": LogNormal(),
    "geometric": Geometric(torch.tensor([0.5, 3.0], dtype=torch.float64)),
}
every = pytest.mark.parametrize("name", list(LIKELIHOODS))
FUNCTIONS = np.random.default_rng(0).normal(size=(3, 4, 2)) * np.array([0.5, 1.5])


def scaling(likelihood: Likelihood) -> Scaling:
    """Targets in units of 7 and 0.3 about -2 and 90, where they may be."""
    origin, unit = np.zeros(1), np.ones(1)
    functions = np.array([-2.0, 90.0]), np.array([7.0, 0.3])
    if likelihood.standardises_targets:
        return Scaling(origin, unit, *functions, *functions)
    return Scaling(origin, unit, np.zeros(2), np.ones(2), np.zeros(2), np.ones(2))


def components(name: str, *, closed: bool = True) -> Components:
    """Those that the likelihood gives, or those made of its methods."""
    likelihood = LIKELIHOODS[name]
    units = scaling(likelihood)
    functions = units.functions(FUNCTIONS)
    if closed:
        return likelihood.components(functions, units)
    return Likelihood.components(likelihood, functions, units)


@every
@pytest.mark.parametrize("closed", [True, False])
def test_the_cdf_is_the_integral_of_the_density(name: str, closed: bool) -> None:
    found = components(name, closed=closed)
    std, mean = np.sqrt(found.variance) + 0 * found.mean, found.mean
    for s, n, d in ((0, 0, 0), (2, 3, 1)):

        def density(y: float, s: int = s, n: int = n, d: int = d) -> float:
            return float(found.density(np.full((4, 2), y))[s, n, d])

        low, high = found.quantile(1e-9)[n, d], mean[s, n, d] + 0.7 * std[s, n, d]
        at = np.full((4, 2), high)
        if found.support.whole:
            total = sum(density(float(k)) for k in range(int(high) + 1))
        else:
            low = max(found.support.low, mean[s, n, d] - 40 * std[s, n, d])
            middle = min(mean[s, n, d], high)  # where a Laplace has its peak
            total = sum(
                scipy.integrate.quad(density, *ends, limit=200, epsabs=1e-11)[0]
                for ends in ((low, middle), (middle, high))
            )
        assert found.cdf(at)[s, n, d] == pytest.approx(total, abs=2e-5)  # tails of a Student-t


@every
@pytest.mark.parametrize("closed", [True, False])
def test_samples_have_the_cdf(name: str, closed: bool) -> None:
    """Uniform PITs by Kolmogorov and Smirnov; the steps of whole numbers by chi-square."""
    found = components(name, closed=closed)
    draws = np.stack([found.sample(seed) for seed in range(3000)])
    for s, n, d in ((0, 0, 0), (2, 3, 1)):
        own = draws[:, s, n, d]
        if found.support.whole:
            edges = np.unique([np.quantile(own, q) for q in (0.2, 0.5, 0.8)])
            cdf = [found.cdf(np.full((4, 2), edge))[s, n, d] for edge in edges]
            expected = np.diff([0.0, *cdf, 1.0])
            counts = np.diff([0, *[(own <= edge).sum() for edge in edges], len(own)])
            kept = expected > 0
            value = scipy.stats.chisquare(counts[kept], len(own) * expected[kept]).pvalue
        else:

            def cdf_at(y: Any, s: int = s, n: int = n, d: int = d) -> Any:
                return np.array([found.cdf(np.full((4, 2), one))[s, n, d] for one in y])

            value = scipy.stats.kstest(own, cdf_at).pvalue
        assert value > 1e-4


@every
@pytest.mark.parametrize("closed", [True, False])
def test_moments_are_those_of_samples(name: str, closed: bool) -> None:
    found = components(name, closed=closed)
    draws = np.stack([found.sample(seed) for seed in range(4000)])
    variance = np.broadcast_to(found.variance, found.mean.shape)
    error = np.abs(draws.mean(0) - found.mean) / np.sqrt(variance / len(draws))
    assert error.max() < 5
    fourth = ((draws - found.mean) ** 4).mean(0)
    error = np.abs(draws.var(0) - variance) / np.sqrt(fourth / len(draws))
    assert error.max() < 5


@pytest.mark.parametrize("name", ["gaussian", "student"])
def test_closed_forms_are_those_of_the_methods(name: str) -> None:
    closed, general = components(name), components(name, closed=False)
    assert not isinstance(closed, LikelihoodComponents)
    y = np.random.default_rng(1).normal(size=(4, 2)) * [7.0, 0.3] + [-2.0, 90.0]
    y[0, 0] = np.nan
    np.testing.assert_allclose(general.log_density(y), closed.log_density(y), rtol=1e-9)
    np.testing.assert_allclose(general.cdf(y), closed.cdf(y), rtol=1e-9, atol=1e-14)
    np.testing.assert_allclose(general.mean, closed.mean)
    for level in (0.01, 0.5, 0.9):
        np.testing.assert_allclose(general.quantile(level), closed.quantile(level), rtol=1e-8)
    # The 199 levels of the general form leave tails short.
    np.testing.assert_allclose(general.crps(y), closed.crps(y), rtol=0.03)


@every
def test_rows_and_outputs_are_chosen(name: str) -> None:
    for closed in (True, False):
        found = components(name, closed=closed)
        y = np.array([0.0, 90.0]) + np.arange(8.0).reshape(4, 2)
        rows, outputs = np.array([3, 1]), np.array([1])
        part = found.select(rows, outputs)
        np.testing.assert_array_equal(part.mean, found.mean[:, rows][:, :, outputs])
        chosen = y[rows][:, outputs]
        for method in ("cdf", "log_density"):
            whole = getattr(found, method)(y)
            np.testing.assert_allclose(
                getattr(part, method)(chosen), whole[:, rows][:, :, outputs], rtol=1e-12
            )
        np.testing.assert_allclose(part.quantile(0.3), found.quantile(0.3)[rows][:, outputs])


@pytest.mark.parametrize("name", ["laplace", "log_normal"])
def test_quantiles_of_any_family(name: str) -> None:
    found = components(name)
    for level in (1e-6, 0.05, 0.5, 0.999):
        at = found.quantile(level)
        np.testing.assert_allclose(found.cdf(at).mean(0), level, rtol=1e-7)


@every
def test_the_ends_of_the_line(name: str) -> None:
    found = components(name, closed=False)
    ends = np.array([[-np.inf, np.inf]] * 4)
    assert np.array_equal(found.cdf(ends), np.broadcast_to([0.0, 1.0], (3, 4, 2)))
    assert (found.log_density(ends) == -np.inf).all()


def test_members_without_a_closed_form_follow_each_other() -> None:
    """Two members with other ratios: every component keeps its own."""
    functions = FUNCTIONS
    first, second = Geometric(0.5).tiled(2), Geometric(8.0).tiled(2)
    units = scaling(first)
    joined = first.components(functions, units).followed_by([second.components(functions, units)])
    p = Predictive(np.concatenate([functions, functions]), joined)
    means = np.concatenate([ratio * np.exp(functions) for ratio in (0.5, 8.0)])
    parts: Any = scipy.stats.geom(1 / (1 + means), loc=-1)
    y = np.array([[0.0, 3.0], [1.0, 0.0], [2.0, 7.0], [5.0, np.nan]])
    np.testing.assert_allclose(p.log_density(y), np.log(parts.pmf(y).mean(0)), rtol=1e-9)
    np.testing.assert_allclose(p.mean, means.mean(0))
    np.testing.assert_allclose(p.std**2, parts.var().mean(0) + means.var(0))
    median = p.quantile(0.5)
    assert (parts.cdf(median).mean(0) >= 0.5).all()
    assert (parts.cdf(median - 1).mean(0) < 0.5).all()
    drawn = p.sample_y(0)
    assert drawn.shape == (6, 4, 2)
    twins = first.components(functions, units).followed_by([first.components(functions, units)])
    drawn = twins.sample(0)
    assert not np.array_equal(drawn[:3], drawn[3:])  # each member has random numbers of its own
    np.testing.assert_allclose(p[1:3].cdf(y[1:3]), p.cdf(y)[1:3])
