"""Files: tensors as safetensors, settings as JSON; written whole or not at all, never pickled."""

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from deeplfm.errors import InputError


def save_tensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Tensors by name, from any device."""
    ready = {name: t.detach().cpu().contiguous() for name, t in tensors.items()}
    _write(path, lambda partial: save_file(ready, partial))


def save_json(path: Path, value: object) -> None:
    """Anything `json` can write."""
    text = json.dumps(value, indent=1)
    _write(path, lambda partial: partial.write_text(text, encoding="utf-8"))


def _write(path: Path, write: Callable[[Path], object]) -> None:
    """Write, then rename: an interruption leaves the file that was there before."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.partial")
    try:
        write(partial)
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
