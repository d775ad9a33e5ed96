"""Reading: files of anybody, which may say anything; what cannot be used is one sentence.

Only plain files are read, and never waited for: opening a pipe would wait for who writes to it.
"""

import hashlib
import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from safetensors import SafetensorError
from safetensors.torch import load
from torch import Tensor

from deeplfm.errors import DeepLFMError, InputError

_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


@contextmanager
def plain_file(path: Path) -> Iterator[IO[bytes]]:
    """A plain file to read; an error where it is a folder, a pipe or a device."""
    try:
        descriptor = os.open(path, _FLAGS)
    except IsADirectoryError:
        raise _not_plain(path) from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise _not_plain(path)
    with os.fdopen(descriptor, "rb") as stream:
        yield stream


def contents(path: Path) -> bytes:
    """All of a plain file."""
    with plain_file(path) as stream:
        return stream.read()


def checksum(path: Path) -> str:
    """SHA-256 of a plain file, read a piece at a time."""
    with plain_file(path) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()  # type: ignore[arg-type]


def sha256(content: bytes) -> str:
    """SHA-256 of bytes."""
    return hashlib.sha256(content).hexdigest()


def parsed(content: bytes, path: Path) -> Any:
    """What a JSON file says."""
    try:
        return json.loads(content.decode("utf-8"))
    except (ValueError, RecursionError) as error:  # long numbers too, and too many brackets
        raise InputError(
            f"{path} must be JSON; it is not ({_first_line(error)}). Copy the whole folder again."
        ) from None


def load_tensors(path: Path) -> dict[str, Tensor]:
    """The tensors of a file, on the CPU."""
    try:
        return tensors_in(contents(path), path)
    except FileNotFoundError:
        raise InputError(f"{path} must exist; it does not. Check the path.") from None


def tensors_in(content: bytes, path: Path) -> dict[str, Tensor]:
    """The tensors that a file of this content holds."""
    try:
        return dict(load(content))
    except (SafetensorError, ValueError, KeyError, RuntimeError) as error:
        raise InputError(
            f"{path} must be a safetensors file; it is not ({_first_line(error)}). "
            "Copy the whole folder again."
        ) from None


@contextmanager
def understood(path: Path) -> Iterator[None]:
    """What is made of a file that says something else than expected is one sentence."""
    try:
        yield
    except (DeepLFMError, OSError, MemoryError):
        raise
    except Exception as error:  # a file of anybody: what it says may break anything
        raise InputError(
            f"{path} must be as this version of deeplfm writes it; it is not "
            f"({type(error).__name__}: {_first_line(error)}). Copy the whole folder again, or use "
            "the version that wrote it."
        ) from None


def _not_plain(path: Path) -> InputError:
    return InputError(
        f"{path} must be a plain file; it is a folder, a pipe or a device. "
        "Copy the whole folder again."
    )


def _first_line(error: BaseException) -> str:
    """What an error says, short enough for a sentence."""
    text = (str(error).splitlines() or [type(error).__name__])[0]
    return text if len(text) <= 200 else f"{text[:200]} …"
