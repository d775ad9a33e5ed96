"""The mixture against SciPy, brute-force integration and sampling; metrics against their words."""

from typing import Any

import numpy as np
import pytest
import scipy.integrate
import scipy.stats

import deeplfm as dlfm
from deeplfm.evaluation import NormalComponents, metrics
from deeplfm.evaluation.predictive import Predictive
from mixtures import mixture

SAMPLES = np.random.default_rng(0).normal(size=(7, 3, 2)) * np.array([1.0, 5.0])
NOISE = np.array([0.3, 2.0])
Y = np.array([[0.2, -3.0], [np.nan, 4.0], [1.5, 0.1]])


def component(degrees: float | None, f: Any, noise: Any) -> Any:
    if degrees is None:
        return scipy.stats.norm(f, noise)
    return scipy.stats.t(degrees, f, noise)


@pytest.mark.parametrize("degrees", [None, 4.0])
def test_mixture_is_the_mean_of_its_components(degrees: float | None) -> None:
    p = mixture(SAMPLES, NOISE, degrees)
    for n in range(3):
        for d in range(2):
            parts = [component(degrees, SAMPLES[s, n, d], NOISE[d]) for s in range(7)]
            density = np.mean([part.pdf(Y[n, d]) for part in parts])
            assert p.log_density(Y)[n, d] == pytest.approx(np.log(density), nan_ok=True)
            second = np.mean([part.var() + part.mean() ** 2 for part in parts])
            exact = np.sqrt(second - np.mean([part.mean() for part in parts]) ** 2)
            assert p.std[n, d] == pytest.approx(exact)
            for level in (0.05, 0.5, 0.99):
                at = p.quantile(level)[n, d]
                assert np.mean([part.cdf(at) for part in parts]) == pytest.approx(level, abs=1e-10)


@pytest.mark.parametrize(("degrees", "bar"), [(None, 1e-6), (4.0, 2e-2)])
def test_crps_is_its_integral(degrees: float | None, bar: float) -> None:
    """CRPS = ∫ (F(z) - 1[y ≤ z])² dz; 199 levels leave the tails of a Student-t short."""
    p = mixture(SAMPLES, NOISE, degrees)
    got = p.crps(Y)
    assert np.isnan(got[1, 0])
    for n, d in ((0, 0), (2, 1)):
        parts = [component(degrees, SAMPLES[s, n, d], NOISE[d]) for s in range(7)]

        def square(z: float, parts: list = parts, y: float = Y[n, d]) -> float:  # type: ignore[type-arg]
            return float((np.mean([part.cdf(z) for part in parts]) - (y <= z)) ** 2)

        left, _ = scipy.integrate.quad(square, -60, Y[n, d], limit=200)
        right, _ = scipy.integrate.quad(square, Y[n, d], 60, limit=200)
        assert got[n, d] == pytest.approx(left + right, rel=bar)


def test_a_mixture_of_gaussians_in_closed_form() -> None:
    """scale [S, N, D]: every component has its own deviation at every point."""
    deviations = 0.2 + np.random.default_rng(1).uniform(size=SAMPLES.shape)
    p = mixture(SAMPLES, deviations)
    lower, upper = p.interval(0.8)
    for n, d in np.ndindex(3, 2):
        parts = scipy.stats.norm(SAMPLES[:, n, d], deviations[:, n, d])
        assert p.mean[n, d] == pytest.approx(SAMPLES[:, n, d].mean())
        second = (deviations[:, n, d] ** 2 + SAMPLES[:, n, d] ** 2).mean()
        assert p.std[n, d] == pytest.approx(np.sqrt(second - p.mean[n, d] ** 2))
        density = np.log(parts.pdf(Y[n, d]).mean())
        assert p.log_density(Y)[n, d] == pytest.approx(density, nan_ok=True)
        assert p.cdf(Y)[n, d] == pytest.approx(parts.cdf(Y[n, d]).mean(), nan_ok=True)
        assert parts.cdf(lower[n, d]).mean() == pytest.approx(0.1, abs=1e-10)
        assert parts.cdf(upper[n, d]).mean() == pytest.approx(0.9, abs=1e-10)
    many = 3000
    drawn = mixture(np.repeat(SAMPLES, many, 0), np.repeat(deviations, many, 0)).sample_y(1)
    inside = ((drawn >= lower) & (drawn <= upper)).mean(0)
    assert np.abs(inside - 0.8).max() <= 5 * np.sqrt(0.8 * 0.2 / len(drawn))


