"""Files: tensors as safetensors, settings as JSON; written whole or not at all, never pickled."""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor

from deeplfm.errors import InputError


def save_tensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Tensors by name, from any device."""
    ready = {name: t.detach().cpu().contiguous() for name, t in tensors.items()}
    # Through bytes: the file then has the rights that the user's other files have.
    write_whole(path, lambda partial: partial.write_bytes(save(ready)))


def save_json(path: Path, value: object) -> None:
    """Anything `json` can write."""
    save_text(path, json_text(value))


def json_text(value: object) -> str:
    """The text that `save_json` writes."""
    return json.dumps(value, indent=1)


def save_text(path: Path, text: str) -> None:
    """UTF-8, with the line ends as they are."""
    write_whole(path, lambda partial: partial.write_bytes(text.encode()))


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """Write, then rename: an interruption leaves the file that was there before."""
    with whole(path) as partial:
        write(partial)


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """A file to write to, which takes the place of `path` when all went well."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.partial")
    try:
        yield partial
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def load_tensors(path: Path) -> dict[str, Tensor]:
    """The tensors of a checkpoint, on the CPU."""
    try:
        return load_file(path)
    except FileNotFoundError:
        raise InputError(
            f"checkpoint must exist; {path} does not. Train without resuming."
        ) from None
    except SafetensorError as error:
        raise InputError(
            f"checkpoint must be a safetensors file; {path} is not ({error}). Delete it."
        ) from None
