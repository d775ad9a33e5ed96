"""Choices: every word that is not among those of its Literal type is refused, in one sentence.

Classes and functions are found by their annotations, so that a new choice is covered by itself.
"""

import importlib
import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, get_args, get_type_hints

import numpy as np
import pytest
import torch

import deeplfm as dlfm
from deeplfm.forces import ForcePrior
from deeplfm.layers import FourierLayer
from deeplfm.layers.frequencies import Frequencies
from deeplfm.models import Recipe
from deeplfm.shapes import check_above_zero, check_choice, check_choices
from deeplfm.variational.parameters import Quantity

pytestmark = pytest.mark.usefixtures("without_shape_checks")

ROOMS = ("deeplfm", *(f"deeplfm.{room}" for room in (
    "evaluation", "forces", "greens_functions", "layers", "likelihoods", "models", "responses",
    "training",
)))  # fmt: skip
ONE = torch.ones(1, dtype=torch.float64)
ODE = dlfm.FirstOrder()

# What else each of them needs, to be made at all. What has defaults for everything needs nothing.
NEEDS: dict[str, dict[str, Any]] = {
    "Stage": {"until": 1.0, "num_samples": 1},
    "FourierLayer": {"num_inputs": 1, "num_outputs": 1, "greens_function": ODE},
    "InducingLayer": {
        "num_inputs": 1,
        "num_outputs": 1,
        "greens_function": ODE,
        "inducing_inputs": torch.zeros(2, 1, dtype=torch.float64),
    },
    "Frequencies": {
        "lengthscale": Quantity("lengthscale", torch.ones(1, 1, 1, dtype=torch.float64)),
        "num_features": 2,
    },
    "LatentForceKernel": {"greens_functions": ODE},
    "wave_response": {"x": ONE, "frequency": ONE, "pole": ONE},
    "bump_response": {"x": ONE, "center": ONE, "lengthscale": ONE, "pole": ONE},
    "system_wave_response": {"greens_function": ODE, "x": ONE, "frequency": ONE},
    "system_bump_response": {"greens_function": ODE, "x": ONE, "center": ONE, "lengthscale": ONE},
    "path_response": {
        "greens_function": ODE,
        "path": ForcePrior(1.0).draw(1, 2),
        "x": ONE[:, None],
    },
    "quadrature": {"greens_function": ODE, "force": torch.sin, "x": ONE},
}


def public() -> Iterator[Callable[..., Any]]:
    """What the rooms offer, and what a Fourier layer is made with."""
    found: dict[str, Callable[..., Any]] = {"Frequencies": Frequencies}
    for room in ROOMS:
        module = importlib.import_module(room)
        found |= {name: getattr(module, name) for name in module.__all__ if name[0] != "_"}
    yield from (one for one in found.values() if callable(one))


def choices() -> list[tuple[Callable[..., Any], str]]:
    found = []
    for one in public():
        made = one.__init__ if inspect.isclass(one) else one
        found += [
            (one, name)
            for name, hint in get_type_hints(made).items()
            # A number may stand beside a word: such a choice has a test of its own.
            if "Literal[" in str(hint) and name != "return" and int not in get_args(hint)
        ]
    return found


def test_the_search_finds_them() -> None:
    found = {(one.__name__, name) for one, name in choices()}
    assert len(found) >= 30
    assert {("FourierDLFM", "weights"), ("Stage", "objective"), ("FourierLayer", "inputs")} <= found


@pytest.mark.parametrize(
    ("made", "name"), [pytest.param(*one, id=f"{one[0].__name__}-{one[1]}") for one in choices()]
)
@pytest.mark.parametrize("wrong", ["ful", "", 3, np.array(["zero", "full"])], ids=repr)
def test_a_word_that_is_no_choice_is_refused(
    made: Callable[..., Any], name: str, wrong: object
) -> None:
    expected = rf"^{name} must be one of \[.*\].*; got {re.escape(repr(wrong))}. Choose one of"
    with pytest.raises(dlfm.InputError, match=expected):
        made(**NEEDS.get(made.__name__, {}) | {name: wrong})


