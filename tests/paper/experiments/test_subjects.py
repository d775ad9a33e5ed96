"""A panel whose subjects are columns: our models see one series each, others see outputs."""

import numpy as np

import deeplfm as dlfm
from deeplfm.paper.baselines.naive import Interpolation
from deeplfm.paper.datasets.general_series import panel
from deeplfm.paper.experiments.subjects import fit, predictive


def test_ours_is_fitted_to_the_same_rows_one_subject_below_the_other() -> None:
    series = panel(0)
    t, y = series.times, series.values[:, :3].copy()
    y[30:] = np.nan
    settings = dlfm.MarkovDLFM(modes=2), dlfm.Training(steps=3)
    wide = dlfm.DeepLFMRegressor(*settings, progress=False, check=False)
    fit(wide, t, y, panel=True)
    p = predictive(wide, t, 10, subjects=3)
    assert p.mean.shape == (40, 3)
    long = dlfm.DeepLFMRegressor(*settings, progress=False, check=False)
    ids = np.repeat(["000", "001", "002"], 40)
    long.fit(np.concatenate([t, t, t]), np.concatenate([y[:, 0], y[:, 1], y[:, 2]]), series=ids)
    for subject, name in enumerate(("000", "001", "002")):
        own = long.predictive(t, num_samples=10, series=np.full(40, name))
        np.testing.assert_allclose(p.mean[:, subject], own.mean[:, 0], atol=1e-8)
        np.testing.assert_allclose(p.std[:, subject], own.std[:, 0], rtol=1e-6)
        np.testing.assert_allclose(
            p.crps(series.values[:, :3])[:, subject],
            own.crps(series.values[:, subject])[:, 0],
            rtol=1e-6,
        )


def test_others_see_outputs() -> None:
    series = panel(0)
    model = Interpolation(progress=False)
    fit(model, series.times[:30], series.values[:30], panel=True)
    p = predictive(model, series.times[30:], 10, subjects=20)
    np.testing.assert_allclose(p.mean, np.tile(series.values[29], (10, 1)))
