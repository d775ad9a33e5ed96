"""Mixtures over whole numbers, and the values that targets can have."""

import math

import numpy as np
import pytest
import scipy.stats

from deeplfm.evaluation import Components, Predictive, Support
from deeplfm.evaluation.components import ALL, Chosen, Values
from deeplfm.evaluation.support import REAL_LINE


class Binomials(Components):
    """Successes of `trials`, [S, N, D] chances: a family as a user may write it."""

    def __init__(self, chances: Values, trials: int, low: float = 0) -> None:
        self.chances, self.trials, self.low = chances, trials, low
        self.family = scipy.stats.binom(trials, chances, loc=low)

    @property
    def support(self) -> Support:
        return Support(self.low, self.low + self.trials, whole=True)

    @property
    def mean(self) -> Values:
        return np.asarray(self.family.mean())

    @property
    def variance(self) -> Values:
        return np.asarray(self.family.var())

    def cdf(self, y: Values) -> Values:
        return np.where(np.isnan(y), np.nan, self.family.cdf(y))

    def log_density(self, y: Values) -> Values:
        return np.where(np.isnan(y), np.nan, self.family.logpmf(y))

    def sample(self, seed: int) -> Values:
        drawn = np.random.default_rng(seed).binomial(self.trials, self.chances) + self.low
        return np.asarray(drawn, dtype=float)

    def select(self, rows: Chosen = ALL, outputs: Chosen = ALL) -> "Binomials":
        return Binomials(self.chances[:, rows][:, :, outputs], self.trials, self.low)


CHANCES = np.random.default_rng(0).uniform(size=(5, 4, 2)) ** 2
LEVELS = (1e-9, 0.05, 0.5, 0.9, 1 - 1e-9)


def prediction(trials: int, low: float = 0, chances: Values = CHANCES) -> Predictive:
    return Predictive(chances, Binomials(chances, trials, low))


@pytest.mark.parametrize(("trials", "low"), [(1, 0), (1, -7), (12, 0), (100_000, 3)])
def test_quantiles_are_the_least_whole_numbers(trials: int, low: int) -> None:
    p = prediction(trials, low)
    for level in LEVELS:
        found = p.quantile(level)
        assert np.array_equal(found, np.floor(found))
        assert (found >= low).all()
        assert (p.cdf(found) >= level).all()
        assert (p.cdf(found - 1) < level).all()


def test_quantiles_do_not_rely_on_exact_moments(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = prediction(50).quantile(0.99)
    wrong = property(lambda self: np.full(self.chances.shape, 1e-3))
    monkeypatch.setattr(Binomials, "variance", wrong)
    monkeypatch.setattr(Binomials, "mean", property(lambda self: np.full(self.chances.shape, 2.0)))
    assert np.array_equal(prediction(50).quantile(0.99), exact)


def test_a_chance_of_zero_or_one_is_sure() -> None:
    chances = np.broadcast_to(np.array([[0.0], [1.0]]), (3, 2, 1))
    p = prediction(4, chances=chances)
    for level in LEVELS:
        assert p.quantile(level).ravel().tolist() == [0, 4]
    assert p.crps([[0.0], [4.0]]).ravel().tolist() == pytest.approx([0, 0], abs=1e-12)
    assert p.crps([[3.0], [2.5]]).ravel().tolist() == pytest.approx([3, 1.5])


@pytest.mark.parametrize("trials", [3, 40])
def test_crps_is_its_integral(trials: int) -> None:
    """∫ (F(z) - 1[y ≤ z])² dz; a y between whole numbers, or beyond the last, is one too."""
    p = prediction(trials)
    y = np.array([[0.0, 1.0], [2.0, np.nan], [0.3, 1.7], [trials + 5.0, -2.5]])
    z = np.arange(-4, trials + 8, 0.1) + 0.05
    square = [(p.cdf(np.full((4, 2), one)) - (y <= one)) ** 2 for one in z]
    exact = np.where(np.isnan(y), np.nan, 0.1 * np.sum(square, axis=0))
    np.testing.assert_allclose(p.crps(y), exact, rtol=1e-6, atol=1e-6)


def test_crps_of_large_counts_comes_from_quantiles() -> None:
    many = prediction(10**9, chances=0.4 + 0.2 * CHANCES)
    y = np.full((4, 2), 4.4e8)
    small = prediction(10**6, chances=0.4 + 0.2 * CHANCES).crps(y / 1e3)
    np.testing.assert_allclose(many.crps(y) / 1e3, small, rtol=0.01)


def test_the_pit_of_counts_is_spread_over_their_steps() -> None:
    """With the true distribution it is uniform; P(Y ≤ y) itself is far from it."""
    chances = np.full((1, 4000, 1), 0.1)
    p = prediction(5, chances=chances)
    y = p.sample_y(1)[0]
    pit = p.pit(y)
    assert (pit <= p.cdf(y)).all()
    assert (pit >= p.cdf(y - 1)).all()
    assert scipy.stats.kstest(pit.ravel(), "uniform").pvalue > 1e-4
    assert scipy.stats.kstest(p.cdf(y).ravel(), "uniform").pvalue < 1e-9
    assert np.isnan(p[:1].pit([[np.nan]])).all()


@pytest.mark.parametrize(
    ("support", "inside", "outside", "words"),
    [
        (REAL_LINE, [-1.5, 0.0, 1e9], [], "numbers"),
        (Support(low=0), [0.0, 0.5], [-0.1], "numbers of 0 or more"),
        (Support(high=2), [-7.5, 2.0], [2.1], "numbers of 2 or less"),
        (Support(0, 1), [0.0, 0.3, 1.0], [-0.1, 1.1], "numbers from 0 to 1"),
        (Support(0, whole=True), [0.0, 4.0], [0.5, -1.0], "whole numbers of 0 or more"),
        (Support(0, 1, whole=True), [0.0, 1.0], [0.5, 2.0], "whole numbers from 0 to 1"),
    ],
)
def test_supports(support: Support, inside: list[float], outside: list[float], words: str) -> None:
    assert support.contains(np.array([*inside, support.inside])).all()
    assert not support.contains(np.array([*outside, np.nan, np.inf, -np.inf])).any()
    assert support.in_words() == words
    line = support.to_line(np.array([*inside, np.nan]))
    assert np.isnan(line[-1])
    assert np.isfinite(line[:-1]).all()
    assert (np.diff(line[:-1]) > 0).all()


def test_supports_lie_on_the_line_by_logarithms_and_logits() -> None:
    y = np.array([0.0, 3.0])
    np.testing.assert_allclose(Support(0, whole=True).to_line(y), np.log(y + 0.5))
    np.testing.assert_allclose(Support(low=-1).to_line(y), np.log(y + 1))
    np.testing.assert_allclose(Support(high=4).to_line(y), -np.log(4 - y))
    np.testing.assert_allclose(Support(-1, 4).to_line(y), np.log([1 / 4, 4]))
    ends = Support(0, 1, whole=True).to_line(np.array([0.0, 1.0]))
    np.testing.assert_allclose(ends, [-math.log(3), math.log(3)])
