"""States: tensors and what is said about them in one file, with a checksum of its own.

One file is replaced at once, so what is written often, as checkpoints are, needs no manifest.
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from deeplfm.data.files.reading import contents, parsed, tensors_in
from deeplfm.data.files.writing import save_tensors
from deeplfm.errors import InputError

_ABOUT, _DIGEST = "about", "digest"  # names of tensors that hold no numbers


def save_state(path: Path, tensors: Mapping[str, Tensor], about: Mapping[str, Any]) -> None:
    """Tensors of other names than these two, from any device, and what JSON can say of them."""
    text = json.dumps(dict(about)).encode()
    state = {**tensors, _ABOUT: torch.frombuffer(bytearray(text), dtype=torch.uint8)}
    save_tensors(path, state | {_DIGEST: _digest(state)})


def load_state(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
    """The tensors and what was said of them; None where there is no file."""
    try:
        state = tensors_in(contents(path), path)
    except FileNotFoundError:
        return None
    digest = state.pop(_DIGEST, torch.empty(0))
    if _ABOUT not in state or not torch.equal(digest, _digest(state)):
        raise InputError(f"{path} must be as it was written; it was changed. Remove its folder.")
    about = parsed(state.pop(_ABOUT).numpy().tobytes(), path)
    if not isinstance(about, dict):
        raise InputError(f"{path} must say what it is of; it does not. Remove its folder.")
    return state, about


def _digest(tensors: Mapping[str, Tensor]) -> Tensor:
    """A checksum of tensors and their names, [32]; twice as fast as SHA-256 is on most machines."""
    found = hashlib.blake2b(digest_size=32)
    for name in sorted(tensors):
        value = tensors[name].detach().cpu().contiguous()
        found.update(f"{json.dumps(name)} {list(value.shape)} {value.dtype};".encode())
        found.update(np.ascontiguousarray(value.numpy()).data)
    return torch.frombuffer(bytearray(found.digest()), dtype=torch.uint8)
