"""Messages: what processes tell each other, as JSON and tensors in bytes; nothing is pickled.

    value ─► JSON, with numbers in the places of tensors ─► one safetensors file ─► bytes

A message holds None, booleans, numbers, words, tensors, lists, tuples (which arrive as lists) and
mappings of those by words. An error is the name of its class and its sentence.
"""

import json
from collections.abc import Mapping
from typing import Any

import torch
from safetensors.torch import load, save
from torch import Tensor

from deeplfm import errors

_TEXT = "text"
_TENSOR, _MAPPING, _LIST = "tensor", "mapping", "list"


def packed(value: object) -> bytes:
    """A message in bytes."""
    tensors: list[Tensor] = []
    text = json.dumps(_plain(value, tensors)).encode()
    named = {str(k): tensor for k, tensor in enumerate(tensors)}
    return bytes(save(named | {_TEXT: torch.frombuffer(bytearray(text), dtype=torch.uint8)}))


def unpacked(message: bytes) -> Any:
    """What was packed."""
    tensors = load(message)
    return _filled(json.loads(tensors.pop(_TEXT).numpy().tobytes()), tensors)


def error_as_message(error: Exception) -> dict[str, str]:
    """An error for the other processes."""
    return {"kind": type(error).__name__, "text": str(error)}


def error_of(message: Mapping[str, str]) -> Exception:
    """The error that another process met: one of ours, or one of the system."""
    kind = getattr(errors, message["kind"], OSError)
    known = isinstance(kind, type) and issubclass(kind, errors.DeepLFMError)
    return kind(message["text"]) if known else OSError(message["text"])


def _plain(value: object, tensors: list[Tensor]) -> Any:
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, Tensor):
        tensors.append(value.detach().cpu().contiguous().clone())
        return {_TENSOR: len(tensors) - 1}
    if isinstance(value, (list, tuple)):
        return {_LIST: [_plain(one, tensors) for one in value]}
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {_MAPPING: {key: _plain(one, tensors) for key, one in value.items()}}
    raise TypeError(f"a message holds JSON and tensors; got a {type(value).__name__}")


def _filled(value: Any, tensors: Mapping[str, Tensor]) -> Any:
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    if kind == _TENSOR:
        return tensors[str(content)]
    if kind == _LIST:
        return [_filled(one, tensors) for one in content]
    return {key: _filled(one, tensors) for key, one in content.items()}
