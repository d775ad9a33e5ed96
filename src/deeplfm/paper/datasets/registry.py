"""The data sets by name: a function joins with the decorator `data_set`, in its own file.

    @data_set("toy", records=("figure", "equations"), seeds=5)
    def toy_record(record, seed, path): ...

Every data set is an experiment of the same name. Experiments, tables and the tests of every data
set take their lists from here.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias, TypeVar, final

from deeplfm.data import Observations
from deeplfm.paper.registration import Registry, check_names

Folder: TypeAlias = Path | str | None
Load: TypeAlias = Callable[[str, int, Folder], Observations]
Function = TypeVar("Function", bound=Load)

SERIES_TASKS = ("imputation", "extrapolation")


@final
@dataclass(frozen=True)
class RegisteredDataSet:
    """A data set, and how experiments use it; the fields are the arguments of `data_set`."""

    name: str
    load: Load
    records: tuple[str, ...]
    kinds: tuple[str, ...]
    tasks: tuple[str, ...]
    seeds: int


_REGISTRY: Registry[RegisteredDataSet] = Registry("deeplfm.paper.datasets", "data set")


def data_set(
    name: str,
    *,
    records: tuple[str, ...] = (),
    kinds: tuple[str, ...] = (),
    tasks: tuple[str, ...] = SERIES_TASKS,
    seeds: int = 1,
) -> Callable[[Function], Function]:
    """Register a function `(record, seed, path) -> Observations` as a data set.

    name:    what `deeplfm reproduce` calls its experiment.
    records: the series or tables that it holds, by name; its own name, if it holds only one.
    kinds:   the kinds of data it is, which choose its models: "series" (values over time), "grid"
             (a series on a regular grid, without rows left out), "table" (rows of inputs). A model
             that names the data set itself is run on it as well.
    tasks:   names of tests of its observations, each of which is hidden and scored.
    seeds:   how many seeds the experiment has; the function is given each of them.

    `path` is the folder of data files that the user named; None where there is none.
    """

    for argument, names in {"records": records, "kinds": kinds, "tasks": tasks}.items():
        check_names(argument, names)

    def decorate(function: Function) -> Function:
        entry = RegisteredDataSet(name, function, records or (name,), kinds, tasks, seeds)
        _REGISTRY.add(name, entry, function)
        return function

    return decorate


def registered_data_sets() -> dict[str, RegisteredDataSet]:
    """Every data set by its name: those of this package, and those registered from outside."""
    return _REGISTRY.entries()
