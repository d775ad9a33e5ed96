"""The baselines by name: a class joins with the decorator `baseline`, in the file that defines it.

    @final
    @baseline("gp", "GP", on=("toy", "series"), smoke={"steps": 3})
    class ExactGP(Baseline): ...

Loading, experiments, tables and the tests of every baseline take their lists from here.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar, final

from deeplfm.errors import InputError
from deeplfm.paper.registration import Registry

if TYPE_CHECKING:
    from deeplfm.paper.baselines.base import Baseline

Class = TypeVar("Class", bound="type[Baseline]")


@final
@dataclass(frozen=True)
class RegisteredBaseline:
    """A baseline, and how experiments use it; the fields are the arguments of `baseline`."""

    name: str
    label: str
    cls: "type[Baseline]"
    on: tuple[str, ...]
    tasks: tuple[str, ...] | None
    smoke: Mapping[str, Any]


_REGISTRY: Registry[RegisteredBaseline] = Registry("deeplfm.paper.baselines", "baseline")


def baseline(
    name: str,
    label: str = "",
    *,
    on: tuple[str, ...] = ("series",),
    tasks: tuple[str, ...] | None = None,
    smoke: Mapping[str, Any] | None = None,
) -> Callable[[Class], Class]:
    """Register a class of `Baseline`, so that experiments run it and `load` reads it back.

    name:  what `deeplfm reproduce --models` calls it; no other model has it.
    label: what tables call it; the name, if it is left out.
    on:    the data sets it is run on, by name or by kind: "series", "grid", "table".
    tasks: the only tasks of a data set that it can do, such as ("imputation",); None: all.
    smoke: parameters with which a fit takes a second, for tests and `reproduce --smoke`.
    """

    def register(cls: Class) -> Class:
        for other in _REGISTRY.entries_so_far().values():
            if other.cls.__name__ == cls.__name__ and other.name != name:
                raise InputError(
                    f"the class of a baseline must have a new name, by which it is saved; got "
                    f"{cls.__name__!r}, which is the class of {other.name!r}. Rename the class."
                )
        entry = RegisteredBaseline(name, label or name, cls, on, tasks, dict(smoke or {}))
        _REGISTRY.add(name, entry, cls)
        return cls

    return register


def registered_baselines() -> dict[str, RegisteredBaseline]:
    """Every baseline by its name: those of this package, and those registered from outside."""
    return _REGISTRY.entries()


def registered_class(saved_name: str) -> "type[Baseline]":
    """The class that is saved under a name; an error where no registered class has it."""
    classes = {entry.cls.__name__: entry.cls for entry in registered_baselines().values()}
    if saved_name not in classes:
        raise InputError(
            f"a saved baseline must be one of {sorted(classes)}; got {saved_name!r}. Import the "
            "file that registers it with @baseline, or use a newer version of deeplfm."
        )
    return classes[saved_name]


def name_to_save(cls: "type[Baseline]") -> str:
    """The name under which a class is saved; an error where `load` could not find it again."""
    if cls not in [entry.cls for entry in registered_baselines().values()]:
        raise InputError(
            f"a baseline must be registered to be saved; {cls.__name__} is not. Put "
            "@baseline(name) of deeplfm.paper.baselines above its class."
        )
    return cls.__name__
