"""A saved folder, opened: its settings and numbers, after every checksum was looked at.

Of today's format the manifest has the checksums of all files. Older formats have no manifest: their
settings hold the checksums of the others and, from format 2 on, their own.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from torch import Tensor

from deeplfm.data import files
from deeplfm.errors import InputError
from deeplfm.regressor.formats import FORMAT, OLDEST_SEALED, translated


class Saved(NamedTuple):
    """What a folder holds: settings in today's words, numbers, and the data where they are kept."""

    path: Path  # of the settings, for sentences about them
    settings: dict[str, Any]
    written: int  # its format
    numbers: dict[str, Tensor]
    data: dict[str, Tensor] | None


def open_saved(folder: Path, settings: str, numbers: str, data: str = "") -> Saved:
    """The files of these names; an error if one is missing, changed, or of a newer version."""
    path, sealed = folder / settings, files.opened(folder)
    if sealed is None:
        return _older(path, folder / numbers, folder / data if data else None)
    if settings not in sealed.found:
        raise _none(path)
    found = sealed.json(settings)
    written = _format(found, path)
    if written < OLDEST_SEALED:
        raise _changed(path)
    table = sealed.tensors(data) if data and data in sealed else None
    return Saved(path, translated(found), written, sealed.tensors(numbers), table)


def _older(path: Path, numbers: Path, data: Path | None) -> Saved:
    """A folder without a manifest."""
    try:
        content = files.contents(path)
    except FileNotFoundError:
        raise _none(path) from None
    found = files.parsed(content, path)
    written = _format(found, path)
    if written >= OLDEST_SEALED:
        raise _changed(path.with_name(files.MANIFEST))
    with files.understood(path):
        as_written = files.json_text(found).encode() == content
        own = found.pop("checksum", None)
        # A format that is lowered by hand still has the checksum that format 1 has not.
        if (own is not None or written > 1) and not (as_written and own == _digest(found)):
            raise _changed(path)
    tensors = files.tensors_in(_content(numbers, found.get("sha256")), numbers)
    table = None
    if data is not None and "data_sha256" in found and data.exists():
        table = files.tensors_in(_content(data, found["data_sha256"]), data)
    return Saved(path, translated(found), written, tensors, table)


def _format(found: Any, path: Path) -> int:
    written = found.get("format") if isinstance(found, dict) else None
    if type(written) is not int or not 1 <= written <= FORMAT:
        raise InputError(
            f"{path} must have format 1 to {FORMAT}; got {str(written)[:80]}. "
            "Use a newer version of deeplfm."
        )
    return written


def _content(path: Path, expected: object) -> bytes:
    """A file that has the checksum that the settings name."""
    try:
        content = files.contents(path)
    except FileNotFoundError:
        raise _changed(path) from None
    if files.sha256(content) != expected:
        raise _changed(path)
    return content


def _digest(settings: Mapping[str, Any]) -> str:
    return files.sha256(files.json_text(settings).encode())


def _none(path: Path) -> InputError:
    return InputError(
        f"{path.parent} must hold a saved model; {path.name} is not there. Check the folder."
    )


def _changed(path: Path) -> InputError:
    return InputError(
        f"{path} must be as it was written; it is missing or was changed. "
        "Copy the whole folder again."
    )
