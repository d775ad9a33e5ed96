"""Sealed folders: files that belong together, and a manifest with the SHA-256 of each.

    a.json, b     as .a.json.sealing, .b.sealing ─► manifest.json ─► renamed    (each to the disk)

The manifest is what decides: before it is replaced the folder holds the files that it held, after
it those that were to come, wherever a process is killed. Whoever opens a folder between the
manifest and the last rename finds a file under its first name.
"""

import os
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from torch import Tensor

from deeplfm.data.files.reading import checksum, contents, parsed, sha256, tensors_in, understood
from deeplfm.data.files.writing import json_text, make_folder, plain, save_text, to_disk
from deeplfm.errors import InputError

MANIFEST = "manifest.json"
_VERSION = 1
_SEALING = ".sealing"  # how the name of a file ends that is to come
_LOOKS, _PAUSE = 3, 0.02  # at a folder that is written to meanwhile, and seconds between them


@final
@dataclass(frozen=True, eq=False)
class Sealed:
    """The files of a folder as they were written; `about` says what the writer wanted to say."""

    folder: Path
    about: Mapping[str, Any]
    found: Mapping[str, bytes | None]  # None: it is not there

    def __contains__(self, name: str) -> bool:
        return self.found.get(name) is not None

    def read(self, name: str) -> bytes:
        """A file that must be there."""
        content = self.found.get(name)
        if content is None:
            raise _changed(self.folder / name)
        return content

    def json(self, name: str) -> Any:
        """What a JSON file says."""
        return parsed(self.read(name), self.folder / name)

    def tensors(self, name: str) -> dict[str, Tensor]:
        """The tensors of a safetensors file."""
        return tensors_in(self.read(name), self.folder / name)


def seal(
    folder: Path,
    files: Mapping[str, bytes],
    about: Mapping[str, Any] | None = None,
    keep: Iterable[str] = (),
) -> None:
    """Put files into a folder, all or none; of those that were sealed there `keep` stay."""
    make_folder(folder)
    before = _hashes_before(folder)
    finish(folder)
    kept = {name: digest for name, digest in before.items() if name in set(keep) - files.keys()}
    try:
        for name, content in files.items():
            _next(folder / name).write_bytes(content)
            to_disk(_next(folder / name))
        to_disk(folder)
        hashes = kept | {name: sha256(content) for name, content in files.items()}
        _write_manifest(folder, hashes, about or {})
    except BaseException:
        with suppress(OSError, InputError):
            finish(folder)
        raise
    for name in files:
        os.replace(_next(folder / name), folder / name)
    for name in before.keys() - hashes.keys():
        (folder / name).unlink(missing_ok=True)


def adopt(path: Path, about: Mapping[str, Any]) -> None:
    """Seal a folder of one file that is there already, and too large for memory."""
    _write_manifest(path.parent, {path.name: checksum(path)}, about)


def adopted(path: Path) -> Mapping[str, Any] | None:
    """What was said of a file as it was sealed; None where it was not, or was changed."""
    try:
        manifest = _manifest(path.parent / MANIFEST)
        same = manifest["files"].get(path.name) == checksum(path)
    except (FileNotFoundError, InputError):
        return None
    return dict(manifest["about"]) if same else None


def opened(folder: Path, only: Iterable[str] | None = None) -> Sealed | None:
    """What a sealed folder holds, all of it read or `only` some; None where it has no manifest."""
    path = folder / MANIFEST
    for look in range(_LOOKS):
        if look:  # somebody may be writing
            time.sleep(_PAUSE)
        try:
            manifest = _manifest(path)
        except FileNotFoundError:
            return None
        found: dict[str, bytes | None] = {}
        changed = None
        for name, digest in manifest["files"].items():
            if only is not None and name not in only:
                continue
            content, there = _content(folder / name, digest)
            if content is None and there:
                changed = folder / name
            found[name] = content
        if changed is None:
            return Sealed(folder, manifest["about"], found)
    raise _changed(changed or path)


def names(folder: Path) -> set[str]:
    """The files that are sealed in a folder, as its manifest says; none in what is no folder."""
    return set(_hashes_before(folder)) if folder.is_dir() else set()


def unfinished(folder: Path) -> bool:
    """Whether an interruption left something to `finish`."""
    return any(folder.glob(f".*{_SEALING}"))


def finish(folder: Path) -> None:
    """Bring to its end what an interruption left: new files that count are renamed, others go."""
    hashes = _hashes_before(folder)
    for path in folder.glob(f".*{_SEALING}"):
        name = path.name[1 : -len(_SEALING)]
        counts = name in hashes and _has(path, hashes[name])
        if counts and not _has(folder / name, hashes[name]):
            os.replace(path, folder / name)
        else:
            path.unlink(missing_ok=True)


def _next(path: Path) -> Path:
    return path.with_name(f".{path.name}{_SEALING}")


def _content(path: Path, digest: str) -> tuple[bytes | None, bool]:
    """The content that has the checksum, and whether there was any file of this name."""
    there = False
    for place in (path, _next(path), path):  # it may be renamed between two looks
        with suppress(FileNotFoundError):
            content = contents(place)
            there = True
            if sha256(content) == digest:
                return content, True
    return None, there


def _has(path: Path, digest: str) -> bool:
    """Whether this very file has the checksum."""
    try:
        return checksum(path) == digest
    except (FileNotFoundError, InputError):
        return False


def _write_manifest(folder: Path, hashes: Mapping[str, str], about: Mapping[str, Any]) -> None:
    known = {"version": _VERSION, "about": dict(about), "files": dict(sorted(hashes.items()))}
    save_text(folder / MANIFEST, json_text(known | {"checksum": _own_checksum(known)}))


def _own_checksum(known: Mapping[str, Any]) -> str:
    return sha256(json_text(known).encode())


def _manifest(path: Path) -> dict[str, Any]:
    content = contents(path)
    found = parsed(content, path)
    with understood(path):
        as_written = json_text(found).encode() == content
        own = found.pop("checksum")
        if not as_written or own != _own_checksum(found):
            raise _changed(path)
        if type(found["version"]) is not int or found["version"] != _VERSION:
            raise InputError(
                f"{path} must be of version {_VERSION}; got {found['version']!r}. "
                "Use a newer version of deeplfm."
            )
        if not all(plain(name) and isinstance(one, str) for name, one in found["files"].items()):
            raise _changed(path)
        return {"about": dict(found["about"]), "files": dict(found["files"])}


def _hashes_before(folder: Path) -> dict[str, str]:
    """What a folder that is written to held; nothing where its manifest cannot be used."""
    try:
        return dict(_manifest(folder / MANIFEST)["files"])
    except (FileNotFoundError, InputError):
        return {}


def _changed(path: Path) -> InputError:
    return InputError(
        f"{path} must be as it was written; it is missing or was changed. "
        "Copy the whole folder again."
    )
