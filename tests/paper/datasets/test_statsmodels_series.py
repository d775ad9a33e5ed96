"""Series of statsmodels: their shapes, a few numbers anybody can look up, and what is missing."""

import sys

import numpy as np
import pytest

import deeplfm as dlfm
from deeplfm.paper.datasets import statsmodels_series

pytest.importorskip("statsmodels")


def test_shapes_times_and_known_numbers() -> None:
    nile = statsmodels_series.nile()
    assert nile.values.shape == (100, 1)
    assert nile.values[0, 0] == 1120
    assert (nile.times[0], nile.times[-1]) == (1871, 1970)
    spots = statsmodels_series.sunspots()
    assert spots.values.shape == (309, 1)
    assert spots.times[0] == 1700
    sea = statsmodels_series.elnino()
    assert sea.values.shape == (61 * 12, 1)
    np.testing.assert_allclose(sea.times[12] - sea.times[0], 1)
    # Months follow each other: the sea is warmest in early spring, in nearly every year.
    warmest = sea.values.reshape(61, 12).mean(0).argmax()
    assert warmest in (1, 2)
    macro = statsmodels_series.macrodata()
    assert macro.values.shape == (203, 12)
    assert macro.names[0] == "realgdp"
    assert macro.values[0, 0] == pytest.approx(2710.349)


def test_carbon_dioxide_is_thirty_years_of_months() -> None:
    series = statsmodels_series.co2()
    assert series.values.shape == (360, 1)
    assert np.isfinite(series.values).all()
    assert (series.times[0], series.times[-1]) == (1972, pytest.approx(2001 + 11 / 12))
    years = series.values.reshape(30, 12)
    assert (np.diff(years.mean(1)) > 0).all()
    assert set(years.argmax(1)) <= {3, 4, 5}  # spring of the north


def test_without_statsmodels_the_error_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "statsmodels.datasets.nile", None)
    with pytest.raises(dlfm.InputError, match=r"must be on this machine.*pip install"):
        statsmodels_series.nile()
