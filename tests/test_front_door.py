"""The front door: every public name says what it is, what goes in, and shows it in an example."""

import doctest
import inspect
import re
from typing import Any

import numpy as np
import pytest
import torch

import deeplfm
from deeplfm.errors import DeepLFMError

NAMES = [name for name in deeplfm.__all__ if name != "__version__"]
ERRORS = {name for name in NAMES if name.endswith("Error")}
# Settings and a decorator, through which no arrays go: every other name must show its shapes.
WITHOUT_SHAPES = {"FourierDLFM", "InducingDLFM", "NoDynamics", "Stage", "Training"}
WITHOUT_SHAPES |= {"MarkovDLFM", "load", "register"}
SECTIONS = ["Args:", "Shapes:", "Example:"]
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def parameters(thing: Any) -> list[str]:
    """The arguments of a function or a constructor by name; fields of a dataclass are such."""
    found = inspect.signature(thing).parameters
    return [name for name in found if name not in ("self", "cls") or not isinstance(thing, type)]


def section(text: str, head: str) -> str:
    """The indented lines below a head, or nothing."""
    found = re.search(rf"^{head}\n((?:[ ]+\S.*\n|\n)*)", f"{text}\n", re.MULTILINE)
    return found[1] if found else ""


def faults_of_words(name: str, thing: Any) -> list[str]:
    """What the documentation of a public name lacks, in words that say the name."""
    own = thing.__doc__ if not isinstance(thing, type) else thing.__dict__.get("__doc__")
    text = inspect.cleandoc(own or "")
    first = text.split("\n\n")[0]
    # A dataclass without a docstring gets its signature as one.
    if not first.rstrip().endswith((".", ":")) or first.startswith((f"{name}(", "Of ")):
        return [f"{name}: the docstring must open with a full sentence"]
    if isinstance(thing, type) and issubclass(thing, DeepLFMError):
        return []
    arguments = section(text, "Args:")
    heads = [head for head in SECTIONS if head != "Shapes:" or name not in WITHOUT_SHAPES]
    faults = [f"{name}: a section {head}" for head in heads if not section(text, head)]
    faults += [
        f"{name}: the argument {one}"
        for one in parameters(thing)
        if not re.search(rf"^    {one}: \S", arguments, re.MULTILINE)
    ]
    places = [text.find(f"\n{head}\n") for head in SECTIONS if f"\n{head}\n" in text]
    if places != sorted(places):
        faults.append(f"{name}: the sections in the order {SECTIONS}")
    if ">>> " not in section(text, "Example:"):
        faults.append(f"{name}: an example with >>> lines")
    return faults


def faults_of_example(name: str, thing: Any) -> list[str]:
    """What goes wrong where the example of a public name is run."""
    names = {"dlfm": deeplfm, "np": np, "torch": torch, "__name__": "examples"}
    text = inspect.cleandoc(thing.__doc__ or "")
    example = doctest.DocTestParser().get_doctest(text, names, name, None, None)
    said: list[str] = []
    doctest.DocTestRunner(verbose=False, optionflags=FLAGS).run(example, out=said.append)
    return [f"{name}: {''.join(said)}"] if said else []


@pytest.mark.parametrize("name", NAMES)
def test_every_public_name_is_documented(name: str) -> None:
    assert faults_of_words(name, getattr(deeplfm, name)) == []


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ERRORS])
def test_every_example_runs(name: str) -> None:
    assert faults_of_example(name, getattr(deeplfm, name)) == []


@pytest.mark.parametrize("owner", [deeplfm.DeepLFMRegressor, deeplfm.Predictive])
def test_public_methods_name_their_arguments(owner: type) -> None:
    methods = {name: one for name, one in vars(owner).items() if not name.startswith("_")}
    for name, one in methods.items():
        inner = getattr(one, "fget", None) or getattr(one, "__func__", one)
        if not inspect.isfunction(inner) or inner.__module__ != owner.__module__:
            continue
        text = inner.__doc__ or ""
        assert "." in text, f"{owner.__name__}.{name} needs a sentence"
        for argument in inspect.signature(inner).parameters:
            known = argument in ("self", "cls") or f"`{argument}`" in text
            assert known, f"{owner.__name__}.{name} must say what `{argument}` is"


def test_a_new_name_without_documentation_is_noticed() -> None:
    class Bare:
        def __init__(self, size: int) -> None: ...

    class Half:
        """A class with a sentence and no more.

        Args:
            size: a number.
        """

        def __init__(self, size: int, weight: float) -> None: ...

    class Wrong:
        """A class whose example is wrong.

        Args:
            size: a number.

        Shapes:
            size: ().

        Example:
            >>> 1 + 1
            3
        """

        def __init__(self, size: int) -> None: ...

    assert faults_of_words("Bare", Bare) == [
        "Bare: the docstring must open with a full sentence",
    ]
    assert faults_of_words("Half", Half) == [
        "Half: a section Shapes:",
        "Half: a section Example:",
        "Half: the argument weight",
        "Half: an example with >>> lines",
    ]
    assert faults_of_words("Wrong", Wrong) == []
    assert faults_of_example("Wrong", Wrong)[0].startswith("Wrong: ")
