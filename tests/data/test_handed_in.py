"""What users hand in: masks are masks, sizes that cannot be computed with are told."""

import re
from pathlib import Path

import numpy as np
import pytest
import torch

import deeplfm as dlfm
from deeplfm.data import dataset, fit_scaling, inputs_table
from deeplfm.data.stored import Stored
from deeplfm.evaluation import NormalComponents, metrics
from deeplfm.evaluation.predictive import Predictive
from deeplfm.regressor.conventions import r2_of_observed

X = np.arange(6.0)
HIDDEN = np.array([False, True, False, False, True, False])


def test_a_masked_target_was_not_observed() -> None:
    y = np.ma.masked_array(np.arange(12).reshape(6, 2), mask=np.stack([HIDDEN, ~HIDDEN], 1))
    found = dataset(X, y)
    assert (found.observed == ~y.mask).all()
    assert found.y[0, 0] == 0.0
    assert dataset(X, np.ma.masked_array(X)).observed.all()


def test_masked_scores_are_those_of_what_was_observed() -> None:
    y = np.ma.masked_array(np.sin(X), mask=HIDDEN)
    plain, mean = np.where(HIDDEN, np.nan, np.sin(X)), np.cos(X)
    assert r2_of_observed(y, mean) == r2_of_observed(plain, mean)
    assert metrics.rmse(y, mean) == metrics.rmse(plain, mean)
    p = Predictive(mean[None, :, None], NormalComponents(mean[None, :, None], np.array([2.0])))
    assert np.array_equal(p.log_density(y), p.log_density(plain), equal_nan=True)
    assert np.isnan(p.crps(y)).sum() == 2


def test_masked_inputs_are_refused() -> None:
    masked = np.ma.masked_array(X, mask=HIDDEN)
    with pytest.raises(dlfm.InputError, match="X must be there in every row; got 2 masked"):
        dataset(masked, X)
    with pytest.raises(dlfm.InputError, match="X must be there in every row; got 2 masked"):
        inputs_table(masked, 1)
    with pytest.raises(dlfm.InputError, match="known must be there in every row; got 2 masked"):
        dataset(X, X, known=masked)
    with pytest.raises(dlfm.InputError, match="series must be one id per row; got masked"):
        dataset(X, X, series=np.ma.masked_array(list("aabbcc"), mask=HIDDEN))


@pytest.mark.parametrize("size", [1e155, 1e300, 1e-155, 1e-300])
def test_outputs_whose_squares_are_no_numbers_are_refused(size: float, tmp_path: Path) -> None:
    message = f"outputs must be 0, or between 1e-150 and 1e+150 in size; got {size * 5:g} as"
    with pytest.raises(dlfm.InputError, match=re.escape(message)):
        dataset(X, X * size)
    np.save(tmp_path / "d.npy", np.stack([X, X * size], 1))
    with pytest.raises(dlfm.InputError, match="in size; got"):
        Stored(tmp_path / "d.npy", ["t"], ["a"]).scaling()


@pytest.mark.parametrize("size", [1e-300, 1e-30, 1e30, 1e300])
def test_ranges_that_cannot_be_computed_with_are_refused(size: float) -> None:
    with pytest.raises(dlfm.InputError, match=r"must range over 1e-20 to 1e\+20; 'x0' does over"):
        dataset(X * size, X)
    with pytest.raises(dlfm.InputError, match="'x0' does over inf"):
        dataset((X - 3) * 4e307, X)
    with pytest.raises(dlfm.InputError, match=r"'u0' does over"):
        dataset(X, X, known=X * size)


@pytest.mark.parametrize("size", [1e-149, 1e-100, 1e100, 1e148])
def test_scaling_changes_with_the_unit_alone(size: float) -> None:
    y = np.array([3.0, -1.0, np.nan, 4.0, 2.5, 2.5])
    plain, scaled = fit_scaling(dataset(X, y)), fit_scaling(dataset(X, y * size))
    for name in ("target_mean", "target_std"):
        assert getattr(scaled, name) / size == pytest.approx(getattr(plain, name), rel=1e-14)


def test_tensors_are_scored() -> None:
    y = torch.sin(torch.tensor(X)).requires_grad_()
    assert metrics.rmse(y.detach(), np.cos(X)) > 0
    with pytest.raises(dlfm.InputError, match=r"sample_weight must be one number per row, \[6\]"):
        r2_of_observed(X, X, sample_weight=[1.0])
