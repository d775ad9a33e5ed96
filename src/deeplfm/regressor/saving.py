"""A fitted model in a folder: settings as JSON, numbers as safetensors, nothing pickled.

    model.json          format, settings, names, seed
    model.safetensors   the members' states, the scaling, the histories
    data.safetensors    what it was fitted to; may be deleted, only reports look at it
    manifest.json       checksums of all files

After an interruption the folder holds the model that was there before, or the new one.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from deeplfm.data import Dataset, Scaling, files
from deeplfm.errors import InputError
from deeplfm.evaluation.check import Check
from deeplfm.models import ModelSettings, Recipe
from deeplfm.regressor.base import Fitted
from deeplfm.regressor.fitted import FittedModel
from deeplfm.regressor.formats import FORMAT, translated_history
from deeplfm.regressor.markov import FittedMarkov
from deeplfm.regressor.markov_saving import load_markov, markov_settings, markov_tensors
from deeplfm.regressor.opening import Saved, open_saved
from deeplfm.regressor.restoring import part_of, restore
from deeplfm.regressor.settings import from_json, read, to_json
from deeplfm.training import Training

Values = NDArray[np.float64]

SETTINGS = "model.json"
_NUMBERS, _DATA = "model.safetensors", "data.safetensors"
FILES = (SETTINGS, _NUMBERS, _DATA, files.MANIFEST)


def save(
    model: Fitted,
    folder: Path | str,
    estimator: Mapping[str, Any] | None = None,
    beside: Mapping[str, bytes] | None = None,
) -> None:
    """Write `model` to `folder`, which is made if it is not there.

    `estimator` holds the settings of the estimator that fitted it, if one did; files `beside` the
    model come with it, and others that were sealed in the folder stay.
    """
    folder = Path(folder)
    settings = {
        "format": FORMAT,
        "recipe": to_json(model.recipe),
        "training": to_json(model.training),
        "input_names": list(model.input_names),
        "output_names": list(model.output_names),
        "seed": model.seed,
        "steps": model.steps,
        "check": None if model.check is None else model.check.to_json(),
        "estimator": None if estimator is None else to_json(dict(estimator)),
        **described(model),
    }
    tensors: dict[str, Tensor] = {
        f"scaling.{name}": torch.tensor(array) for name, array in model.scaling.arrays().items()
    }
    tensors |= numbers_of(model)
    for k, history in enumerate(model.histories):
        tensors |= {f"history.{k}.{name}": torch.tensor(v) for name, v in history.items()}
    written = {SETTINGS: files.json_text(settings).encode(), _NUMBERS: files.tensor_bytes(tensors)}
    if model.data is not None and not isinstance(model, FittedMarkov):
        table = {"x": torch.tensor(model.data.x), "y": torch.tensor(model.data.y)}
        written[_DATA] = files.tensor_bytes(table)
    others = files.names(folder) - {*FILES}
    files.seal(folder, {**(beside or {}), **written}, keep=others)


def load(folder: Path | str, device: str = "cpu") -> Fitted:
    """Read what `save` wrote; predictions are those of the model that was saved."""
    return load_with_estimator(folder, device)[0]


def load_with_estimator(
    folder: Path | str, device: str = "cpu"
) -> tuple[Fitted, dict[str, Any] | None]:
    """The model and the settings of the estimator that saved it; None where none did."""
    saved = open_saved(Path(folder), SETTINGS, _NUMBERS, _DATA)
    with files.understood(saved.path):
        estimator = saved.settings.get("estimator")
        settings = None if estimator is None else dict(from_json(estimator))
        return _model(saved, device), settings


def _model(saved: Saved, device: str) -> Fitted:
    settings, tensors = saved.settings, saved.numbers
    scaling = Scaling.from_arrays({n: v.numpy() for n, v in part_of(tensors, "scaling.").items()})
    histories: list[Mapping[str, Values]] = []
    while history := part_of(tensors, f"history.{len(histories)}."):
        known = {name: np.asarray(value) for name, value in history.items()}
        histories.append(translated_history(known, saved.written))
    names = tuple(settings["input_names"]), tuple(settings["output_names"])
    common: dict[str, Any] = {
        "recipe": read(settings["recipe"], ModelSettings),
        "training": read(settings["training"], Training),
        "scaling": scaling,
        "input_names": names[0],
        "output_names": names[1],
        "histories": tuple(histories),
        "seed": settings["seed"],
        "steps": settings["steps"],
        "check": _check(settings.get("check")),
    }
    numbers = saved.path.with_name(_NUMBERS)
    if "markov" in settings:
        return load_markov(settings["markov"], tensors, common, numbers, device)
    table = saved.data
    common["data"] = None
    if table is not None:
        common["data"] = Dataset(table["x"].numpy(), table["y"].numpy(), *names)
    return _load_members(settings["members"], tensors, common, numbers, device)


def _check(found: Any) -> Check | None:
    try:
        return None if found is None else Check.from_json(found)
    except (KeyError, TypeError, ValueError):
        raise InputError(
            "the check of a saved model must be one of this version; got another. "
            "Use the version of deeplfm that wrote it."
        ) from None


def _load_members(
    count: int, tensors: dict[str, Tensor], common: dict[str, Any], numbers: Path, device: str
) -> FittedModel:
    recipe = common["recipe"]
    if not isinstance(recipe, Recipe):
        raise InputError(
            f"settings must be a Recipe here; got {type(recipe).__name__}. "
            "Copy the whole folder again."
        )
    members = []
    for k in range(count):
        state = part_of(tensors, f"member.{k}.")
        member = recipe.skeleton(common["scaling"])
        like = next(value for value in state.values() if value.is_floating_point())
        member.to(dtype=like.dtype)
        restore(member, state, numbers)
        members.append(member.to(device).requires_grad_(False))
    return FittedModel(members=tuple(members), **common)


def described(model: Fitted) -> dict[str, Any]:
    """What settings say of the kind of model."""
    if isinstance(model, FittedMarkov):
        return {"markov": markov_settings(model)}
    if isinstance(model, FittedModel):
        return {"members": len(model.members)}
    raise TypeError(f"cannot save a {type(model).__name__}")


def numbers_of(model: Fitted) -> dict[str, Tensor]:
    """The numbers of the kind of model."""
    if isinstance(model, FittedMarkov):
        return {f"markov.{name}": value for name, value in markov_tensors(model).items()}
    found: dict[str, Tensor] = {}
    if isinstance(model, FittedModel):
        for k, member in enumerate(model.members):
            found |= {f"member.{k}.{name}": value for name, value in member.state_dict().items()}
    return found
