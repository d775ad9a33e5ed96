"""The PIT and the coverage that are drawn are those of the metrics, with bands that hold."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from deeplfm import plotting
from deeplfm.errors import InputError
from deeplfm.evaluation import metrics
from deeplfm.plotting.calibration import LEVELS, binomial_band
from mixtures import mixture
from pictures import RANDOM, X, Y, line, prediction, render, texts


def test_calibration_counts_what_the_metrics_count() -> None:
    p = prediction()
    y = p.sample_y(seed=3)[0]
    y[:7, 0] = np.nan
    histogram, coverage = plotting.plot_calibration(p, y)
    render(coverage)
    level = 28  # of probability 0.7
    for k, name in enumerate(p.names):
        curve = line(coverage, name).get_ydata()
        assert curve[level] == pytest.approx(metrics.coverage(y, p, LEVELS[level])[k])
    seen = ~np.isnan(y)
    lower, upper = p.interval(LEVELS[level])
    inside = ((y >= lower) & (y <= upper))[seen].mean()
    assert line(coverage, "all targets").get_ydata()[level] == pytest.approx(inside)
    pooled, *each = histogram.patches[1:]  # the first is the band
    values, edges, _ = pooled.get_data()
    pit = p.cdf(y)[seen]
    np.testing.assert_allclose(values, np.histogram(pit, edges, density=True)[0])
    assert len(each) == 2
    np.testing.assert_allclose(
        each[0].get_data().values,
        np.histogram(p.cdf(y)[seen[:, 0], 0], edges, density=True)[0],
    )


def test_calibration_bands_hold_what_is_calibrated() -> None:
    low, high = binomial_band(200, LEVELS)
    assert low[0] == high[0] == 0
    assert low[-1] == high[-1] == 1
    shares = np.random.default_rng(1).binomial(200, LEVELS[20], 4000) / 200
    inside = ((shares >= low[20]) & (shares <= high[20])).mean()
    assert 0.9 - 3 * 0.005 < inside < 0.95  # at least, as counts are whole
    (band,) = plotting.plot_calibration(prediction(), Y)[1].collections
    low, high = binomial_band(int((~np.isnan(Y)).sum()), LEVELS)
    corners = {tuple(corner) for corner in band.get_paths()[0].vertices}
    assert set(zip(LEVELS, high, strict=True)) <= corners
    assert set(zip(LEVELS, low, strict=True)) <= corners


def test_calibration_of_one_and_of_many_outputs() -> None:
    one = mixture(RANDOM.standard_normal((5, 30, 1)), np.ones(1))
    assert texts(plotting.plot_calibration(one, X)[1]) == ["if calibrated", "all targets"]
    many = mixture(RANDOM.standard_normal((5, 30, 12)), np.ones(12))
    y = many.samples[0].copy()
    y[:, 3] = np.nan  # never observed
    _, coverage = plotting.plot_calibration(many, y)
    assert texts(coverage) == ["if calibrated", "all targets", "each output"]
    assert len(coverage.lines) == 2 + 11
    twins = mixture(many.samples[:, :, :2], np.ones(2), None, ("same", "same"))
    assert len(plotting.plot_calibration(twins, y[:, :2])[1].lines) == 2 + 2


def test_calibration_needs_targets_and_noise() -> None:
    p = prediction()
    with pytest.raises(InputError, match="got none"):
        plotting.plot_calibration(p, np.full((30, 2), np.nan))
    with pytest.raises(InputError, match=r"y must be \[30, 2\]"):
        plotting.plot_calibration(p, Y.T)
    with pytest.raises(InputError, match="needs observation noise"):
        plotting.plot_calibration(prediction(noise=0.0), Y)
    with pytest.raises(InputError, match="2 matplotlib Axes"):
        plotting.plot_calibration(p, Y, axes=Figure().subplots())
