"""scikit-learn's own checks of a state-space model: an estimator of one input, the time."""

import pickle
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import estimator_checks_generator

import deeplfm as dlfm

# They fit tables of several columns, which are refused; below are their promises for one.
SEVERAL_INPUTS = (
    "dict_unchanged",
    "dont_overwrite_parameters",
    "dtype_object",
    "estimators_dtypes",
    "estimators_fit_returns_self",
    "estimators_nan_inf",
    "estimators_overwrite_params",
    "estimators_pickle",
    "f_contiguous_array_estimator",
    "fit2d_predict1d",
    "fit_check_is_fitted",
    "fit_idempotent",
    "fit_score_takes_y",
    "methods_sample_order_invariance",
    "methods_subset_invariance",
    "n_features_in",
    "n_features_in_after_fitting",
    "pipeline_consistency",
    "positive_only_tag_during_fit",
    "readonly_memmap_input",
    "regressor_data_not_an_array",
    "regressor_multioutput",
    "regressors_int",
    "regressors_no_decision_function",
    "regressors_train",
    "supervised_y_2d",
)
EXCEPTIONS = {
    "check_fit1d": "X [N] is one input",
    "check_parameters_default_constructible": "frozen settings are default parameters",
    **{f"check_{name}": "X is one input, the time" for name in SEVERAL_INPUTS},
}


def small() -> dlfm.DeepLFMRegressor:
    recipe, training = dlfm.MarkovDLFM(modes=2), dlfm.Training(steps=3)
    return dlfm.DeepLFMRegressor(recipe, training, progress=False)


def checks() -> list[Any]:
    found = estimator_checks_generator(small(), expected_failed_checks=EXCEPTIONS, mark="xfail")
    return [_param(number, one) for number, one in enumerate(found)]


def _param(number: int, one: Any) -> Any:
    estimator, check = getattr(one, "values", one)
    marks = [
        # An exception that is not needed any more must go.
        pytest.mark.xfail(reason=mark.kwargs["reason"], strict=True)
        for mark in getattr(one, "marks", ())
    ]
    name = getattr(check, "func", check).__name__
    return pytest.param(estimator, check, id=f"{number}-{name}", marks=marks)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.usefixtures("without_shape_checks")
@pytest.mark.parametrize(("estimator", "check"), checks())
def test_scikit_learn_conventions(estimator: Any, check: Any) -> None:
    check(estimator)


def test_promises_with_one_input() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 1))
    y = np.sin(3 * X[:, 0]) + 0.1 * rng.normal(size=40)
    model = small()
    with pytest.raises(NotFittedError):
        model.predict(X)
    settings, given = model.get_params(), (X.copy(), y.copy())
    assert model.fit(X, y) is model
    assert model.get_params() == settings
    state = {name for name in vars(model) if not name.startswith("_")}
    mean = model.predict(X)
    assert {name for name in vars(model) if not name.startswith("_")} == state
    np.testing.assert_array_equal(X, given[0])
    np.testing.assert_array_equal(y, given[1])
    assert model.n_features_in_ == 1
    assert model.score(X, y) > 0
    np.testing.assert_array_equal(model.fit(X, y).predict(X), mean)
    np.testing.assert_array_equal(clone(model).fit(X, y).predict(X), mean)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), mean)
    np.testing.assert_array_equal(make_pipeline(small()).fit(X, y).predict(X), mean)
    np.testing.assert_allclose(model.predict(X[::-1])[::-1], mean, rtol=1e-9, atol=1e-9)
    by_row = np.concatenate([model.predict(X[k : k + 1]) for k in range(5)])
    np.testing.assert_allclose(by_row, mean[:5], rtol=1e-9, atol=1e-9)
    both = small().fit(X, np.stack([y, y + 1], 1)).predict(X)
    assert both.shape == (40, 2)
    whole, real = (
        small().fit(np.arange(9), np.arange(9)),
        small().fit(np.arange(9.0), np.arange(9.0)),
    )
    np.testing.assert_array_equal(whole.predict(np.arange(3)), real.predict(np.arange(3.0)))
    with pytest.raises(ValueError, match="NaN"):
        small().fit(np.append(X[1:], [[np.nan]], 0), y)
    with pytest.raises(ValueError, match="X has 2 features"):
        model.predict(np.concatenate([X, X], 1))
