"""A fitted model in a folder: settings as JSON, numbers as safetensors, nothing pickled.

    model.json     format, version, settings, names, seed, checksums
    model.safetensors   the members' states, the scaling, the histories

Both are written whole or not at all; the JSON comes last and names the checksum of the other.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from deeplfm import files
from deeplfm.configs import from_json, to_json
from deeplfm.data import Scaling
from deeplfm.errors import InputError
from deeplfm.fitting import FittedModel

FORMAT = 1
_SCALING = ("input_origin", "input_scale", "target_mean", "target_std")


def save(model: FittedModel, folder: Path | str) -> None:
    """Write `model` to `folder`, which is made if it is not there."""
    folder = Path(folder)
    settings = {
        "format": FORMAT,
        "recipe": to_json(model.recipe),
        "training": to_json(model.training),
        "input_names": list(model.input_names),
        "output_names": list(model.output_names),
        "members": len(model.members),
        "seed": model.seed,
        "steps": model.steps,
    }
    tensors: dict[str, Tensor] = {
        f"scaling.{name}": torch.tensor(getattr(model.scaling, name)) for name in _SCALING
    }
    for k, (member, history) in enumerate(zip(model.members, model.histories, strict=True)):
        tensors |= {f"member.{k}.{name}": value for name, value in member.state_dict().items()}
        tensors |= {f"history.{k}.{name}": torch.tensor(v) for name, v in history.items()}
    numbers = folder / "model.safetensors"
    files.save_tensors(numbers, tensors)
    settings["sha256"] = _checksum(numbers)
    files.save_json(folder / "model.json", settings)


def load(folder: Path | str, device: str = "cpu") -> FittedModel:
    """Read what `save` wrote; predictions are those of the model that was saved."""
    folder = Path(folder)
    settings = _settings(folder / "model.json")
    numbers = folder / "model.safetensors"
    if not numbers.exists() or _checksum(numbers) != settings["sha256"]:
        raise InputError(
            f"{numbers} must be the file that model.json names; it is missing or was changed. "
            "Copy the whole folder again."
        )
    tensors = files.load_tensors(numbers)
    scaling = Scaling(*(tensors[f"scaling.{name}"].numpy() for name in _SCALING))
    recipe = from_json(settings["recipe"])
    members, histories = [], []
    for k in range(settings["members"]):
        state = _part(tensors, f"member.{k}.")
        member = recipe.skeleton(scaling)
        like = next(value for value in state.values() if value.is_floating_point())
        member.to(dtype=like.dtype)
        member.load_state_dict(state)
        members.append(member.to(device).requires_grad_(False))
        histories.append({n: np.asarray(v) for n, v in _part(tensors, f"history.{k}.").items()})
    return FittedModel(
        recipe,
        from_json(settings["training"]),
        scaling,
        tuple(settings["input_names"]),
        tuple(settings["output_names"]),
        tuple(members),
        tuple(histories),
        settings["seed"],
        settings["steps"],
    )


def _settings(path: Path) -> dict[str, Any]:
    try:
        settings = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(
            f"{path.parent} must hold a saved model; model.json is not there. Check the folder."
        ) from None
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise InputError(
            f"{path} must be JSON; it is not ({error}). Copy the whole folder again."
        ) from None
    if not isinstance(settings, dict) or settings.get("format") != FORMAT:
        found = settings.get("format") if isinstance(settings, dict) else None
        raise InputError(
            f"{path} must have format {FORMAT}; got {found!r}. Use a newer version of deeplfm."
        )
    return settings


def _part(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}


def _checksum(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
