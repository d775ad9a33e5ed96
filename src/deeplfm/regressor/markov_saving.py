"""A fitted state-space model in a file: parameters, posterior, and the rows it is conditioned on.

Predictions need those rows, so they are among the numbers, not in a file that may be deleted.
"""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from deeplfm.data import Dataset
from deeplfm.data.panels import KnownInputs, Panel
from deeplfm.errors import InputError
from deeplfm.models import MarkovDLFM
from deeplfm.regressor.markov import FittedMarkov
from deeplfm.regressor.markov_rows import record_of
from deeplfm.regressor.markov_second import SecondLayer, room_for_second
from deeplfm.regressor.restoring import part_of, restore
from deeplfm.training.depth import Depth
from deeplfm.training.laplace import Posterior


def markov_settings(model: FittedMarkov) -> dict[str, Any]:
    """What the file says beside the numbers."""
    panel, known = model.data.panel, model.data.known
    return {
        "trend": model.trend,
        "labels": None if panel is None else list(panel.labels),
        "known_names": None if known is None else list(known.names),
        "depth": None if model.depth is None else asdict(model.depth),
    }


def markov_tensors(model: FittedMarkov) -> dict[str, Tensor]:
    """Everything that predictions need, by name."""
    found = {f"model.{name}": value for name, value in model.model.state_dict().items()}
    found |= {f"posterior.{name}": v for name, v in model.posterior.state_dict().items()}
    if model.second is not None:
        own = model.second.model.state_dict()
        found |= {f"second.{name}": value for name, value in own.items()}
        found["directions"] = model.second.directions
    found |= {"x": torch.tensor(model.data.x), "y": torch.tensor(model.data.y)}
    if model.data.panel is not None:
        found["series"] = torch.tensor(model.data.panel.codes)
    if model.data.known is not None:
        known = model.data.known
        for name in ("times", "codes", "values"):
            found[f"known.{name}"] = torch.tensor(getattr(known, name))
    return found


def load_markov(
    settings: dict[str, Any],
    tensors: dict[str, Tensor],
    common: dict[str, Any],
    numbers: Path,
    device: str,
) -> FittedMarkov:
    """The model that `markov_tensors` and `markov_settings` describe."""
    recipe = common["recipe"]
    if not isinstance(recipe, MarkovDLFM):
        raise InputError(
            f"settings must be a MarkovDLFM here; got {type(recipe).__name__}. "
            "Copy the whole folder again."
        )
    own = part_of(tensors, "markov.")
    panel = known = None
    if settings["labels"] is not None:
        panel = Panel(tuple(settings["labels"]), own["series"].numpy())
    if settings["known_names"] is not None:
        parts = (own[f"known.{name}"].numpy() for name in ("times", "codes", "values"))
        known = KnownInputs(tuple(settings["known_names"]), *parts)
    names = common["input_names"], common["output_names"]
    data = Dataset(own["x"].numpy(), own["y"].numpy(), *names, panel, known)
    record = record_of(data, common["scaling"].targets(data.y), settings["trend"], recipe.level)
    state = part_of(own, "model.")
    modes, smooth = (
        len(state[name]) if name in state else 0 for name in ("bank.log_decay", "smooth.log_decay")
    )
    model = recipe.skeleton(record, modes, 0, smooth)
    restore(model, state, numbers)
    second, told = None, settings.get("depth")
    if "directions" in own:
        deep = room_for_second(recipe.skeleton(record, modes, 0))
        restore(deep, part_of(own, "second."), numbers)
        second = SecondLayer(deep.requires_grad_(False), own["directions"])
    beliefs = part_of(own, "posterior.")
    posterior = Posterior(len(beliefs["mean"]))
    restore(posterior, beliefs, numbers)
    return FittedMarkov(
        **common,
        data=data,
        model=model.requires_grad_(False),
        posterior=posterior,
        trend=bool(settings["trend"]),
        device=device,
        second=second,
        depth=None if told is None else Depth(**told),
    )
