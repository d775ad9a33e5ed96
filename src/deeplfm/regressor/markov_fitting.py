"""Fit a state-space recipe: start at the spectrum, learn by evidence, then the posterior.

Where smooth processes or few oscillators explain the data better than many, they take their place.
A second layer is tried above what is left, and a check sees none of it but the start.

fitted = fit_markov(dataset(t, y), MarkovDLFM(), Training(), seed=0, …)
"""

import copy
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from deeplfm.data import Dataset, fit_scaling
from deeplfm.data.dataset import one_input
from deeplfm.data.stored import Stored
from deeplfm.errors import InputError
from deeplfm.models import MarkovDLFM
from deeplfm.models.markov_model import MarkovModel
from deeplfm.regressor.checking import INTERRUPTED, OFF, blocks_of
from deeplfm.regressor.fingerprints import checkpoints_of
from deeplfm.regressor.markov import FittedMarkov
from deeplfm.regressor.markov_rehearsal import Passes, Rehearsal, all_steps, checked
from deeplfm.regressor.markov_rows import record_of
from deeplfm.regressor.markov_second import SecondLayer
from deeplfm.statespace import Record
from deeplfm.training import Training, join
from deeplfm.training.checkpoints import Checkpoints
from deeplfm.training.depth import Depth, ExpectedRhythm
from deeplfm.training.laplace import fit_posterior
from deeplfm.training.progress import Report, progress_bar
from deeplfm.training.rhythms import may_be_simpler, simpler


def fit_markov(
    data: Dataset | Stored,
    recipe: MarkovDLFM,
    training: Training,
    *,
    seed: int = 0,
    device: str = "cpu",
    checkpoints: Path | None = None,
    report: Report | None = None,
    progress: bool = True,
    check: bool = False,
) -> FittedMarkov:
    """Build, train, and find what is believed of the physics. It is fast enough for one process.

    With a `check` a copy of the start is trained without some blocks after the fit, and scored
    there.
    """
    check_training(training)
    table = _all_rows(data) if isinstance(data, Stored) else data
    one_input(table.x)
    check_alone()
    precision, settings = f"float64 on {torch.device(device).type}", (recipe, training)
    with checkpoints_of(checkpoints, join("cpu"), table, settings, seed, precision) as kept:
        task = _Task(table, recipe, training, seed, device, kept)
        if report is None:
            with progress_bar(training.steps, progress) as shown:
                return _fit(task, shown, check)
        return _fit(task, report, check)


class _Task(NamedTuple):
    """What is fitted to what, where sums are computed, and where checkpoints go."""

    data: Dataset
    recipe: MarkovDLFM
    training: Training
    seed: int
    device: str
    checkpoints: Checkpoints | None


def _fit(task: _Task, report: Report | None, check: bool) -> FittedMarkov:
    data, recipe, training, seed, device, checkpoints = task
    scaling = fit_scaling(data, recipe.likelihood)
    if not recipe.level:  # outputs swing about 0: nothing is taken off
        zero = np.zeros_like(scaling.target_mean)
        scaling = replace(scaling, target_mean=zero, function_mean=zero)
    record = record_of(data, scaling.targets(data.y), False, recipe.level, device)
    record = replace(record, trend=recipe.trends(record))
    blocks, none = blocks_of(data, seed) if check else ([], OFF)
    model = recipe.build(record, torch.Generator().manual_seed(seed))
    start, rehearsed = copy.deepcopy(model), None
    deep, fewer = recipe.num_layers > 1, may_be_simpler(recipe, record)
    share = 1 / all_steps(deep=deep, checked=bool(blocks), simpler=fewer)
    passes = Passes(seed, checkpoints, report, share)
    trainer = passes.run(model, record, training)
    finished, history = trainer.finished, trainer.history()
    posterior = fit_posterior(model, record, seed, training.backend)
    if finished:
        train = partial(passes.trained, record=record, training=training, name="few")
        found = simpler(recipe, record, posterior, train, seed, training.backend)
        model, start, posterior, history = found or (model, start, posterior, history)
    second, depth = _second_layer(passes, task, model, record, finished)
    if blocks and finished:
        rhythm = None if second is None else second.directions
        rehearsed = passes.rehearse(start, Rehearsal.of(record, training, blocks), rhythm)
    if blocks and rehearsed is None:
        none = INTERRUPTED
    model.clock = None  # that of a prediction is drawn given the rows it is conditioned on
    model.requires_grad_(False)
    fitted = FittedMarkov(
        recipe=recipe,
        training=training,
        scaling=scaling,
        input_names=data.input_names,
        output_names=data.output_names,
        histories=(history,),
        seed=seed,
        steps=training.steps if finished else trainer.step,
        data=data,
        model=model,
        posterior=posterior,
        trend=record.trend,
        device=device,
        check=none,
        second=second,
        depth=depth,
    )
    return fitted if rehearsed is None else checked(fitted, rehearsed, blocks)


def _second_layer(
    passes: Passes, task: _Task, model: MarkovModel, record: Record, finished: bool
) -> tuple[SecondLayer | None, Depth | None]:
    """A second layer where the recipe asks for one and it pays, and what was found."""
    if task.recipe.num_layers == 1:
        return None, None
    if not finished:
        return None, Depth(False, "the fit was interrupted.")
    deep, depth = passes.deepen(model, record, task.training)
    if deep is None or not isinstance(deep.rhythm, ExpectedRhythm):
        return None, depth
    directions = deep.rhythm.directions
    deep.clock = deep.rhythm = None  # those of a prediction are drawn
    return SecondLayer(deep.requires_grad_(False), directions), depth


def check_training(training: Training) -> None:
    """It is an error if a setting could not be used."""
    for name, wanted in (("restarts", 1), ("held_out", 0.0), ("batch_size", None)):
        if getattr(training, name) != wanted:
            raise InputError(
                f"training must have {name}={wanted} for a MarkovDLFM, which is fitted exactly, by "
                f"windows where the record is long; got {getattr(training, name)!r}. Leave it out."
            )


def check_alone() -> None:
    """It is an error if there are several processes."""
    if (size := join("cpu").size) > 1:
        raise InputError(
            f"a MarkovDLFM must be fitted by one process; got {size}. Start it without torchrun."
        )


def _all_rows(data: Stored) -> Dataset:
    """What is on disk, in memory: a state has to pass over all of it."""
    parts = list(data.chunks())
    x, y = (np.concatenate([getattr(part, name) for part in parts]) for name in ("x", "y"))
    return Dataset(x, y, data.input_names, data.output_names)
