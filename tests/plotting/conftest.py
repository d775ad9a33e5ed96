"""Pictures are drawn without a window, on the model of a tiny fit, and closed after each test."""

from collections.abc import Iterator

import matplotlib as mpl
import pandas as pd
import pytest
from matplotlib import pyplot as plt

import deeplfm as dlfm
from pictures import X, Y


@pytest.fixture(autouse=True)
def agg() -> Iterator[None]:
    """No window, nothing left open, no setting changed by any of the functions."""
    plt.switch_backend("Agg")
    before = dict(mpl.rcParams)
    yield
    plt.close("all")
    assert dict(mpl.rcParams) == before


@pytest.fixture(scope="session")
def model() -> dlfm.DeepLFMRegressor:
    physics = [dlfm.SecondOrder(damping=1.0, frequency=9.0), dlfm.FirstOrder()]
    recipe = dlfm.FourierDLFM(num_features=10, hidden_dim=2, greens_function=physics)
    training = dlfm.Training(steps=5, num_samples=2)
    frame = pd.DataFrame(Y, columns=["abp", "ecg"])
    return dlfm.DeepLFMRegressor(recipe, training, progress=False).fit(
        pd.DataFrame({"t": X}), frame
    )
