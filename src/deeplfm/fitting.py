"""Fit a recipe to data: build, train (with restarts, held-out blocks, checkpoints).

    fitted = fit(dataset(X, y), FourierDLFM(), Training(), seed=0)

Under torchrun all processes call it with the same arguments, and each gets the same result.
"""

import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from deeplfm.data import Dataset, Scaling, fit_scaling
from deeplfm.errors import InputError
from deeplfm.fitted import APART, FittedModel, as_numpy
from deeplfm.models import DeepLFM, FourierDLFM, Recipe
from deeplfm.objectives import Batch
from deeplfm.progress import Report, progress_bar
from deeplfm.training import Company, Race, Trainer, Training, join
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
    company = join(device)
    _check_same(data, company)
    if report is None:
        with progress_bar(training.steps, progress and company.leads) as shown:
            return _fit(data, recipe, training, seed, device, dtype, checkpoints, shown, company)
    return _fit(data, recipe, training, seed, device, dtype, checkpoints, report, company)


def _fit(
    data: Dataset,
    recipe: Recipe,
    training: Training,
    seed: int,
    device: str,
    dtype: torch.dtype,
    checkpoints: Path | None,
    report: Report | None,
    company: Company,
) -> FittedModel:
    scaling = fit_scaling(data)
    recipe = recipe.resolved(data, scaling)
    batch = _batch(data, scaling, company.device(device), dtype)
    report = report if company.leads else None
    steps = training.steps
    if training.held_out > 0:
        steps = _steps_by_held_out(data, recipe, training, scaling, batch, seed, report, company)
    trainers = []
    for k in range(training.restarts):
        model = _built(data, recipe, scaling, seed + APART * k, batch, company)
        trainers.append(Trainer(model, batch, training, seed + APART * k, company))
    race = Race(trainers, checkpoints)
    race.resume()
    try:
        race.run(until=steps, report=report)
    except KeyboardInterrupt:
        if company.size > 1:  # each was interrupted at another step: there is no common state
            raise
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


def _built(
    data: Dataset, recipe: Recipe, scaling: Scaling, seed: int, like: Batch, company: Company
) -> DeepLFM:
    """Built by the first process; the others make room for what it sends."""
    generator = torch.Generator().manual_seed(seed)
    leads = company.leads
    model = recipe.build(data, scaling, generator) if leads else recipe.skeleton(scaling, generator)
    model.to(device=like.x.device, dtype=like.x.dtype)
    company.broadcast(model)
    return model


def _steps_by_held_out(
    data: Dataset,
    recipe: Recipe,
    training: Training,
    scaling: Scaling,
    batch: Batch,
    seed: int,
    report: Report | None,
    company: Company,
) -> int:
    """Train a first model without some blocks, to learn how long the one with all data may."""
    known, test = split(batch, training.held_out, torch.Generator().manual_seed(seed))
    hidden = test.observed.cpu().numpy()
    part = replace(data, y=np.where(hidden, np.nan, data.y))
    model = _built(part, recipe, scaling, seed, batch, company)
    return best_steps(Trainer(model, known, training, seed, company), test, report)


def _batch(data: Dataset, scaling: Scaling, device: str, dtype: torch.dtype) -> Batch:
    x = torch.tensor(scaling.inputs(data.x)).to(device=device, dtype=dtype)
    y = torch.tensor(np.nan_to_num(scaling.targets(data.y))).to(device=device, dtype=dtype)
    return Batch(x, y, torch.tensor(data.observed).to(device), len(data))


def _check_same(data: Dataset, company: Company) -> None:
    """All processes need all rows: each takes its share of them itself."""
    if company.size == 1:
        return
    own = torch.tensor([zlib.crc32(np.ascontiguousarray(table).data) for table in (data.x, data.y)])
    if any(not torch.equal(own, other) for other in company.gather(own)):
        raise InputError(
            "all processes must be given the same data; got different ones. "
            "Pass all rows to each: they are shared out over the processes inside."
        )