def test_crps_of_gaussians_in_closed_form() -> None:
    """Of one Gaussian by the textbook; of several by its integral."""
    center, std = SAMPLES[:1], 0.2 + np.random.default_rng(2).uniform(size=(1, 3, 2))
    z = (Y - center[0]) / std[0]
    normal = scipy.stats.norm
    exact = std[0] * (z * (2 * normal.cdf(z) - 1) + 2 * normal.pdf(z) - 1 / np.sqrt(np.pi))
    np.testing.assert_allclose(mixture(center, std).crps(Y), exact, rtol=1e-12)
    deviations = 0.2 + np.random.default_rng(1).uniform(size=SAMPLES.shape)
    parts = normal(SAMPLES[:, 2, 1], deviations[:, 2, 1])

    def square(at: float) -> float:
        return float((parts.cdf(at).mean() - (Y[2, 1] <= at)) ** 2)

    left, _ = scipy.integrate.quad(square, -60, Y[2, 1], limit=200)
    right, _ = scipy.integrate.quad(square, Y[2, 1], 60, limit=200)
    assert mixture(SAMPLES, deviations).crps(Y)[2, 1] == pytest.approx(left + right, rel=1e-6)


def test_noise_free_predictions() -> None:
    p = Predictive.without_noise(SAMPLES)
    np.testing.assert_allclose(p.std, SAMPLES.std(0))
    np.testing.assert_allclose(p.quantile(0.5), np.median(SAMPLES, 0))
    differences = np.abs(SAMPLES[:, None] - SAMPLES[None]).mean((0, 1)) / 2
    np.testing.assert_allclose(p.crps(Y), np.abs(SAMPLES - Y).mean(0) - differences)
    with pytest.raises(dlfm.InputError, match="a density needs observation noise"):
        p.log_density(Y)


@pytest.mark.parametrize("degrees", [None, 4.0])
def test_sampled_targets_fill_the_interval(degrees: float | None) -> None:
    samples = np.repeat(SAMPLES, 3000, axis=0)
    y = mixture(samples, NOISE, degrees).sample_y(seed=1)
    lower, upper = mixture(SAMPLES, NOISE, degrees).interval(0.8)
    inside = ((y >= lower) & (y <= upper)).mean(0)
    assert np.abs(inside - 0.8).max() <= 5 * np.sqrt(0.8 * 0.2 / len(y))
    assert not np.array_equal(y, mixture(samples, NOISE, degrees).sample_y(seed=2))


@pytest.mark.parametrize("degrees", [None, 4.0])
def test_members_of_a_mixture_keep_their_own_noise(degrees: float | None) -> None:
    """One member with little noise, one with much: a density is the mean of all densities."""
    quiet, loud = (mixture(SAMPLES, noise, degrees) for noise in (0.1 * NOISE, 3 * NOISE))
    joined = quiet.components.followed_by([loud.components])
    assert type(joined) is type(quiet.components)
    p = Predictive(np.concatenate([SAMPLES, SAMPLES]), joined)
    noises = (0.1 * NOISE, 3 * NOISE)
    parts = [component(degrees, SAMPLES[s], noise) for noise in noises for s in range(7)]
    density = np.mean([part.pdf(Y) for part in parts], axis=0)
    np.testing.assert_allclose(p.log_density(Y), np.log(density))
    second = np.mean([part.var() + part.mean() ** 2 for part in parts], axis=0)
    np.testing.assert_allclose(p.std, np.sqrt(second - SAMPLES.mean(0) ** 2))
    below = np.mean([part.cdf(p.quantile(0.2)) for part in parts], axis=0)
    np.testing.assert_allclose(below, 0.2)
    drawn = p.sample_y(0)
    assert np.abs(drawn[:7] - SAMPLES).max() < np.abs(drawn[7:] - SAMPLES).max()


def test_members_of_other_families_follow_each_other() -> None:
    normal, student = (mixture(SAMPLES, NOISE, degrees).components for degrees in (None, 4.0))
    other = mixture(SAMPLES, NOISE, 9.0).components
    joined = normal.followed_by([student, other])
    p = Predictive(np.concatenate([SAMPLES] * 3), joined)
    parts = [
        component(degrees, SAMPLES[s], NOISE) for degrees in (None, 4.0, 9.0) for s in range(7)
    ]
    density = np.mean([part.pdf(Y) for part in parts], axis=0)
    np.testing.assert_allclose(p.log_density(Y), np.log(density))
    np.testing.assert_allclose(p.components.variance.shape, p.samples.shape)
    for level in (0.02, 0.7):
        below = np.mean([part.cdf(p.quantile(level)) for part in parts], axis=0)
        np.testing.assert_allclose(below, level)
    assert student.followed_by([other]).mean.shape == (14, 3, 2)
    assert not isinstance(student.followed_by([other]), type(student))


