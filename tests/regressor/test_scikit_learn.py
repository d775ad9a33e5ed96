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


def _small() -> dict[str, dlfm.DeepLFMRegressor]:
    recipe = dlfm.FourierDLFM(num_features=10, hidden_dim=2)
    short = dlfm.Training(steps=2, num_samples=1)
    return {
        "layers": dlfm.DeepLFMRegressor(recipe, dlfm.Training(steps=20, num_samples=2)),
        "auto": dlfm.DeepLFMRegressor(training=short, check=False, progress=False),
    }


def checks() -> list[Any]:
    found = [
        (name, *_unpacked(one))
        for name, model in _small().items()
        for one in estimator_checks_generator(
            model, expected_failed_checks=EXCEPTIONS, mark="xfail"
        )
    ]
    return [
        pytest.param(model, check, id=f"{number}-{name}-{_name(check)}", marks=_strict(marks))
        for number, (name, model, check, marks) in enumerate(found)
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
