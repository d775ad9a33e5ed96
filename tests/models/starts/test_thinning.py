"""A start that looks at some rows only: what it cannot see is told."""

import numpy as np
import pytest

import deeplfm as dlfm
from deeplfm.data import cardiac
from deeplfm.errors import DataWarning
from deeplfm.models.starts.thinning import hidden_period
from deeplfm.regressor.fitting import fit_layers


def period_of(x: np.ndarray, y: np.ndarray) -> float | None:
    return hidden_period(len(x), lambda places: (x[places], y[places]))


def test_beats_between_the_rows_of_a_start_are_found() -> None:
    series = cardiac(120_000)
    period = period_of(series.times, series.values)
    assert period is not None
    assert 0.05 < period < 1.0  # of a beat, or of one of its harmonics
    assert period_of(series.times[:5000], series.values[:5000]) is None
    assert period_of(series.times[:10_000], series.values[:10_000]) is None


@pytest.mark.parametrize("noise", [0.1, 1.0])
def test_slow_series_with_noise_hide_nothing(noise: float) -> None:
    random = np.random.default_rng(0)
    x = np.arange(60_000.0)
    y = np.sin(2 * np.pi * x / 300)[:, None] + noise * random.normal(size=(len(x), 1))
    assert period_of(x, y) is None
    assert period_of(x, y - np.sin(2 * np.pi * x / 300)[:, None]) is None
    assert period_of(x, np.full((len(x), 1), 3.0)) is None
    y[random.random(len(x)) < 0.9] = np.nan
    assert period_of(x, y) is None


@pytest.mark.parametrize(
    "recipe", [dlfm.FourierDLFM(num_features=2), dlfm.InducingDLFM(num_inducing=4)]
)
def test_a_fit_says_it_in_a_sentence(
    recipe: dlfm.FourierDLFM, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("deeplfm.regressor.fitting.fit", stop)
    x = np.arange(30_000.0)
    data = dlfm.data.dataset(x, np.sin(2 * np.pi * x / 5))
    with (
        pytest.warns(
            DataWarning, match=r"starts from 5000 of 30000 rows.*period is about 5:.*MarkovDLFM"
        ),
        pytest.raises(KeyboardInterrupt),
    ):
        fit_layers(data, recipe, dlfm.Training(), device="cpu")
