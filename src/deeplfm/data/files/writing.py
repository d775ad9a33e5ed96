"""Writing: a file is there whole and on the disk, or the one that was there before is.

    write the partial file ─► to the disk ─► rename ─► the folder to the disk

Without the disk in between, a loss of power could keep the rename and lose the numbers.
"""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from safetensors.torch import save
from torch import Tensor


def save_tensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Tensors by name, from any device."""
    content = tensor_bytes(tensors)
    # Through bytes: the file then has the rights that the user's other files have.
    write_whole(path, lambda partial: partial.write_bytes(content))


def tensor_bytes(tensors: Mapping[str, Tensor]) -> bytes:
    """The file that `save_tensors` writes."""
    ready = {name: t.detach().cpu().contiguous() for name, t in tensors.items()}
    return bytes(save(ready))


def save_json(path: Path, value: object) -> None:
    """Anything `json` can write."""
    save_text(path, json_text(value))


def json_text(value: object) -> str:
    """The text that `save_json` writes."""
    return json.dumps(value, indent=1)


def save_text(path: Path, text: str) -> None:
    """UTF-8, with the line ends as they are; names of files that are no UTF-8 are made readable."""
    content = text.encode("utf-8", "backslashreplace")
    write_whole(path, lambda partial: partial.write_bytes(content))


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """Write, then rename: an interruption leaves the file that was there before."""
    with whole(path) as partial:
        write(partial)


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """A file to write to, which takes the place of `path` when all went well."""
    make_folder(path.parent)
    partial = path.with_name(f".{path.name}.partial")
    try:
        yield partial
        to_disk(partial)
        os.replace(partial, path)
        to_disk(path.parent)
    finally:
        partial.unlink(missing_ok=True)


def make_folder(folder: Path) -> list[Path]:
    """A folder and those above it; the ones that had to be made, the deepest last."""
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    for one in reversed(missing):
        one.mkdir(exist_ok=True)
    if missing:
        to_disk(missing[-1].parent)
    else:
        folder.mkdir(exist_ok=True)  # it is an error if this is a file
    return missing[::-1]


def to_disk(path: Path) -> None:
    """Wait until a file, or which files a folder holds, would outlast a loss of power."""
    if not path.is_dir():
        with path.open("r+b") as stream:
            os.fsync(stream.fileno())
        return
    with suppress(OSError):  # not every system opens folders, or can do this to them
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def plain(name: object) -> bool:
    """Whether this is the name of a file in its folder, and nowhere else."""
    return (
        isinstance(name, str)
        and bool(name)
        and not name.startswith(".")
        and not set(name) & {"/", "\\", "\0", ":"}
    )
