"""scikit-learn's own checks of an estimator, with the exceptions that our promises need."""

from typing import Any

import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator

import deeplfm as dlfm

# What our promises need, and no more.
EXCEPTIONS = {
    "check_fit1d": "X [N] is one input",
    "check_parameters_default_constructible": "frozen settings are default parameters",
}


def _small() -> dlfm.DeepLFMRegressor:
    recipe = dlfm.FourierDLFM(num_features=10, hidden_dim=2)
    return dlfm.DeepLFMRegressor(recipe, dlfm.Training(steps=20, num_samples=2))


def checks() -> list[Any]:
    found = estimator_checks_generator(_small(), expected_failed_checks=EXCEPTIONS, mark="xfail")
    return [
        pytest.param(estimator, check, id=f"{number}-{_name(check)}", marks=_strict(marks))
        for number, (estimator, check, marks) in enumerate(_unpacked(one) for one in found)
    ]


def _unpacked(one: Any) -> tuple[Any, Any, Any]:
    estimator, check = getattr(one, "values", one)
    return estimator, check, getattr(one, "marks", ())


def _strict(marks: Any) -> list[pytest.MarkDecorator]:
    """An exception that is not needed any more must go."""
    return [pytest.mark.xfail(reason=mark.kwargs["reason"], strict=True) for mark in marks]


def _name(check: Any) -> str:
    return str(getattr(check, "func", check).__name__)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.usefixtures("without_shape_checks")
@pytest.mark.parametrize(("estimator", "check"), checks())
def test_scikit_learn_conventions(estimator: Any, check: Any) -> None:
    check(estimator)
