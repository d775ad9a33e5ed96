"""Fit a recipe to data: build, train (with restarts, held-out blocks, checkpoints).

    fitted = fit(dataset(X, y), FourierDLFM(), Training(), seed=0)

Under torchrun all processes call it with the same arguments, and each gets the same result.
"""

import warnings
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from deeplfm.data import Dataset, Scaling, fit_scaling
from deeplfm.data.stored import Stored
from deeplfm.errors import DataWarning, InputError
from deeplfm.evaluation.check import Check
from deeplfm.models import DeepLFM, FourierDLFM, Recipe
from deeplfm.models.starts.base import ROWS
from deeplfm.models.starts.thinning import hidden_period
from deeplfm.objectives import Batch
from deeplfm.regressor.checking import INTERRUPTED, OFF, check_beside
from deeplfm.regressor.fingerprints import checkpoints_of
from deeplfm.regressor.fitted import APART, FittedModel, as_numpy
from deeplfm.training import Processes, Race, Trainer, Training, join
from deeplfm.training.checkpoints import Checkpoints
from deeplfm.training.held_out import best_steps, split
from deeplfm.training.progress import Report, progress_bar


class _Material(NamedTuple):
    """Data to train on: a few rows stand for all of those that `read` can reach."""

    data: Dataset
    scaling: Scaling
    batch: Batch
    read: Callable[[Tensor], Batch] | None


def fit(
    data: Dataset | Stored,
    recipe: Recipe | None = None,
    training: Training | None = None,
    *,
    seed: int = 0,
    device: str = "cpu",
    dtype: torch.dtype = torch.float32,
    checkpoints: Path | None = None,
    report: Report | None = None,
    progress: bool = True,
) -> FittedModel:
    """Build and train. With a folder for checkpoints it goes on from those of the same fit there.

    Of `Stored` data each step reads its batch; the start looks at a few thousand rows, evenly
    spread, and the fitted model keeps those.
    `report(step, loss)` is called now and then, in place of the progress bar. An interrupt from the
    keyboard ends the training and returns what there is; the checkpoints stay.
    """
    recipe, training = recipe or FourierDLFM(), training or Training()
    processes = join(device)
    check_plain(data)
    material = _material(data, recipe, training, processes, processes.device(device), dtype)
    precision = f"{dtype} on {torch.device(device).type}"
    settings = recipe, training
    with checkpoints_of(checkpoints, processes, data, settings, seed, precision) as kept:
        if report is None:
            with progress_bar(training.steps, progress and processes.leads) as shown:
                return _fit(material, recipe, training, seed, kept, shown, processes)
        return _fit(material, recipe, training, seed, kept, report, processes)


def fit_layers(
    data: Dataset | Stored,
    recipe: Recipe,
    training: Training,
    *,
    check: bool = True,
    **settings: Any,
) -> FittedModel:
    """`fit`, and where it is to `check` itself, a shorter fit without some blocks beside it."""
    if join(settings["device"]).leads:
        _warn_of_hidden_rhythm(data, recipe)
    fitted = fit(data, recipe, training, **settings)
    if not check:
        return replace(fitted, check=OFF)
    if join(settings["device"]).size > 1:
        return replace(fitted, check=Check.none("it was fitted by several processes."))
    if fitted.steps < training.steps and not training.held_out:
        return replace(fitted, check=INTERRUPTED)
    beside = settings | {"progress": False, "checkpoints": None}
    return check_beside(fitted, data, lambda part, fewer: fit(part, recipe, fewer, **beside))


def _warn_of_hidden_rhythm(data: Dataset | Stored, recipe: Recipe) -> None:
    """A start looks at some rows of a long series; a rhythm between them it cannot find."""
    if len(data.input_names) > 1:
        return
    if isinstance(data, Stored):  # rows of a file in its order, as starts take them
        period = hidden_period(len(data), lambda places: _series(data.rows(places)))
    else:
        order = np.argsort(data.x[:, 0], kind="stable")
        period = hidden_period(
            len(data), lambda places: (data.x[order[places], 0], data.y[order[places]])
        )
    if period is not None:
        warnings.warn(
            f"A {type(recipe).__name__} starts from {ROWS} of {len(data)} rows, too few for the "
            f"rhythm of these data, whose period is about {period:.3g}: it may learn nothing of "
            "it; use MarkovDLFM(), which looks at every row.",
            DataWarning,
            stacklevel=4,
        )


def _series(data: Dataset) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    order = np.argsort(data.x[:, 0], kind="stable")
    return data.x[order, 0], data.y[order]


def check_plain(data: object) -> None:
    """Layers know no series and no known inputs."""
    for name in ("panel", "known"):
        if getattr(data, name, None) is not None:
            shown = {"panel": "series", "known": "known"}[name]
            raise InputError(
                f"{shown} must be None for this recipe: only a state-space model can use it; got "
                "some. Pass model=MarkovDLFM(), or put it into X as a column."
            )


