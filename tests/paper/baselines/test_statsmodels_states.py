"""Models of statsmodels behind our door: their own forecasts, intervals and smoothed gaps."""

import sys
import warnings

import numpy as np
import pytest
from numpy.typing import NDArray

import deeplfm as dlfm
from deeplfm.paper.baselines.statsmodels_states import StructuralSeries, VectorSeries

structural = pytest.importorskip("statsmodels.tsa.statespace.structural")
T = np.arange(72.0)


def seasonal() -> NDArray[np.float64]:
    random = np.random.default_rng(0)
    return np.asarray(
        50 + T / 4 + 5 * np.sin(2 * np.pi * T / 6) + random.normal(size=72).cumsum() / 3
    )


def test_densities_are_those_of_statsmodels_own_forecast() -> None:
    y = seasonal()
    model = StructuralSeries(periods=(6,), steps=30, progress=False).fit(T, y)
    low, high = model.predictive(72 + np.arange(12.0)).interval(0.9)
    scale = y.std()
    own = structural.UnobservedComponents((y - y.mean()) / scale, level="lltrend", seasonal=6)
    fitted = own.smooth(model.fitted_.state["parameters.0"].numpy())
    bounds = y.mean() + scale * fitted.get_forecast(12).conf_int(alpha=0.1)
    np.testing.assert_allclose(low[:, 0], bounds[:, 0], rtol=1e-6)
    np.testing.assert_allclose(high[:, 0], bounds[:, 1], rtol=1e-6)


def test_a_gap_is_filled_from_both_sides() -> None:
    y = seasonal()
    hidden = y.copy()
    hidden[30:40] = np.nan
    model = StructuralSeries(periods=(6,), steps=50, progress=False).fit(T, hidden)
    mean, std = model.predict(T, return_std=True)
    assert np.mean((mean - y)[30:40] ** 2) < 0.3 * y[30:40].var()
    assert std[35] > std[30] > std[20]  # the middle of a gap is known least


def test_long_periods_have_waves_and_cycles_their_own_frequency() -> None:
    model = StructuralSeries(periods=(7, 30.5), cycle=True)
    made = model._model(seasonal()[:, None])
    assert made.seasonal_periods == 7
    assert made.freq_seasonal_periods == [30.5]
    assert "frequency.cycle" in made.param_names
    assert "damping.cycle" in made.param_names
    assert "sigma2.trend" not in made.param_names
    assert "sigma2.trend" in StructuralSeries()._model(seasonal()[:, None]).param_names


def test_several_outputs_help_each_other() -> None:
    """The second output follows the first: its gap is filled better than from itself alone."""
    random = np.random.default_rng(1)
    shared = random.normal(size=72).cumsum()
    y = np.stack([shared, 2 * shared], 1) + 0.1 * random.normal(size=(72, 2))
    hidden = y.copy()
    hidden[30:45, 1] = np.nan
    together = VectorSeries(steps=30, progress=False).fit(T, hidden).predict(T)[30:45, 1]
    alone = StructuralSeries(steps=30, progress=False).fit(T, hidden).predict(T)[30:45, 1]
    errors = [np.mean((guess - y[30:45, 1]) ** 2) for guess in (together, alone)]
    assert errors[0] < 0.3 * errors[1]


def test_many_outputs_share_factors() -> None:
    random = np.random.default_rng(2)
    shared = random.normal(size=(72, 1)).cumsum(0)
    y = shared * random.normal(size=6) + 0.1 * random.normal(size=(72, 6)) + T[:, None] / 10
    hidden = y.copy()
    hidden[30:40, 0] = np.nan
    model = VectorSeries(steps=5, progress=False).fit(T, hidden)
    assert type(model._model(hidden)).__name__ == "DynamicFactor"
    mean, std = model.predict(T, return_std=True)
    assert np.mean((mean - y)[30:40, 0] ** 2) < 0.5 * y[:, 0].var()
    assert std[35, 0] > std[20, 0]


def test_bad_input(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(dlfm.InputError, match="needs other channels"):
        VectorSeries().fit(T, T)
    model = StructuralSeries(steps=1, progress=False).fit(T, seasonal())
    with pytest.raises(dlfm.InputError, match="got times before"):
        model.predict([-1.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(T, seasonal())  # that one step is too few is not said
    monkeypatch.setitem(sys.modules, "statsmodels.tsa.statespace.api", None)
    with pytest.raises(dlfm.InputError, match=r"pip install 'deeplfm\[general\]'"):
        model.fit(T, T)
