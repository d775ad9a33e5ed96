"""Registries: a file adds a class or a function to a room by a name, with a decorator.

    @baseline("gp", "GP", on=("series",))      @data_set("toy", records=("figure", "equations"))

Whoever needs all of them asks the registry, which first imports every file of the room: a new file
is found without another line. A name that is read from a saved file is only looked up here; no
module is ever imported because a saved file names it.
"""

import pkgutil
from collections.abc import Callable
from importlib import import_module
from typing import Generic, TypeVar, final

from deeplfm.errors import InputError

Entry = TypeVar("Entry")


@final
class Registry(Generic[Entry]):
    """Entries by name: those of the room's files in the order of the files, then those of others.

    room: the package whose files register entries; noun: what an entry is called in errors.
    """

    def __init__(self, room: str, noun: str) -> None:
        self._room = room
        self._noun = noun
        self._entries: dict[str, Entry] = {}
        self._places: dict[str, str] = {}
        self._complete = False

    def add(self, name: str, entry: Entry, registered: Callable[..., object]) -> None:
        """Keep `entry` under `name`; `registered` is the class or function it stands for.

        The same class or function may come again, as in a notebook whose cell is run twice; it
        then takes the place of the former. Another one needs another name.
        """
        place = f"{registered.__module__}.{registered.__qualname__}"
        if self._places.setdefault(name, place) != place:
            raise InputError(
                f"the name of a {self._noun} must be new; got {name!r}, which is the name of "
                f"{self._places[name]}. Choose another name."
            )
        self._entries[name] = entry

    def entries_so_far(self) -> dict[str, Entry]:
        """The entries of those files that were imported already."""
        return dict(self._entries)

    def entries(self) -> dict[str, Entry]:
        """Every entry: those of the room's own files, and those registered from outside."""
        files = pkgutil.iter_modules(import_module(self._room).__path__)
        names = [f"{self._room}.{file.name}" for file in files]
        if not self._complete:
            for name in names:
                import_module(name)
            self._complete = True
        # Not in the order of imports, which another part of a program may have begun.
        order = {name: number for number, name in enumerate(names)}
        number = {
            name: order.get(place.rpartition(".")[0], len(order))
            for name, place in self._places.items()
        }
        return dict(sorted(self._entries.items(), key=lambda entry: number[entry[0]]))


def check_names(argument: str, names: tuple[str, ...] | None) -> None:
    """Raise an error where names are not a tuple: a text would be taken as a set of letters."""
    if isinstance(names, str):
        raise InputError(f"{argument} must be a tuple of names; got {names!r}. Pass ({names!r},).")
