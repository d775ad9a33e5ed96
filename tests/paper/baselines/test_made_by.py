"""The model that made the data: against a plain formula, statsmodels' smoother, its coverage."""

import numpy as np
import pytest

import deeplfm as dlfm
from deeplfm.paper.baselines.made_by import MadeBy
from deeplfm.paper.datasets import general_series
from deeplfm.paper.datasets.general_series import covariance, process, walk


@pytest.mark.parametrize("kernel", ["rbf", "matern32"])
def test_two_outputs_together_by_the_plain_formula(kernel: general_series.Kernel) -> None:
    series = process(kernel, 3)
    t, y = series.times[:60], series.values[:60].copy()
    y[20:40, 0] = np.nan
    y[50:] = np.nan
    length = general_series.LENGTHSCALE[kernel]
    model = MadeBy(kernel, 1.0, length, 0.15, 0.6, progress=False).fit(t, y)
    B = np.array([[1, 0.6], [0.6, 1]])
    gram = np.kron(B, covariance(kernel, t[:, None] - t, length))
    seen = ~np.isnan(y.T.ravel())
    observed = gram[np.ix_(seen, seen)] + 0.15**2 * np.eye(seen.sum())
    solved = np.linalg.solve(observed, gram[seen])
    mean = solved.T @ y.T.ravel()[seen]
    variance = np.diagonal(gram - gram[:, seen] @ solved) + 0.15**2
    p = model.predictive(t)
    np.testing.assert_allclose(p.mean.T.ravel(), mean, atol=1e-7)
    np.testing.assert_allclose(p.std.T.ravel(), np.sqrt(variance), rtol=1e-6)


def test_a_walk_is_the_local_level_model_of_statsmodels() -> None:
    structural = pytest.importorskip("statsmodels.tsa.statespace.structural")
    series = walk(1)
    y = series.values[:80, 0].copy()
    y[30:45] = np.nan
    y[70:] = np.nan
    model = MadeBy("walk", 1.0, noise=1.0, progress=False).fit(series.times[:80], y)
    mean, std = model.predict(series.times[:80], return_std=True)
    level = structural.UnobservedComponents(y, level="llevel").smooth([1.0, 1.0])
    # The level before data has variance 1e4 here and 1e6 there: a difference of 1e-4.
    np.testing.assert_allclose(mean, level.smoothed_state[0], atol=1e-2)
    np.testing.assert_allclose(std, np.sqrt(level.smoothed_state_cov[0, 0] + 1), rtol=1e-3)


def test_its_intervals_hold() -> None:
    """Over 40 walks 90 % of what follows lies inside, within 4 standard errors of 40 draws."""
    inside = []
    for seed in range(40):
        series = walk(seed)
        model = MadeBy("walk", 1.0, noise=1.0, progress=False)
        model.fit(series.times[:60], series.values[:60])
        low, high = model.predictive(series.times[70:71]).interval(0.9)
        inside.append(low[0, 0] <= series.values[70, 0] <= high[0, 0])
    assert np.mean(inside) == pytest.approx(0.9, abs=4 * np.sqrt(0.09 / 40))


@pytest.mark.usefixtures("without_shape_checks")
def test_bad_input() -> None:
    t = np.arange(10.0)
    with pytest.raises(dlfm.InputError, match="kernel must be one of"):
        MadeBy("cubic").fit(t, t)  # type: ignore[arg-type]
    with pytest.raises(dlfm.InputError, match="X must have 1 input"):
        MadeBy().fit(np.stack([t, t**2], 1), t)
