"""Data in every form users have it; scaling there and back; bad data."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import torch

import deeplfm as dlfm
from deeplfm.data import Scaling, dataset, fit_scaling, from_long
from deeplfm.errors import InputError
from own_likelihoods import Geometric, Laplace

X = np.array([3.0, 5.0, 9.0, 7.0])
Y = np.array([[1.0, np.nan], [2.0, 4.0], [np.nan, np.nan], [3.0, 8.0]])


@pytest.mark.parametrize(
    ("x", "y"),
    [
        (X, Y),
        (X.tolist(), Y.tolist()),
        (torch.tensor(X), torch.tensor(Y)),
        (pd.Series(X, name="t"), pd.DataFrame(Y, columns=["a", "b"])),
        (X[:, None].astype(np.float32), Y),
    ],
)
def test_every_form_is_the_same_data(x: Any, y: Any) -> None:
    data = dataset(x, y)
    assert data.x.tolist() == [[3.0], [5.0], [7.0]]  # the row without any target is dropped
    np.testing.assert_array_equal(data.y, Y[[0, 1, 3]])
    assert data.observed.tolist() == [[True, False], [True, True], [True, True]]


def test_names_come_from_pandas() -> None:
    data = dataset(pd.Series(X, name="t"), pd.DataFrame(Y, columns=["abp", "ecg"]))
    assert data.input_names == ("t",)
    assert data.output_names == ("abp", "ecg")
    assert dataset(X, Y).output_names == ("y0", "y1")


def test_one_input_is_scaled_to_the_unit_interval() -> None:
    data = dataset(X, Y)
    scaling = fit_scaling(data)
    assert scaling.inputs(data.x)[:, 0].tolist() == [0.0, 0.5, 1.0]
    y = scaling.targets(data.y)
    np.testing.assert_allclose(np.nanmean(y, 0), 0, atol=1e-15)
    np.testing.assert_allclose(np.nanstd(y, 0), 1)
    np.testing.assert_allclose(scaling.functions(y), data.y)
    np.testing.assert_allclose(scaling.spread(np.ones((1, 2)))[0], np.nanstd(data.y, 0))


def test_several_inputs_are_standardised_with_the_origin_below() -> None:
    x = np.random.default_rng(0).normal(size=(50, 3)) * [1.0, 10.0, 0.1] + 5
    scaled = fit_scaling(dataset(x, x[:, 0])).inputs(x)
    np.testing.assert_allclose(scaled.std(0), 1)
    np.testing.assert_allclose(scaled.min(0), 0.1)


def test_constant_columns_are_scaled_by_their_size() -> None:
    for constant, scale in ((7.0, 0.07), (1e-9, 1e-11), (0.0, 1.0)):
        scaling = fit_scaling(dataset(np.ones((4, 1)), np.full(4, constant)))
        assert scaling.input_scale.tolist() == [1.0]
        assert scaling.target_std.tolist() == pytest.approx([scale])


def test_targets_that_are_not_standardised_stay_as_they_are() -> None:
    counts = np.array([[0.0, np.nan], [3, 100], [8, 120]])
    scaling = fit_scaling(dataset(np.arange(3.0), counts), Geometric())
    np.testing.assert_array_equal(scaling.targets(counts), counts)
    near = scaling.to_functions(np.log(counts + 0.5))
    np.testing.assert_allclose(np.nanmean(near, 0), 0, atol=1e-15)
    np.testing.assert_allclose(np.nanstd(near, 0), 1)
    np.testing.assert_allclose(scaling.functions(near), np.log(counts + 0.5))
    with pytest.raises(InputError, match=r"whole numbers of 0 or more; got 0\.5 in 'y0'"):
        fit_scaling(dataset(np.arange(3.0), counts[:, 0] + 0.5), Geometric())
    standardised = fit_scaling(dataset(X, Y), Laplace()).arrays()
    for name, array in fit_scaling(dataset(X, Y)).arrays().items():
        np.testing.assert_array_equal(standardised[name], array)


def test_scalings_that_were_saved_before_knew_targets_only() -> None:
    scaling = fit_scaling(dataset(X, Y))
    arrays = scaling.arrays()
    again = Scaling.from_arrays(arrays)
    old = {name: array for name, array in arrays.items() if not name.startswith("function")}
    for name, array in arrays.items():
        np.testing.assert_array_equal(getattr(again, name), array)
        np.testing.assert_array_equal(getattr(Scaling.from_arrays(old), name), array)


def test_missing_values_of_pandas() -> None:
    frame = pd.DataFrame({"a": [1, None, 3], "b": [True, False, None]}).convert_dtypes()
    data = dataset(pd.Series([1, 2, 3], dtype="Int64"), frame)
    np.testing.assert_array_equal(data.y, [[1.0, 1.0], [np.nan, 0.0], [3.0, np.nan]])


def test_from_long_gives_every_output_its_own_times() -> None:
    frame = pd.DataFrame(
        {"t": [2.0, 1.0, 1.0, 3.0], "channel": ["b", "a", "b", "a"], "y": [20.0, 1.0, 10.0, 3.0]}
    )
    data = dataset(
        X=(long := from_long(frame, input="t", output="channel", value="y"))["X"], y=long["y"]
    )
    assert data.x[:, 0].tolist() == [1.0, 2.0, 3.0]
    assert data.output_names == ("a", "b")
    np.testing.assert_array_equal(data.y, [[1.0, 10.0], [np.nan, 20.0], [3.0, np.nan]])
    twice = from_long(pd.concat([frame, frame[:1]]), input="t", output="channel", value="y")
    assert twice["X"]["t"].tolist() == [1.0, 2.0, 2.0, 3.0]  # replicates have their own rows
    assert twice["y"]["b"].tolist()[1:3] == [20.0, 20.0]
    with pytest.raises(dlfm.InputError, match=r"must have the columns .* Rename or add \['time'\]"):
        from_long(frame, input="time", output="channel", value="y")


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (X[:3], Y, "same number of rows; got 3 and 4"),
        (X * np.nan, Y, "X must be finite; got 4 NaN"),
        (X, Y * np.inf, "y must be finite or NaN"),
        (X, Y * [1.0, np.nan], "every output must be observed somewhere; got only NaN in 'y1'"),
        (["a"] * 4, Y, "X must hold numbers; got a list"),
        (np.zeros((2, 2, 2)), Y, r"X must be \[N\] or \[N, K\]"),
        ([], [], "at least one row"),
        (np.zeros((4, 0)), Y, r"got 0 feature\(s\) \(shape=\(4, 0\)\)"),
        (X[:1], Y[:1], "2 or more rows; got 1 sample"),
        (X, pd.DataFrame(Y, columns=["a", "a"]), r"columns of y must differ; got \['a'\] twice"),
        (X + 1j, Y, "Complex data not supported"),
        (pd.Series(pd.to_datetime(["2026-01-01"] * 4)), Y, "got dates. Convert them"),
        (pd.DataFrame({"t": pd.to_datetime(["2026-01-01"] * 4)}), Y, "got dates. Convert them"),
        (scipy.sparse.csr_matrix(np.eye(4)), Y, "X must be dense; got a sparse csr_matrix"),
        (np.array([{"a": 1}] * 4), Y, "argument must be a string or a real number"),
    ],
)
def test_bad_data(x: Any, y: Any, message: str) -> None:
    with pytest.raises(dlfm.InputError, match=message):
        dataset(x, y)
