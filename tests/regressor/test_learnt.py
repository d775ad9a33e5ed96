"""What was learnt, in the user's units: the poles that were put in come out."""

import copy
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

import deeplfm as dlfm
from deeplfm.regressor.learnt import Response, greens_curves, responses

X = np.linspace(100, 300, 60)  # an input scale of 200
Y = np.stack([np.sin(X / 10), np.cos(X / 10)], axis=1)


def model(g: Any, recipe: Any = dlfm.FourierDLFM, **options: Any) -> Any:
    settings = {"num_features": 5} if recipe is dlfm.FourierDLFM else {"num_inducing": 8}
    made = recipe(**{"num_layers": 1, "greens_function": g} | settings | options)
    # One step at a rate of nearly zero leaves the physics as it was given.
    training = dlfm.Training(steps=1, num_samples=1, learning_rate=1e-12)
    return dlfm.DeepLFMRegressor(made, training, dtype="float64", check=False).fit(X, Y).fitted_


@pytest.mark.parametrize("recipe", [dlfm.FourierDLFM, dlfm.InducingDLFM])
def test_time_constants_come_back_in_the_units_they_were_given(recipe: Any) -> None:
    (one, two) = responses(model(dlfm.FirstOrder(0.05), recipe))
    assert one.function == "y0"
    assert one.in_units
    assert one.time_constant == pytest.approx(20.0)
    assert math.isinf(two.period)
    assert "time constant of 20, without swinging" in one.in_words()
    one, _ = responses(model(dlfm.SecondOrder(0.02, 0.5), recipe))
    turning = math.sqrt(0.5**2 - 0.02**2)
    assert one.time_constant == pytest.approx(50.0)
    assert one.period == pytest.approx(2 * math.pi / turning)
    assert one.damping_ratio == pytest.approx(0.04)
    assert "period of 12.6 along x0" in one.in_words()


@pytest.mark.parametrize("recipe", [dlfm.FourierDLFM, dlfm.InducingDLFM])
def test_lengthscales_come_back_in_the_units_they_were_given(recipe: Any) -> None:
    """Given 30 of the units of X, whose scale is 200; over hidden functions there are no units."""
    options = {"num_layers": 2, "hidden_dim": 1, "skip": "concatenate", "hidden_lengthscale": 0.7}
    found = responses(model(dlfm.FirstOrder(0.05), recipe, lengthscale=30.0, **options))
    first, *second = found
    assert (first.layer, first.input, first.in_units) == (0, "x0", True)
    assert first.lengthscale == pytest.approx(30.0)
    assert [(one.input, one.in_units) for one in second] == [("hidden 0", False), ("x0", True)] * 2
    assert [one.lengthscale for one in second] == pytest.approx([0.7, 30.0] * 2)


def test_each_output_and_member_has_physics_of_its_own() -> None:
    """Outputs with other decays and forces with other lengthscales: the shortest is told."""
    fitted = model(dlfm.FirstOrder(0.05), num_forces=2, lengthscale=30.0)
    other = copy.deepcopy(fitted.members[0])
    (layer,) = other.layers
    decay, ell = layer.greens_function.quantities["decay"], layer.frequencies.lengthscale
    decay.set(torch.tensor([[4.0], [16.0]], dtype=torch.float64))  # over the range of 200
    ell.set(torch.tensor([[[0.5], [0.25]], [[1.0], [2.0]]], dtype=torch.float64))
    both = replace(fitted, members=(fitted.members[0], other), histories=fitted.histories * 2)
    assert [one.time_constant for one in responses(both)] == pytest.approx([20.0, 20.0])
    assert [one.time_constant for one in responses(both, 1)] == pytest.approx([50.0, 12.5])
    assert [one.lengthscale for one in responses(both, 1)] == pytest.approx([50.0, 50.0])
    lags, curves = greens_curves(both, member=1)
    assert lags[-1] == pytest.approx(4 * 50.0)
    np.testing.assert_allclose(curves, np.exp(-lags[:, None] / np.array([50.0, 12.5])), rtol=1e-6)


def test_words_of_several_poles_are_those_of_the_slowest_part() -> None:
    """Poles e^{-st}: two that swing and two that do not, of other speeds."""
    poles = (0.5 + 4j, 0.5 - 4j, 0.1 + 2j, 0.1 - 2j, 3.0 + 0j, 0.02 + 0j)
    one = Response(0, "y", "t", True, poles, 1.0)
    assert one.time_constant == pytest.approx(1 / 0.02)
    assert one.period == pytest.approx(2 * math.pi / 2)
    assert one.damping_ratio == pytest.approx(0.1 / math.hypot(0.1, 2))
    ringing = Response(0, "y", "t", True, (0.1 + 2j, 0.1 - 2j), 1.0)
    assert ringing.in_words() == (
        "y swings with a period of 3.14 along t and forgets with a time constant of 10: it rings "
        "for about 3.2 periods (damping ratio 0.05)."
    )
    still = Response(0, "y", "t", True, (0.5 + 0j, 2.0 + 0j), 1.0)
    assert still.damping_ratio == 1
    assert math.isinf(still.period)
    assert still.in_words("{:.1f} s".format) == (
        "y forgets its force along t with a time constant of 2.0 s, without swinging."
    )


@pytest.mark.parametrize("normalised", [False, True])
def test_greens_functions_are_those_of_the_user(normalised: bool) -> None:
    g = dlfm.SecondOrder(0.02, 0.5, normalised=normalised)
    lags, curves = greens_curves(model(g))
    expected = g(torch.tensor(lags)).detach().numpy()
    np.testing.assert_allclose(curves, np.stack([expected] * 2, axis=1), rtol=1e-6, atol=1e-9)
    assert lags[-1] == pytest.approx(200.0)  # four of the slowest time constants
    with pytest.raises(dlfm.InputError, match="layer must be 0 to 0; got 1"):
        greens_curves(model(g), layer=1)


def test_hidden_inputs_have_no_units() -> None:
    training = dlfm.Training(steps=1, num_samples=1)
    deep = dlfm.DeepLFMRegressor(
        dlfm.FourierDLFM(num_features=5, hidden_dim=2), training, check=False
    )
    found = responses(deep.fit(X, Y).fitted_)
    assert [(one.layer, one.input, one.in_units) for one in found[2:5]] == [
        (1, "hidden 0", False), (1, "hidden 1", False), (1, "x0", True)
    ]  # fmt: skip
    assert "which has no units" in found[2].in_words()


def test_words_for_what_has_no_dynamics_and_what_never_forgets() -> None:
    at_once = responses(model(dlfm.NoDynamics()))[0]
    assert at_once.in_words() == "y0 follows its force at once along x0."
    never = Response(0, "y", "t", True, (0j,), 1.0)
    assert never.in_words() == "y sums its force up along t and never forgets."
