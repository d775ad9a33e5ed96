"""REGISTRY: the classes that a saved model may name.

    @deeplfm.register
    class MyODE(GreensFunction): ...

A file holds the name of a class and the arguments that make the object again: the fields of a
dataclass, or what the method `arguments()` returns. Whoever reads the file asks here for the class;
nothing is imported on behalf of a file.
"""

import inspect
from dataclasses import fields, is_dataclass
from typing import Any, Protocol, TypeVar, runtime_checkable

from deeplfm.errors import InputError

Class = TypeVar("Class", bound=type)

_CLASSES: dict[str, type] = {}
_RESERVED = "type"  # the key that holds the name of the class in a file


@runtime_checkable
class Remade(Protocol):
    """An object that says with which arguments its constructor makes it again."""

    def arguments(self) -> dict[str, Any]: ...


def register(cls: Class) -> Class:
    """Let models be saved and loaded that hold an object of this class; use it as a decorator.

    It returns the class itself. Two classes of one name are refused. The same class may come again,
    as when a cell of a notebook is run twice; the newer one then takes the place of the older one.

    Args:
        cls: a dataclass, or a class whose method `arguments()` returns the arguments that make an
            object again, by name. The decorator comes above `@dataclass`.

    Example:
        >>> from deeplfm.greens_functions import FirstOrder, GreensFunction
        >>> @dlfm.register
        ... class HalvingODE(GreensFunction):  # it forgets one half in every `half_life`
        ...     stable = True
        ...     def __init__(self, half_life=1.0):
        ...         super().__init__({"half_life": half_life})
        ...     @property
        ...     def factors(self):
        ...         return FirstOrder(np.log(2) / self.value("half_life").item()).factors
        >>> round(HalvingODE(3.0)(3.0).item(), 4)
        0.5
    """
    if not isinstance(cls, type):
        raise InputError(f"register must be given a class; got {cls!r}. Put it above `class`.")
    if not is_dataclass(cls) and not issubclass(cls, Remade):
        raise InputError(
            f"{cls.__name__} must say the arguments that make it again; got neither a dataclass "
            "nor a method arguments(). Add one of them; @register comes above @dataclass."
        )
    if inspect.isabstract(cls):
        raise InputError(
            f"{cls.__name__} must be a class that can be made; got the abstract methods "
            f"{sorted(cls.__abstractmethods__)}. Write them, or register its subclasses."
        )
    if _RESERVED in inspect.signature(cls).parameters:
        raise InputError(
            f"the arguments of {cls.__name__} must not be called {_RESERVED!r}, which is the key "
            "of the class itself in a file; got one of that name. Rename it."
        )
    known = _CLASSES.get(cls.__name__)
    if known is not None and not _is_same(known, cls):
        raise InputError(
            f"registered classes must have different names; got {_origin(cls)} beside "
            f"{_origin(known)}. Rename yours."
        )
    _CLASSES[cls.__name__] = cls
    return cls


def registered(name: object) -> type:
    """The class of that name, or an error that says what to do about it."""
    if not isinstance(name, str) or name not in _CLASSES:
        raise InputError(
            f"the file must name registered classes; {name!r} is not among {sorted(_CLASSES)}. "
            "Before you load it, import the module that defines this class with @deeplfm.register "
            "above it, or use the version of deeplfm that wrote the file."
        )
    return _CLASSES[name]


def arguments_of(value: object) -> dict[str, Any]:
    """The arguments that make `value` again, an object of a registered class."""
    cls = type(value)
    known = _CLASSES.get(cls.__name__)
    if known is None or not _is_same(known, cls):
        other = "" if known is None else f", whose name belongs to {_origin(known)}"
        raise InputError(
            f"what is saved must be of registered classes, numbers, words, tensors, or lists and "
            f"mappings of those; got {_origin(cls)}{other}. Put @deeplfm.register above the class."
        )
    arguments: dict[str, Any] = {}
    if isinstance(value, Remade):
        arguments |= value.arguments()
    elif is_dataclass(value):
        arguments |= {one.name: getattr(value, one.name) for one in fields(value) if one.init}
    _check_complete(cls, arguments)
    return arguments


def _check_complete(cls: type, arguments: dict[str, Any]) -> None:
    """All arguments of the constructor and no others: what is left out would be lost silently."""
    parameters = inspect.signature(cls).parameters.values()
    names = {
        one.name for one in parameters if one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)
    }
    try:
        inspect.signature(cls).bind(**arguments)
        fits = names <= set(arguments)
    except TypeError:
        fits = False
    if not fits:
        raise InputError(
            f"arguments() of {cls.__name__} must give those of its constructor, "
            f"{sorted(names)}; got {sorted(arguments)}. Override it, or change the constructor."
        )


def _is_same(one: type, other: type) -> bool:
    """Whether both are one class, perhaps of two imports or two runs of a cell."""
    return (one.__module__, one.__qualname__) == (other.__module__, other.__qualname__)


def _origin(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"