@pytest.mark.parametrize(
    ("recipe", "name"),
    [
        *((dlfm.FourierDLFM, name) for name in ("lengthscale", "hidden_lengthscale")),
        *((dlfm.InducingDLFM, name) for name in ("lengthscale", "hidden_lengthscale")),
        (dlfm.FourierDLFM, "weight_scale"),
        (dlfm.InducingDLFM, "spread"),
    ],
)
@pytest.mark.parametrize("wrong", [0.0, -1.0, float("inf"), float("nan"), "1", True])
def test_scales_are_above_zero_and_finite(recipe: Any, name: str, wrong: object) -> None:
    with pytest.raises(dlfm.InputError, match=f"^{name} must be above 0 and finite; got "):
        recipe(**{name: wrong})
    assert getattr(recipe(**{name: np.float64(0.5)}), name) == 0.5


def test_the_width_of_the_weights_is_checked_by_the_layer() -> None:
    with pytest.raises(dlfm.InputError, match=r"^weight_scale must be above 0 and finite"):
        FourierLayer(1, 1, greens_function=ODE, weight_scale=0.0)


@pytest.mark.parametrize("recipe", [dlfm.FourierDLFM, dlfm.InducingDLFM])
def test_templates_are_of_their_kind(recipe: Any) -> None:
    with pytest.raises(dlfm.InputError, match="greens_function must be a Green's function, a list"):
        recipe(greens_function=[ODE, 2.5])
    with pytest.raises(dlfm.InputError, match="greens_function must be a Green's function, a list"):
        recipe(greens_function="first")
    with pytest.raises(dlfm.InputError, match=r"likelihood must be .* such as Gaussian\(\); got"):
        recipe(likelihood="gaussian")


@pytest.mark.parametrize("wrong", ["ful", "", -1, 2.5, True, None])
def test_modes_are_a_number_or_a_word(wrong: Any) -> None:
    with pytest.raises(dlfm.InputError, match=r"^modes must be 'auto' or an integer of at least 0"):
        dlfm.MarkovDLFM(modes=wrong)
    assert dlfm.MarkovDLFM(modes=0).modes == 0


def test_none_is_a_choice_where_the_type_says_so() -> None:
    check_choice("speed", None, Literal["slow", "fast"] | None)
    with pytest.raises(dlfm.InputError, match=r"one of \['slow', 'fast'\] or None; got 'full'"):
        check_choice("speed", "full", Literal["slow", "fast"] | None)
    with pytest.raises(dlfm.InputError, match=r"one of \['slow', 'fast'\]; got None"):
        check_choice("speed", None, Literal["slow", "fast"])


def test_a_recipe_of_a_user_is_checked_by_its_annotations() -> None:
    @dataclass(frozen=True)
    class Own(Recipe):
        speed: Literal["slow", "fast"] = "slow"
        name: str | None = "anything"
        later: "Literal['now', 'never']" = "now"

        def skeleton(self, scaling: Any, generator: Any = None) -> Any:
            return None

    assert Own(speed="fast", name=None).speed == "fast"
    for field, word in (("speed", "full"), ("later", "soon")):
        with pytest.raises(dlfm.InputError, match=f"{field} must be one of"):
            Own(**{field: word})  # type: ignore[arg-type]


def test_names_that_only_a_type_checker_knows_do_no_harm() -> None:
    @dataclass(frozen=True)
    class Half:
        other: "Unknown"
        speed: Literal["slow", "fast"]

    check_choices(Half(3, "slow"))
    with pytest.raises(dlfm.InputError, match="speed must be one of"):
        check_choices(Half(3, "full"))  # type: ignore[arg-type]


def test_numbers_of_numpy_are_numbers() -> None:
    check_above_zero("speed", np.float32(2))
    check_above_zero("speed", np.int64(2))
