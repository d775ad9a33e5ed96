"""The baselines by name: a class joins with the decorator `baseline`, in the file that defines it.

    @final
    @baseline("gp", "GP", on=("toy", "series"), smoke={"steps": 3})
    class ExactGP(Baseline): ...

Loading, experiments, tables and the tests of every baseline take their lists from here.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar, final

from deeplfm.paper.registration import Registry, check_names
from deeplfm.registry import register

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
    """Register a class of `Baseline`: experiments run it, and it can be saved and loaded.

    `deeplfm.register`, which this calls, refuses two classes of one name.

    name:  what `deeplfm reproduce --models` calls it; no other model has it.
    label: what tables call it; the name, if it is left out.
    on:    the data sets it is run on, by name or by kind: "series", "grid", "table".
    tasks: the only tasks of a data set that it can do, such as ("imputation",); None: all.
    smoke: parameters with which a fit takes a second, for tests and `reproduce --smoke`.
    """

    check_names("on", on)
    check_names("tasks", tasks)

    def decorate(cls: Class) -> Class:
        entry = RegisteredBaseline(name, label or name, register(cls), on, tasks, dict(smoke or {}))
        _REGISTRY.add(name, entry, cls)
        return cls

    return decorate


def registered_baselines() -> dict[str, RegisteredBaseline]:
    """Every baseline by its name: those of this package, and those registered from outside."""
    return _REGISTRY.entries()
