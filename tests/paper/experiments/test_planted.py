"""Planted failures are warned of, easy series are not; the experiment says so and goes on."""

import json
import warnings
from pathlib import Path

import numpy as np
import pytest

import deeplfm as dlfm
from deeplfm.errors import FitWarning
from deeplfm.paper.datasets.planted import EASY, PLANTED, planted_series
from deeplfm.paper.experiments import reproduce_planted


def test_the_lists_are_as_long_as_promised_and_draw_the_same() -> None:
    assert len(PLANTED) == 5
    assert len(EASY) == len(set(EASY)) == 20
    for name in (*PLANTED[:-1], *EASY):
        first, again = planted_series(name), planted_series(name)
        assert first.values.shape[0] == len(first.times)
        np.testing.assert_array_equal(first.values, again.values)
    with pytest.raises(dlfm.InputError, match="name must be one of"):
        planted_series("a series of nobody")


@pytest.mark.parametrize("name", ["wrong period hint", "noise that grows tenfold"])
def test_a_planted_failure_is_warned_of(name: str) -> None:
    times, values, recipe = planted_series(name)
    model = dlfm.DeepLFMRegressor(recipe, progress=False)
    with pytest.warns(FitWarning, match="This fit may mislead"):
        model.fit(times, values)


def test_an_easy_series_is_not() -> None:
    times, values, recipe = planted_series("trend")
    model = dlfm.DeepLFMRegressor(recipe, dlfm.Training(steps=100), progress=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert model.fit(times, values).check_.passed


def test_the_forecast_of_a_patient_is_warned_of() -> None:
    try:
        times, values, recipe = planted_series("icu forecast")
    except dlfm.InputError:
        pytest.skip("the record physio/3105502.csv is not on this machine: set DEEPLFM_DATA")
    model = dlfm.DeepLFMRegressor(recipe, dlfm.Training(steps=30), progress=False)
    with pytest.warns(FitWarning, match="This fit may mislead"):
        model.fit(times, values)


def test_the_experiment_keeps_what_is_done(tmp_path: Path) -> None:
    said: list[str] = []
    table = reproduce_planted(tmp_path, smoke=True, say=said.append)
    paths = sorted((tmp_path / "planted").glob("*.json"))
    assert [json.loads(path.read_text())["series"] for path in paths] == [PLANTED[0], EASY[0]]
    assert [row[:2] for row in table.rows] == [(PLANTED[0], "yes"), (EASY[0], "no")]
    assert len(said) == 2
    assert reproduce_planted(tmp_path, smoke=True, say=said.append).rows == table.rows
    assert len(said) == 2
    assert (tmp_path / "tables/planted.md").read_text().startswith("Checks of fits: ")
    with pytest.raises(dlfm.InputError, match="datasets must be among"):
        reproduce_planted(tmp_path, names=["other"])
