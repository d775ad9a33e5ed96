"""A fitted model in a folder: settings as JSON, numbers as safetensors, nothing pickled.

    model.json          format, settings, names, seed, checksums
    model.safetensors   the members' states, the scaling, the histories
    data.safetensors    what it was fitted to; may be deleted, only reports look at it

All are written whole or not at all; the JSON comes last and names the checksums of the others.
"""

import hashlib
import json
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
from deeplfm.regressor.formats import FORMAT, translated, translated_history
from deeplfm.regressor.markov import FittedMarkov
from deeplfm.regressor.markov_saving import load_markov, markov_settings, markov_tensors
from deeplfm.regressor.restoring import part_of, restore
from deeplfm.regressor.settings import from_json, read, to_json
from deeplfm.training import Training

Values = NDArray[np.float64]

_SETTINGS, _NUMBERS, _DATA = "model.json", "model.safetensors", "data.safetensors"


def save(model: Fitted, folder: Path | str, estimator: Mapping[str, Any] | None = None) -> None:
    """Write `model` to `folder`, which is made if it is not there.

    `estimator` holds the settings of the estimator that fitted it, if one did.
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
    numbers = folder / _NUMBERS
    files.save_tensors(numbers, tensors)
    settings["sha256"] = checksum(numbers)
    if model.data is not None and not isinstance(model, FittedMarkov):
        table = {"x": torch.tensor(model.data.x), "y": torch.tensor(model.data.y)}
        files.save_tensors(folder / _DATA, table)
        settings["data_sha256"] = checksum(folder / _DATA)
    save_settings(folder / _SETTINGS, settings)


def load(folder: Path | str, device: str = "cpu") -> Fitted:
    """Read what `save` wrote; predictions are those of the model that was saved."""
    folder = Path(folder)
    settings = read_settings(folder / _SETTINGS)
    numbers = folder / _NUMBERS
    check_unchanged(numbers, settings["sha256"])
    tensors = files.load_tensors(numbers)
    scaling = Scaling.from_arrays({n: v.numpy() for n, v in part_of(tensors, "scaling.").items()})
    histories: list[Mapping[str, Values]] = []
    while history := part_of(tensors, f"history.{len(histories)}."):
        known = {name: np.asarray(value) for name, value in history.items()}
        histories.append(translated_history(known, settings["format"]))
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
    if "markov" in settings:
        return load_markov(settings["markov"], tensors, common, numbers, device)
    common["data"] = _data(folder, settings, *names)
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


def save_settings(path: Path, settings: dict[str, Any]) -> None:
    """Settings with a checksum of their own."""
    files.save_json(path, settings | {"checksum": _digest(settings)})


def estimator_settings(folder: Path | str) -> dict[str, Any] | None:
    """The settings of the estimator that saved the folder; None where none did."""
    found = read_settings(Path(folder) / _SETTINGS).get("estimator")
    return None if found is None else dict(from_json(found))


def _data(
    folder: Path, settings: dict[str, Any], inputs: tuple[str, ...], outputs: tuple[str, ...]
) -> Dataset | None:
    """What the model was fitted to, if it is still there."""
    path = folder / _DATA
    if "data_sha256" not in settings or not path.exists():
        return None
    check_unchanged(path, settings["data_sha256"])
    tensors = files.load_tensors(path)
    return Dataset(tensors["x"].numpy(), tensors["y"].numpy(), inputs, outputs)


def read_settings(path: Path) -> dict[str, Any]:
    """The settings of a saved model, as they were written with `save_settings`."""
    try:
        text = path.read_text(encoding="utf-8")
        settings = json.loads(text)
    except FileNotFoundError:
        raise InputError(
            f"{path.parent} must hold a saved model; {path.name} is not there. Check the folder."
        ) from None
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise InputError(
            f"{path} must be JSON; it is not ({error}). Copy the whole folder again."
        ) from None
    found = settings.get("format") if isinstance(settings, dict) else None
    if not isinstance(found, int) or not 1 <= found <= FORMAT:
        raise InputError(
            f"{path} must have format 1 to {FORMAT}; got {found!r}. Use a newer version of deeplfm."
        )
    as_written = files.json_text(settings)
    own = settings.pop("checksum", None)
    if found > 1 and (own != _digest(settings) or text != as_written):
        raise InputError(
            f"{path} must be as it was written; it was changed. Copy the whole folder again."
        )
    return translated(settings)


def check_unchanged(path: Path, expected: str) -> None:
    """The file has the checksum that the settings name."""
    if not path.exists() or checksum(path) != expected:
        raise InputError(
            f"{path} must be the file that the settings name; it is missing or was changed. "
            "Copy the whole folder again."
        )


def _digest(settings: Mapping[str, Any]) -> str:
    return hashlib.sha256(files.json_text(settings).encode()).hexdigest()


def checksum(path: Path) -> str:
    """SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()
