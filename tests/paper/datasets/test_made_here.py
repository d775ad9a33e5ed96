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


T = np.linspace(0, 15, 750)


def by_equations() -> Any:
    """f2 at three of the times, by quadrature of the printed integrals."""
    exact = []
    for x in T[[100, 400, 700]]:
        for decay in (0.01, 0.02):  # the second integral ends where the first one is
            x, _ = scipy.integrate.quad(
                lambda tau, x=x, decay=decay: np.exp(-decay * (x - tau)) * force(tau),
                *(0, x),
                limit=200,
            )
        exact.append(x)
    return np.array(exact)


def by_figure() -> Any:
    """f2 at three of the times, with the filter of the figure, by Simpson's rule."""
    x, end = T.astype(complex), 15.0
    for decay in (0.01, 0.02):
        tau = np.linspace(0, end, 4001)
        lag = x[:, None] - tau
        response = (np.exp(1j * lag) - np.exp(-decay * lag)) / (decay + 1j)
        x = scipy.integrate.simpson(response * force(tau), x=tau, axis=1)
        end = x.real.max()
    return x.real[[100, 400, 700]]


@pytest.mark.parametrize(
    ("generator", "exact", "noise_std"),
    [("equations", by_equations, 0.2), ("figure", by_figure, 0.15)],
)
def test_truth_and_noise_are_those_of_the_definition(
    generator: Any, exact: Any, noise_std: float
) -> None:
    """Three values give the shift and the scale; noise is that of the seed, in the same units."""
    series = toy(generator, seed=3)
    assert series.truth is not None
    truth, values = series.truth[[100, 400, 700], 0], exact()
    got = (truth[1] - truth[0]) / (truth[2] - truth[0])
    assert got == pytest.approx((values[1] - values[0]) / (values[2] - values[0]), rel=1e-7)
    scale = (values[2] - values[0]) / (truth[2] - truth[0])
    noise = scale * (series.values - series.truth)[:, 0]
    np.testing.assert_allclose(
        noise, noise_std * np.random.default_rng(3).normal(size=750), rtol=1e-6, atol=1e-9
    )


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
