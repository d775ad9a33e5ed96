"""Settings as JSON, and back: recipes, trainings, and all that they hold.

    {"type": "FirstOrder", "decay": {"tensor": 2.5, "dtype": "float64"}, …}

An object is the name of its class and the arguments of its constructor; `deeplfm.registry` knows
the classes. Nothing is imported, evaluated or unpickled on behalf of a file.
"""

from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from deeplfm.errors import InputError
from deeplfm.registry import arguments_of, registered
from deeplfm.regressor.devices import checked_dtype

Kind = TypeVar("Kind")


def to_json(value: Any) -> Any:
    """What `json.dumps` can write."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, np.generic):  # of a search over settings, say
        return to_json(value.item())
    if isinstance(value, Tensor):
        return {"tensor": value.detach().double().tolist(), "dtype": str(value.dtype)[6:]}
    if isinstance(value, (frozenset, set)):
        return {"set": sorted(value)}
    if isinstance(value, (list, tuple)):
        return [to_json(item) for item in value]
    if isinstance(value, Mapping):
        return {"mapping": {str(key): to_json(item) for key, item in value.items()}}
    arguments = {key: to_json(item) for key, item in arguments_of(value).items()}
    return {"type": type(value).__name__} | arguments


def from_json(value: Any) -> Any:
    """The settings that `to_json` wrote."""
    if isinstance(value, list):
        return tuple(from_json(item) for item in value)
    if not isinstance(value, dict):
        return value
    if "type" in value:
        return _made(value)
    try:
        if "tensor" in value:
            return torch.tensor(value["tensor"], dtype=checked_dtype(value["dtype"]))
        if "set" in value:
            return frozenset(value["set"])
        return {key: from_json(item) for key, item in value["mapping"].items()}
    except InputError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError):
        raise InputError(
            "settings must hold a class ('type'), a tensor with its dtype, a set or a mapping; got "
            f"{sorted(value)}. Use the version of deeplfm that wrote them."
        ) from None


def read(value: Any, kind: type[Kind]) -> Kind:
    """The settings that `to_json` wrote, of a kind that is known."""
    found = from_json(value)
    if not isinstance(found, kind):
        raise InputError(
            f"settings must be a {kind.__name__} here; got {type(found).__name__}. "
            "Copy the whole folder again."
        )
    return found


def _made(value: dict[str, Any]) -> Any:
    """An object of a registered class, whose constructor may refuse what the file says."""
    cls = registered(value["type"])
    arguments = {key: from_json(item) for key, item in value.items() if key != "type"}
    try:
        return cls(**arguments)
    except InputError:
        raise
    except Exception as error:  # a class of anybody: it may do anything with what it cannot use
        raise InputError(
            f"the settings of {cls.__name__} must be those of this version of it; its constructor "
            f"does not take them ({error}). Use the version that wrote them."
        ) from error
