"""Settings as JSON and back, and what files may not make of them."""

import json
from typing import Any

import numpy as np
import pytest
import torch

import deeplfm as dlfm
from deeplfm import registry
from deeplfm.models import Recipe
from deeplfm.regressor.settings import from_json, read, to_json

KINDS = [
    dlfm.FourierDLFM.paper(),
    dlfm.InducingDLFM(greens_function=[dlfm.LinearODE([1.0, 2.0, 1.5]), dlfm.NoDynamics()]),
    dlfm.FourierDLFM(
        greens_function=dlfm.SecondOrder(
            0.5, 2.0, normalised=True, learn=["damping"], bounds={"damping": (0.1, 5.0)}
        ),
        likelihood=dlfm.StudentT(0.02, degrees=5.0, bounds=(1e-4, 1.0)),
    ),
    dlfm.Training.paper(),
    dlfm.Training(stages=(dlfm.Stage(0.5, 1, frozenset({"noise"}), "multi_sample"),)),
]


@pytest.mark.parametrize("value", KINDS, ids=lambda one: type(one).__name__)
def test_through_json_and_back(value: Any) -> None:
    again = from_json(json.loads(json.dumps(to_json(value))))
    assert type(again) is type(value)
    assert rounded(again) == rounded(value)


def rounded(value: Any) -> Any:
    """What is written, without the last digits: a bounded number passes through a logarithm."""
    return json.loads(json.dumps(to_json(value)), parse_float=lambda text: round(float(text), 12))


def test_values_of_every_kind() -> None:
    value = {"a": (1, None, "x"), "b": torch.tensor([1.5]), "c": {"d": frozenset({"e"})}}
    again = from_json(json.loads(json.dumps(to_json(value | {"n": np.int64(3)}))))
    assert again["a"] == (1, None, "x")
    assert torch.equal(again["b"], torch.tensor([1.5]))
    assert again["c"] == {"d": frozenset({"e"})}
    assert again["n"] == 3


def test_an_argument_may_have_any_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also those that mark a tensor or a set in a file."""
    monkeypatch.setattr(registry, "_CLASSES", dict(registry._CLASSES))

    class Odd:
        def __init__(self, tensor: int, set: int, mapping: int) -> None:  # noqa: A002
            self.values = {"tensor": tensor, "set": set, "mapping": mapping}

        def arguments(self) -> dict[str, Any]:
            return self.values

    dlfm.register(Odd)
    assert from_json(to_json(Odd(1, 2, 3))).values == {"tensor": 1, "set": 2, "mapping": 3}


BROKEN: dict[str, tuple[Any, str]] = {
    "a class that is not registered": (
        {"type": "os.system", "command": "ls"},
        r"'os.system' is not among \[.*'Training'.*\]. Before you load it, import the module",
    ),
    "one inside a mapping": ({"mapping": {"a": {"type": "Wish"}}}, "'Wish' is not among"),
    "an argument there is not": (
        {"type": "Training", "speed": 3},
        r"settings of Training must be those of this version of it; .*'speed'.* Use the version",
    ),
    "a value of another kind": (
        {"type": "Gaussian", "noise_variance": {"tensor": [0.1], "dtype": "float64"}, "bounds": 3},
        "bounds of noise_variance must be",
    ),
    "a number that is a word": (
        {"type": "Training", "learning_rate": "quick"},
        r"the settings of Training must be those .* its constructor does not take them",
    ),
    "a mapping that is none": (
        {"type": "FirstOrder", "decay": 1.0, "bounds": 2},
        "the settings of FirstOrder must be those .* its constructor does not take them",
    ),
    "a choice that is none": ({"type": "Stage", "until": 1, "num_samples": 1, "objective": "best"},
        "objective must be one of"),
    "a tensor without a type": ({"tensor": [1.0]}, r"settings must hold .* got \['tensor'\]"),
    "a tensor of words": ({"tensor": ["a"], "dtype": "float64"}, "settings must hold a class"),
    "a tensor of another type": ({"tensor": [1.0], "dtype": "int8"}, "dtype must be one of"),
    "a set of one number": ({"set": 3}, "settings must hold a class"),
    "a mapping of one number": ({"mapping": 3}, "settings must hold a class"),
    "nothing we know": ({"pickle": "gASV"}, r"settings must hold .* got \['pickle'\]"),
}  # fmt: skip


@pytest.mark.usefixtures("without_shape_checks")
@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_file_gets_a_sentence(case: str) -> None:
    value, message = BROKEN[case]
    with pytest.raises(dlfm.InputError, match=message) as caught:
        from_json(value)
    assert "\n" not in str(caught.value)


def test_whatever_a_constructor_does_it_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_CLASSES", dict(registry._CLASSES))

    class Careless:
        def __init__(self, size: int) -> None:
            self.inverse = 1 / size

        def arguments(self) -> dict[str, Any]:
            return {"size": round(1 / self.inverse)}

    dlfm.register(Careless)
    assert from_json(to_json(Careless(4))).inverse == 0.25
    with pytest.raises(dlfm.InputError, match=r"settings of Careless must .* \(division by zero\)"):
        from_json({"type": "Careless", "size": 0})


def test_a_recipe_must_be_a_recipe() -> None:
    with pytest.raises(dlfm.InputError, match=r"must be a Recipe here; got Training. Copy"):
        read(to_json(dlfm.Training()), Recipe)  # type: ignore[type-abstract]


def test_what_is_no_setting_is_not_written() -> None:
    with pytest.raises(
        dlfm.InputError, match=r"must be of registered classes.*got builtins.object"
    ):
        to_json(object())
    with pytest.raises(dlfm.InputError, match=r"got builtins.complex. Put @deeplfm.register"):
        to_json(1j)
