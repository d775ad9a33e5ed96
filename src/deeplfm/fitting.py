"""Fit a recipe to data: build, train (with restarts, held-out blocks, checkpoints), predict.

    fitted = fit(dataset(X, y), FourierDLFM(), Training(), seed=0)
    fitted.predictive(X_new);  fitted.draw(5);  fitted.latent_forces(X_new)

Everything a caller sees is in the user's units. `fitted` is one model, or a mixture of several.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray

from deeplfm.data import Dataset, Scaling, fit_scaling, inputs_table
from deeplfm.errors import InputError
from deeplfm.likelihoods import StudentT
from deeplfm.models import DeepLFM, FourierDLFM, Recipe
from deeplfm.objectives import Batch
from deeplfm.predictive import Predictive
from deeplfm.progress import Report, progress_bar
from deeplfm.shapes import check_count
from deeplfm.training import Race, Trainer, Training
from deeplfm.training.held_out import best_steps, split

Values = NDArray[np.float64]
Functions = Callable[[Any], Values]

_CHUNK = 2**24  # numbers of one kind that a prediction holds at a time
_APART = 1_000_003  # between the seeds of two starts


@final
@dataclass(frozen=True, eq=False)
class FittedModel:
    """Trained members of a mixture (one, mostly), with the units they speak in.

    `histories` hold what training recorded, one per member; `steps` is how many were trained.
    """

    recipe: Recipe
    training: Training
    scaling: Scaling
    input_names: tuple[str, ...]
    output_names: tuple[str, ...]
    members: tuple[DeepLFM, ...]
    histories: tuple[Mapping[str, Values], ...]
    seed: int
    steps: int

    def draw(self, num_samples: int = 5, seed: int | None = None) -> Functions:
        """Functions: f(X) is [S, N, D], the same ones wherever and however often evaluated."""
        parts = self._draws(num_samples, seed)

        def functions(X: Any) -> Values:
            x = self._inputs(X)
            values = [_in_chunks(path, x, member) for member, path, _ in parts]
            return self.scaling.functions(np.concatenate(values))

        return functions

    def predictive(self, X: Any, num_samples: int = 200, seed: int | None = None) -> Predictive:
        """The mixture over `num_samples` functions with the noise; the fit's seed by default."""
        parts = self._draws(num_samples, seed)
        x = self._inputs(X)
        values = [_in_chunks(path, x, member) for member, path, _ in parts]
        noises = [
            np.repeat(_numpy(member.likelihood.noise_variance.sqrt())[None], count, axis=0)
            for member, _, count in parts
        ]
        likelihood = self.members[0].likelihood
        return Predictive(
            self.scaling.functions(np.concatenate(values)),
            self.scaling.spread(np.concatenate(noises)),
            likelihood.degrees if isinstance(likelihood, StudentT) else None,
            self.output_names,
            self.seed if seed is None else seed,
        )

    def latent_forces(
        self, X: Any, layer: int = 0, num_samples: int = 200, seed: int | None = None
    ) -> Predictive:
        """The forces that drive a layer, at `X`, without noise; `.names` says which they are.

        Forces of a deeper layer are functions of its inputs: they are taken where the functions
        below lead from `X`.
        """
        depth = len(self.members[0].layers)
        if not 0 <= layer < depth:
            raise InputError(f"layer must be 0 to {depth - 1}; got {layer}. Choose one of them.")
        values = []
        x = self._inputs(X)
        for member, path, _ in self._draws(num_samples, seed):
            chosen = member.stack[layer]
            with torch.no_grad():
                tau = path.inputs(torch.tensor(x).to(next(chosen.parameters())), layer)
                values.append(_numpy(chosen.forces(tau, path.paths[layer])))
        names = self.members[0].stack[layer].force_names()
        samples = np.concatenate(values)
        none = np.zeros(samples.shape[-1])
        return Predictive(samples, none, None, names, self.seed if seed is None else seed)

    def _draws(self, num_samples: int, seed: int | None) -> list[tuple[DeepLFM, Any, int]]:
        """Samples shared out evenly over the members."""
        check_count("num_samples", num_samples)
        start = self.seed if seed is None else seed
        parts = []
        for k, member in enumerate(self.members):
            count = (num_samples + k) // len(self.members)
            if count:
                # Of the CPU: a saved model predicts the same on every device.
                generator = torch.Generator().manual_seed(start + _APART * k)
                with torch.no_grad():
                    parts.append((member, member.draw(count, generator), count))
        return parts

    def _inputs(self, X: Any) -> Values:
        return self.scaling.inputs(inputs_table(X, len(self.input_names)))


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
        model = _built(data, recipe, scaling, seed + _APART * k, batch)
        trainers.append(Trainer(model, batch, training, seed + _APART * k))
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
        {name: _numpy(column) for name, column in trainers[k].history().items()} for k in chosen
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


def _in_chunks(path: Any, x: Values, member: DeepLFM) -> Values:
    """The same functions over pieces of `x`, so that memory stays bounded: [S, N, D]."""
    like = next(member.parameters())
    widest = max(layer.elements for layer in member.stack)
    rows = max(1, _CHUNK // (path.num_samples * widest))
    with torch.no_grad():
        pieces = [
            _numpy(path(torch.tensor(x[start : start + rows]).to(like)))
            for start in range(0, len(x), rows)
        ]
    return np.concatenate(pieces, axis=1)


def _numpy(values: torch.Tensor) -> Values:
    return values.detach().double().cpu().numpy()
