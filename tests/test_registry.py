"""The registry: names and arguments make objects again, and nothing else does."""

import sys
from dataclasses import dataclass, field
from typing import Any

import pytest

import deeplfm as dlfm
from deeplfm import registry
from deeplfm.greens_functions import GreensFunction
from deeplfm.likelihoods import Likelihood
from deeplfm.models import Recipe
from deeplfm.registry import arguments_of, register, registered


@pytest.fixture(autouse=True)
def _forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test registers is not known to the others."""
    monkeypatch.setattr(registry, "_CLASSES", dict(registry._CLASSES))


class Plain:
    """Says its arguments by the method."""

    def __init__(self, size: int, *, word: str = "a") -> None:
        self.size, self.word = size, word

    def arguments(self) -> dict[str, Any]:
        return {"size": self.size, "word": self.word}


def test_what_is_registered_can_be_asked_for() -> None:
    assert register(Plain) is Plain
    assert registered("Plain") is Plain
    assert arguments_of(Plain(3, word="b")) == {"size": 3, "word": "b"}


def test_a_dataclass_is_its_fields() -> None:
    @register
    @dataclass(frozen=True)
    class Settings:
        size: int
        twice: int = field(init=False)

        def __post_init__(self) -> None:
            object.__setattr__(self, "twice", 2 * self.size)

    assert arguments_of(Settings(3)) == {"size": 3}


def test_the_classes_of_the_library_are_known() -> None:
    for name in dlfm.__all__:
        one = getattr(dlfm, name)
        if isinstance(one, type) and issubclass(one, (GreensFunction, Likelihood, Recipe)):
            assert registered(name) is one
    assert registered("Training") is dlfm.Training
    assert registered("Stage") is dlfm.Stage


def test_a_name_that_is_not_known_is_never_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "antigravity", raising=False)
    for name in ("antigravity", "os.system", "Plain", 3, None):
        with pytest.raises(dlfm.InputError, match=r"must name registered classes; .* is not among"):
            registered(name)
    assert "antigravity" not in sys.modules
    with pytest.raises(dlfm.InputError, match=r"'Plain' .* import the module .* @deeplfm.register"):
        registered("Plain")


def test_two_classes_of_one_name_are_refused() -> None:
    with pytest.raises(dlfm.InputError, match=r"Training beside deeplfm\.training.*Rename yours"):
        register(type("Training", (Plain,), {}))
    assert registered("Training") is dlfm.Training


def test_the_same_class_may_come_again() -> None:
    """A cell of a notebook that is run twice makes a new class of the same name and place."""
    made = [
        register(type("Cell", (Plain,), {"__module__": "__main__", "__qualname__": "Cell"}))
        for _ in range(2)
    ]
    assert registered("Cell") is made[1]
    assert arguments_of(made[0](3))["size"] == 3  # one that was made before can still be saved


def test_a_class_must_say_its_arguments() -> None:
    class Silent:
        def __init__(self, size: int) -> None:
            self.size = size

    with pytest.raises(dlfm.InputError, match="Silent must say the arguments that make it again"):
        register(Silent)


@pytest.mark.usefixtures("without_shape_checks")
def test_what_cannot_be_made_is_refused() -> None:
    with pytest.raises(dlfm.InputError, match=r"GreensFunction must be a class that can be made"):
        register(GreensFunction)
    with pytest.raises(dlfm.InputError, match="register must be given a class; got 3"):
        register(3)  # type: ignore[type-var]

    @dataclass
    class Typed:
        type: str

    with pytest.raises(dlfm.InputError, match="must not be called 'type'"):
        register(Typed)


@pytest.mark.parametrize(
    "given",
    [
        {"size": 3},  # word would silently be "a" again
        {"size": 3, "word": "b", "speed": 1},
        {},
    ],
)
def test_arguments_are_those_of_the_constructor(given: dict[str, Any]) -> None:
    own = register(type("Own", (Plain,), {"arguments": lambda self: given}))
    with pytest.raises(dlfm.InputError, match=r"arguments\(\) of Own must .*\['size', 'word'\]"):
        arguments_of(own(3, word="b"))


def test_a_positional_argument_has_no_name() -> None:
    class Positional:
        def __init__(self, size: int, /) -> None:
            self.size = size

        def arguments(self) -> dict[str, Any]:
            return {"size": self.size}

    with pytest.raises(dlfm.InputError, match=r"arguments\(\) of Positional must give those of"):
        arguments_of(register(Positional)(3))


def test_what_is_not_registered_is_not_saved() -> None:
    with pytest.raises(dlfm.InputError, match=r"Plain. Put @deeplfm.register above the class"):
        arguments_of(Plain(3))
    stranger = type("Training", (Plain,), {})
    with pytest.raises(dlfm.InputError, match=r"whose name belongs to deeplfm.training.schedule"):
        arguments_of(stranger(3))
