"""Simulated series have the covariances, steps and periods that they are said to have."""

import numpy as np
import pytest

from deeplfm.paper.datasets import general_series
from deeplfm.paper.datasets.general_series import (
    covariance,
    growth,
    mixing,
    panel,
    process,
    sales,
    walk,
)


@pytest.mark.parametrize(("kernel", "at_one"), [("rbf", 0.606531), ("matern32", 0.483358)])
def test_kernels_at_one_lengthscale(kernel: general_series.Kernel, at_one: float) -> None:
    """exp(-1/2), and (1 + √3) exp(-√3)."""
    found = covariance(kernel, np.array([0.0, 5.0, -5.0]), 5.0)
    np.testing.assert_allclose(found, [1, at_one, at_one], atol=1e-6)


@pytest.mark.parametrize("kernel", ["rbf", "matern32"])
def test_processes_have_their_covariance(kernel: general_series.Kernel) -> None:
    """Over 300 draws: variance, correlation of the outputs, and of neighbours; noise beside."""
    truths, noises = [], []
    for seed in range(300):
        series = process(kernel, seed)
        assert series.truth is not None
        truths.append(series.truth[::20])
        noises.append((series.values - series.truth).std())
    truth = np.stack(truths)  # draws, rows, outputs
    # Squares of 3600 numbers that are nearly independent scatter by √2/60.
    assert truth.var() == pytest.approx(1, abs=0.1)
    assert (truth[..., 0] * truth[..., 1]).mean() == pytest.approx(
        general_series.CORRELATION, abs=0.1
    )
    assert np.mean(noises) == pytest.approx(general_series.PROCESS_NOISE, rel=0.02)
    np.testing.assert_allclose((mixing() @ mixing().T)[0], [1, general_series.CORRELATION])


def test_a_walk_has_its_steps_and_its_noise() -> None:
    drawn = [walk(seed) for seed in range(50)]
    truths = [series.truth for series in drawn if series.truth is not None]
    steps = np.concatenate([np.diff(truth, axis=0) for truth in truths])
    noise = np.concatenate([s.values - truth for s, truth in zip(drawn, truths, strict=True)])
    assert steps.std() == pytest.approx(general_series.WALK_STEP, rel=0.03)
    assert noise.std() == pytest.approx(general_series.WALK_NOISE, rel=0.03)


def test_growth_is_logistic() -> None:
    """The log odds of what is grown are a straight line."""
    series = growth(1)
    assert series.truth is not None
    odds = np.log(series.truth / (1 - series.truth))[:, 0]
    np.testing.assert_allclose(np.diff(odds, 2), 0, atol=1e-9)
    assert np.diff(odds)[0] > 0
    assert (series.values - series.truth).std() == pytest.approx(0.03, rel=0.15)
    assert not np.array_equal(growth(2).values, series.values)


def test_sales_have_a_week_a_year_and_a_trend() -> None:
    truth = sales(0).truth
    assert truth is not None
    assert truth.shape == (730, 2)
    week = truth[7:] - truth[:-7]
    assert np.abs(week).max() < 3  # the pattern of a week has a range of about 20
    assert np.ptp(truth[:7], axis=0).min() > 10
    slope = np.polyfit(np.arange(365), truth[365:] - truth[:-365], 0)[0] / 365
    np.testing.assert_allclose(slope, [0.04, -0.01], atol=0.02)


def test_subjects_of_a_panel_decay_alike_and_swing_apart() -> None:
    truth = panel(0).truth
    assert truth is not None
    assert truth.shape == (40, 20)
    swings = truth * np.exp(np.arange(40) / 30)[:, None]
    # cos(ω(t+1) + φ) + cos(ω(t-1) + φ) = 2 cos ω cos(ωt + φ): the frequency of every subject.
    frequency = np.arccos(((swings[2:] + swings[:-2]) / swings[1:-1]).mean(0) / 2)
    assert frequency.std() / frequency.mean() == pytest.approx(0.15, rel=0.5)
    again = 2 * np.cos(frequency) * swings[1:-1] - swings[:-2]
    np.testing.assert_allclose(again, swings[2:], atol=1e-9)
