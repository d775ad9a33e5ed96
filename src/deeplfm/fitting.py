"""Fit a recipe to data: build, train (with restarts, held-out blocks, checkpoints).

fitted = fit(dataset(X, y), FourierDLFM(), Training(), seed=0)
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from deeplfm.data import Dataset, Scaling, fit_scaling
from deeplfm.fitted import APART, FittedModel, as_numpy
from deeplfm.models import DeepLFM, FourierDLFM, Recipe
from deeplfm.objectives import Batch
from deeplfm.progress import Report, progress_bar
from deeplfm.training import Race, Trainer, Training
from deeplfm.training.held_out import best_steps, split


def fit(
    data: Dataset,
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
    """Build and train. With a folder for checkpoints it goes on from those it finds there.

    `report(step, loss)` is called now and then, in place of the progress bar. An interrupt from the
    keyboard ends the training and returns what there is; the checkpoints stay.
    """
    recipe, training = recipe or FourierDLFM(), training or Training()
    if report is None:
        with progress_bar(training.steps, progress) as shown:
            return _fit(data, recipe, training, seed, device, dtype, checkpoints, shown)
    return _fit(data, recipe, training, seed, device, dtype, checkpoints, report)


def _fit(
    data: Dataset,
    recipe: Recipe,
    training: Training,
    seed: int,
    device: str,
    dtype: torch.dtype,
    checkpoints: Path | None,
    report: Report | None,
) -> FittedModel:
    scaling = fit_scaling(data)
    recipe = recipe.resolved(data, scaling)
    batch = _batch(data, scaling, device, dtype)
    steps = training.steps
    if training.held_out > 0:
        steps = _steps_by_held_out(data, recipe, training, scaling, batch, seed, report)
    trainers = []
    for k in range(training.restarts):
        model = _built(data, recipe, scaling, seed + APART * k, batch)
        trainers.append(Trainer(model, batch, training, seed + APART * k))
    race = Race(trainers, checkpoints)
    race.resume()
    try:
        race.run(until=steps, report=report)
    except KeyboardInterrupt:
        race.stop()
    chosen = race.chosen()
    for k in chosen:
        trainers[k].model.requires_grad_(False)
    histories = tuple(
        {name: as_numpy(column) for name, column in trainers[k].history().items()} for k in chosen
    )
    return FittedModel(
        recipe,
        training,
        scaling,
        data.input_names,
        data.output_names,
        tuple(trainers[k].model for k in chosen),
        histories,
        seed,
        trainers[chosen[0]].step,
        data,
    )


def _built(data: Dataset, recipe: Recipe, scaling: Scaling, seed: int, like: Batch) -> DeepLFM:
    model = recipe.build(data, scaling, torch.Generator().manual_seed(seed))
    return model.to(device=like.x.device, dtype=like.x.dtype)


def _steps_by_held_out(
    data: Dataset,
    recipe: Recipe,
    training: Training,
    scaling: Scaling,
    batch: Batch,
    seed: int,
    report: Report | None,
) -> int:
    """Train a first model without some blocks, to learn how long the one with all data may."""
    known, test = split(batch, training.held_out, torch.Generator().manual_seed(seed))
    hidden = test.observed.cpu().numpy()
    part = replace(data, y=np.where(hidden, np.nan, data.y))
    model = _built(part, recipe, scaling, seed, batch)
    return best_steps(Trainer(model, known, training, seed), test, report)


def _batch(data: Dataset, scaling: Scaling, device: str, dtype: torch.dtype) -> Batch:
    x = torch.tensor(scaling.inputs(data.x)).to(device=device, dtype=dtype)
    y = torch.tensor(np.nan_to_num(scaling.targets(data.y))).to(device=device, dtype=dtype)
    return Batch(x, y, torch.tensor(data.observed).to(device), len(data))
