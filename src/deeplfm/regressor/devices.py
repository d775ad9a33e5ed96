"""Devices and precisions by name, as users write them."""

import torch

from deeplfm.errors import InputError

_DTYPES = {"float32": torch.float32, "float64": torch.float64}


def checked_device(name: str) -> str:
    """`name`, or for "auto" an accelerator if there is one; an error where it is not there."""
    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
    except (RuntimeError, TypeError):
        device = None
    there = device is not None and (
        (device.type == "cpu" and not device.index)
        or (device.type == "cuda" and (device.index or 0) < torch.cuda.device_count())
    )
    if not there:
        found = ["auto", "cpu", *(f"cuda:{k}" for k in range(torch.cuda.device_count()))]
        raise InputError(f"device must be one of {found} here; got {name!r}. Choose one of them.")
    return name


def checked_dtype(name: str) -> torch.dtype:
    """The type of that name."""
    if name not in _DTYPES:
        raise InputError(f"dtype must be one of {list(_DTYPES)}; got {name!r}. Choose one of them.")
    return _DTYPES[name]