def test_rows_and_outputs_by_name() -> None:
    p = Predictive(SAMPLES, NormalComponents(SAMPLES, NOISE), ("a", "b"), seed=5)
    assert p["b"].names == ("b",)
    assert p["b"].seed == 5
    np.testing.assert_array_equal(p["b"].std, p.std[:, 1:])
    np.testing.assert_array_equal(p[1:].interval()[0], p.interval()[0][1:])
    np.testing.assert_array_equal(p[np.array([True, False, True])].mean, p.mean[[0, 2]])
    np.testing.assert_array_equal(p[2].mean, p.mean[2:])
    np.testing.assert_array_equal(p["a"][:2].log_density(Y[:2, :1]), p.log_density(Y)[:2, :1])
    own = Predictive(SAMPLES, NormalComponents(SAMPLES, 0.1 + np.abs(SAMPLES)))
    np.testing.assert_array_equal(own[1:].select(outputs=slice(1, 2)).std, own.std[1:, 1:])
    with pytest.raises(dlfm.InputError, match=r"must be among \['a', 'b'\]; got 'c'"):
        p["c"]


def test_metrics_are_their_words() -> None:
    p = mixture(SAMPLES, NOISE)
    for d in range(2):
        rows = ~np.isnan(Y[:, d])
        y, mean = Y[rows, d], p.mean[rows, d]
        assert metrics.rmse(Y, p.mean)[d] == pytest.approx(np.sqrt(((y - mean) ** 2).mean()))
        exact = ((y - mean) ** 2).mean() / ((y - y.mean()) ** 2).mean()
        assert metrics.nmse(Y, p.mean)[d] == pytest.approx(exact)
        assert metrics.mnll(Y, p)[d] == pytest.approx(-p.log_density(Y)[rows, d].mean())
        assert metrics.crps(Y, p)[d] == pytest.approx(p.crps(Y)[rows, d].mean())
        lower, upper = p.interval(0.5)
        inside = (y >= lower[rows, d]) & (y <= upper[rows, d])
        assert metrics.coverage(Y, p, 0.5)[d] == pytest.approx(inside.mean())


def test_bad_input() -> None:
    p = mixture(SAMPLES, NOISE)
    with pytest.raises(dlfm.InputError, match="probability must be between 0 and 1; got 90"):
        p.interval(90)
    with pytest.raises(dlfm.InputError, match=r"y must be \[3, 2\] as the prediction is"):
        p.log_density(Y[:, :1])
    with pytest.raises(dlfm.InputError, match=r"must both be \[N, D\]"):
        metrics.rmse(Y[:, 0], p.mean)
    with pytest.raises(dlfm.InputError, match="every output must have an observed target"):
        metrics.nmse(Y * np.array([np.nan, 1.0]), p.mean)


def test_quantiles_of_the_distribution_function_come_back() -> None:
    """For noise of each sample's own, and a level far in the tail."""
    noise = np.linspace(0.1, 3, 14).reshape(7, 1, 2)
    for degrees in (None, 3.0):
        p = mixture(SAMPLES, noise, degrees)
        for level in (1e-6, 0.3, 0.999):
            np.testing.assert_allclose(p.cdf(p.quantile(level)), level, rtol=1e-6)
    lower, upper = p.interval(0.6)
    np.testing.assert_allclose(p.cdf(lower), 0.2, rtol=1e-8)
    np.testing.assert_allclose(p.cdf(upper), 0.8, rtol=1e-8)


def test_samples_of_targets_repeat_with_their_seed() -> None:
    own = mixture(SAMPLES, NOISE)
    p, other = (Predictive(own.samples, own.components, seed=seed) for seed in (3, 4))
    np.testing.assert_array_equal(p.sample_y(), p.sample_y(seed=3))
    np.testing.assert_array_equal(p.sample_y(seed=4), other.sample_y())
    assert not np.array_equal(p.sample_y(), other.sample_y())


def test_coverage_is_over_what_was_observed() -> None:
    """Ten targets of which four are known, one of these outside: three quarters."""
    p = mixture(np.zeros((1, 10, 1)), np.ones(1))
    y = np.full((10, 1), np.nan)
    y[[0, 3, 5, 9], 0] = [0.1, -0.3, 9.0, 0.2]
    assert metrics.coverage(y, p, 0.5).tolist() == [0.75]
    skewed = np.array([[0.0], [0.0], [0.0], [10.0]])  # the mean is no median
    assert metrics.nmse(skewed, skewed + 1).tolist() == [pytest.approx(4 / 75)]
    assert metrics.rmse(skewed, skewed - 3).tolist() == [3.0]
