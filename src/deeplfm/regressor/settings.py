"""Settings as JSON, and back: recipes, trainings, Green's functions and likelihoods.

Only what is known here can be read: a name, and the arguments of its constructor. Nothing is
imported, evaluated or unpickled on behalf of a file.
"""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from deeplfm.errors import InputError
from deeplfm.greens_functions import FirstOrder, GreensFunction, LinearODE, NoDynamics, SecondOrder
from deeplfm.likelihoods import Gaussian, Likelihood, StudentT
from deeplfm.models import FourierDLFM, InducingDLFM
from deeplfm.regressor.devices import checked_dtype
from deeplfm.training import Stage, Training

_KNOWN: dict[str, type] = {
    cls.__name__: cls
    for cls in (
        FourierDLFM,
        InducingDLFM,
        Training,
        Stage,
        FirstOrder,
        SecondOrder,
        LinearODE,
        NoDynamics,
    )
} | {cls.__name__: cls for cls in (Gaussian, StudentT)}


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
    name = type(value).__name__
    if _KNOWN.get(name) is not type(value):
        raise InputError(
            f"settings must be of {sorted(_KNOWN)}; got {name}. Save the parts you made yourself."
        )
    if isinstance(value, (GreensFunction, Likelihood)):
        arguments = value.arguments()
    elif is_dataclass(value):
        arguments = {field.name: getattr(value, field.name) for field in fields(value)}
    return {"type": name} | {key: to_json(item) for key, item in arguments.items()}


def from_json(value: Any) -> Any:
    """The settings that `to_json` wrote."""
    if isinstance(value, list):
        return tuple(from_json(item) for item in value)
    if not isinstance(value, dict):
        return value
    if "tensor" in value:
        return torch.tensor(value["tensor"], dtype=checked_dtype(value["dtype"]))
    if "set" in value:
        return frozenset(value["set"])
    if "mapping" in value:
        return {key: from_json(item) for key, item in value["mapping"].items()}
    name = value.get("type")
    if name not in _KNOWN:
        raise InputError(
            f"settings must be of {sorted(_KNOWN)}; got {name!r}. Use a newer version of deeplfm."
        )
    arguments = {key: from_json(item) for key, item in value.items() if key != "type"}
    try:
        return _KNOWN[name](**arguments)
    except TypeError as error:
        raise InputError(
            f"the settings of {name} must be those of this version; {error}. "
            "Use the version of deeplfm that wrote them."
        ) from None
