"""The toy system against brute-force integration and known facts; the cardiac signals."""

from typing import Any

import numpy as np
import pytest
import scipy.integrate

import deeplfm as dlfm
from deeplfm.data import cardiac
from deeplfm.paper.datasets.toy import toy


def force(t: Any) -> Any:
    return np.cos(t / 2) + 6 * np.sin(3 * t)


def unscaled(series: Any, index: int) -> float:
    """Standardisation undone up to shift and scale: differences of two points, in ratios."""
    return float(series.truth[index, 0])


def test_equations_are_the_printed_ones() -> None:
    series = toy("equations", seed=3)
    t = np.linspace(0, 15, 750)
    exact = []
    for index in (100, 400, 700):
        inner, _ = scipy.integrate.quad(
            lambda tau, x=t[index]: np.exp(-0.01 * (x - tau)) * force(tau), 0, t[index], limit=200
        )
        outer, _ = scipy.integrate.quad(
            lambda tau, x=inner: np.exp(-0.02 * (x - tau)) * force(tau), 0, inner, limit=200
        )
        exact.append(outer)
    truth = [unscaled(series, index) for index in (100, 400, 700)]
    got = (truth[1] - truth[0]) / (truth[2] - truth[0])
    assert got == pytest.approx((exact[1] - exact[0]) / (exact[2] - exact[0]), rel=1e-8)


def test_figure_is_what_the_paper_plots() -> None:
    """Narrow negative pulses at scaled times 0, 0.5 and 1.03, and an almost flat gap."""
    series = toy("figure")
    assert series.truth is not None
    truth, times = series.truth[:, 0], series.times
    low = truth < -2
    starts = times[1:][low[1:] & ~low[:-1]]
    ends = times[1:][~low[1:] & low[:-1]]
    assert low[0]
    centres = (starts[: len(ends[1:])] + ends[1:]) / 2
    assert centres[0] == pytest.approx(0.5, abs=0.03)
    assert np.abs(times[np.argmin(np.where(times > 0.8, truth, 0))] - 1.03) < 0.05
    gap = series.tests["imputation"][:, 0]
    assert truth[gap].var() == pytest.approx(0.0025, rel=0.1)
    assert (series.values[:, 0] - truth).var() == pytest.approx(0.015, rel=0.2)


@pytest.mark.parametrize("generator", ["figure", "equations"])
def test_toy_splits(generator: Any) -> None:
    series = toy(generator)
    training = series.training()[:, 0]
    assert np.isnan(training[125:225]).all()
    assert np.isnan(training[600:]).all()
    assert np.isfinite(training[:125]).all()
    assert np.isfinite(training[225:600]).all()
    assert series.times[599] == 1
    assert np.nanmean(training) == pytest.approx(0, abs=1e-12)
    assert np.nanstd(training) == pytest.approx(1)
    assert np.isfinite(series.test("imputation")).sum() == 100
    assert np.isfinite(series.test("extrapolation")).sum() == 150
    assert np.array_equal(toy(generator).values, series.values)
    assert not np.array_equal(toy(generator, seed=1).values, series.values)


def test_cardiac_signals() -> None:
    series = cardiac(seed=2)
    assert series.values.shape == (1000, 3)
    assert series.names == ("ABP", "ECG", "ICP")
    assert series.truth is not None
    np.testing.assert_allclose(series.truth.std(0), 1)
    hidden = np.isnan(series.training())
    assert hidden.sum(0).tolist() == [175, 175, 175]
    assert np.array_equal(cardiac(seed=2).values, series.values)
    # Quasi-periodic: the spectrum peaks at the beat, within its few per cent of variation.
    for channel in range(3):
        spectrum = np.abs(np.fft.rfft(series.truth[:, channel]))
        frequencies = np.fft.rfftfreq(1000, 1 / 25)
        beat = frequencies[
            np.argmax(np.where((frequencies > 0.7) & (frequencies < 1.8), spectrum, 0))
        ]
        assert beat == pytest.approx(1 / 0.85, rel=0.06)
    period = series.truth[:, 0]
    assert np.corrcoef(period[:-21], period[21:])[0, 1] > 0.4  # one beat later, but not exactly
    assert np.corrcoef(period[:-21], period[21:])[0, 1] < 0.999


@pytest.mark.usefixtures("without_shape_checks")
def test_bad_input() -> None:
    with pytest.raises(dlfm.InputError, match="generator must be 'figure' or 'equations'"):
        toy("sine")  # type: ignore[arg-type]
    with pytest.raises(dlfm.InputError, match="num_points must be an integer"):
        cardiac(0)
    with pytest.raises(dlfm.InputError, match="name must be one of"):
        toy().test("forecast")
