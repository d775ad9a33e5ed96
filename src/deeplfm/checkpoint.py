"""Checkpoints: tensors in one safetensors file, written whole or not at all, never pickled."""

import os
from collections.abc import Mapping
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from deeplfm.errors import InputError


def save(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Write, then rename: an interruption leaves the file that was there before."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.partial")
    try:
        save_file({name: t.detach().cpu().contiguous() for name, t in tensors.items()}, partial)
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def load(path: Path) -> dict[str, Tensor]:
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