def _fit(
    material: _Material,
    recipe: Recipe,
    training: Training,
    seed: int,
    checkpoints: Checkpoints | None,
    report: Report | None,
    processes: Processes,
) -> FittedModel:
    data, scaling, batch, read = material
    recipe = recipe.resolved(data, scaling)
    report = report if processes.leads else None
    steps = training.steps
    if training.held_out > 0:
        steps = _steps_by_held_out(data, recipe, training, scaling, batch, seed, report, processes)
    trainers = []
    for k in range(training.restarts):
        model = _built(data, recipe, scaling, seed + APART * k, batch, processes)
        trainers.append(Trainer(model, batch, training, seed + APART * k, processes, read))
    race = Race(trainers, checkpoints)
    race.resume()
    try:
        race.run(until=steps, report=report)
    except KeyboardInterrupt:
        if processes.size > 1:  # each was interrupted at another step: there is no common state
            raise
        race.stop()
    chosen = race.chosen()
    for k in chosen:
        trainers[k].model.requires_grad_(False)
    histories = tuple(
        {name: as_numpy(column) for name, column in trainers[k].history().items()} for k in chosen
    )
    return FittedModel(
        recipe=recipe,
        training=training,
        scaling=scaling,
        input_names=data.input_names,
        output_names=data.output_names,
        members=tuple(trainers[k].model for k in chosen),
        histories=histories,
        seed=seed,
        steps=training.steps if trainers[chosen[0]].finished else trainers[chosen[0]].step,
        data=data,
    )


def _built(
    data: Dataset, recipe: Recipe, scaling: Scaling, seed: int, like: Batch, processes: Processes
) -> DeepLFM:
    """Built by the first process; the others make room for what it sends."""
    generator = torch.Generator().manual_seed(seed)
    leads = processes.leads
    model = recipe.build(data, scaling, generator) if leads else recipe.skeleton(scaling, generator)
    model.to(device=like.x.device, dtype=like.x.dtype)
    processes.broadcast(model)
    return model


def _steps_by_held_out(
    data: Dataset,
    recipe: Recipe,
    training: Training,
    scaling: Scaling,
    batch: Batch,
    seed: int,
    report: Report | None,
    processes: Processes,
) -> int:
    """Train a first model without some blocks, to learn how long the one with all data may."""
    known, test = split(batch, training.held_out, torch.Generator().manual_seed(seed))
    hidden = test.observed.cpu().numpy()
    part = replace(data, y=np.where(hidden, np.nan, data.y))
    model = _built(part, recipe, scaling, seed, batch, processes)
    return best_steps(Trainer(model, known, training, seed, processes), test, report)


def _material(
    data: Dataset | Stored,
    recipe: Recipe,
    training: Training,
    processes: Processes,
    device: str,
    dtype: torch.dtype,
) -> _Material:
    rule = recipe.likelihood
    if isinstance(data, Stored):
        if training.batch_size is None or training.held_out > 0:
            raise InputError(
                "training must have a batch_size, and held_out 0, for data that are read from "
                f"disk; got {training.batch_size} and {training.held_out:g}. Pass batch_size=500."
            )
        stored, total = data, len(data)
        scaling = _shared(lambda: stored.scaling(rule), processes)
        sample = stored.thinned() if training.batch_size < total else stored.rows(np.arange(total))
        _check_same(sample, processes)

        def read(rows: Tensor) -> Batch:
            return _batch(stored.rows(rows.numpy()), scaling, device, dtype, total)

        return _Material(sample, scaling, _batch(sample, scaling, device, dtype, total), read)
    _check_same(data, processes)
    scaling = fit_scaling(data, rule)
    return _Material(data, scaling, _batch(data, scaling, device, dtype, len(data)), None)


def _shared(found: Callable[[], Scaling], processes: Processes) -> Scaling:
    """What the first process finds in one pass over all rows."""

    def arrays() -> dict[str, Tensor]:
        return {name: torch.tensor(array) for name, array in found().arrays().items()}

    return Scaling.from_arrays({n: v.numpy() for n, v in processes.share(arrays).items()})


def _batch(data: Dataset, scaling: Scaling, device: str, dtype: torch.dtype, total: int) -> Batch:
    x = torch.tensor(scaling.inputs(data.x)).to(device=device, dtype=dtype)
    y = torch.tensor(np.nan_to_num(scaling.targets(data.y))).to(device=device, dtype=dtype)
    return Batch(x, y, torch.tensor(data.observed).to(device), total)


def _check_same(data: Dataset, processes: Processes) -> None:
    """All processes need all rows: each takes its share of them itself."""
    if processes.size == 1:
        return
    own = torch.tensor([zlib.crc32(np.ascontiguousarray(table).data) for table in (data.x, data.y)])
    if any(not torch.equal(own, other) for other in processes.gather(own)):
        raise InputError(
            "all processes must be given the same data; got different ones. "
            "Pass all rows to each: they are shared out over the processes inside."
        )
