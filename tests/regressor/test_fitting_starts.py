"""What a fit hands to its starts: blocks that nobody saw, seeds of their own, steps that hold."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import deeplfm as dlfm
from deeplfm.data import Dataset, Scaling, dataset
from deeplfm.models import DeepLFM
from deeplfm.objectives import Batch
from deeplfm.regressor import fitting
from deeplfm.regressor.fitting import fit
from deeplfm.regressor.saving import load, save
from deeplfm.training import Race, Trainer, Training
from deeplfm.training.checkpoints import Checkpoints

X = np.linspace(100, 300, 60)
Y = np.stack([np.sin(X / 10), 50 + 9 * np.cos(X / 10)], axis=1)
Y[10:16, 0] = np.nan
RECIPE = dlfm.FourierDLFM(num_layers=1, num_features=6)
TRAINING = Training(steps=10, num_samples=1)


def test_held_out_blocks_are_seen_by_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the start nor the first training; the fit then has all data, and the steps found."""
    seen: list[Dataset] = []
    looks: list[tuple[Batch, Batch]] = []
    build = dlfm.FourierDLFM.build

    def spy(recipe: Any, data: Dataset, scaling: Scaling, generator: torch.Generator) -> DeepLFM:
        seen.append(data)
        return build(recipe, data, scaling, generator)

    def look(trainer: Trainer, test: Batch, report: Any = None) -> int:
        looks.append((trainer.data, test))
        return 7

    monkeypatch.setattr(dlfm.FourierDLFM, "build", spy)
    monkeypatch.setattr(fitting, "best_steps", look)
    model = fit(dataset(X, Y), RECIPE, replace(TRAINING, held_out=0.2))
    ((known, test),) = looks
    hidden = test.observed.numpy()
    assert hidden.any(0).all()
    assert not (hidden & known.observed.numpy()).any()
    np.testing.assert_array_equal(hidden | known.observed.numpy(), ~np.isnan(Y))
    first, second = seen
    np.testing.assert_array_equal(first.y, np.where(hidden, np.nan, Y))
    np.testing.assert_array_equal(second.y, Y)
    assert model.steps == 7
    assert len(model.histories[0]["loss"]) == 7


def test_starts_have_seeds_of_their_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Other models, other draws; what is kept of each is its own, also in a file."""
    races: list[Race] = []
    first_weights: list[np.ndarray] = []

    def spy(trainers: list[Trainer], kept: Checkpoints | None) -> Race:
        races.append(Race(trainers, kept))
        for trainer in trainers:
            omega = trainer.model.layers[0].frequencies.draw(1)  # type: ignore[operator, union-attr]
            first_weights.append(omega.detach().numpy())
        return races[0]

    monkeypatch.setattr(fitting, "Race", spy)
    training = replace(TRAINING, restarts=3, combine="mixture")
    model = fit(dataset(X, Y), RECIPE, training, seed=5)
    (race,) = races
    assert not np.allclose(first_weights[0], first_weights[1])
    assert not np.allclose(first_weights[1], first_weights[2])
    seeds = [trainer.generator.initial_seed() for trainer in race.trainers]
    assert len(set(seeds)) == 3
    assert seeds[0] == 5
    chosen = race.chosen()
    assert len(chosen) == 2
    for k, member, history in zip(chosen, model.members, model.histories, strict=True):
        assert member is race.trainers[k].model
        np.testing.assert_array_equal(history["loss"], race.trainers[k].history()["loss"].numpy())
    assert not np.array_equal(model.histories[0]["loss"], model.histories[1]["loss"])
    save(model, tmp_path)
    again = load(tmp_path)
    for one, other in zip(model.histories, again.histories, strict=True):
        for name, column in one.items():
            np.testing.assert_array_equal(other[name], column)
    assert (again.seed, again.steps) == (5, 10)


def test_a_model_that_stopped_early_says_so_when_it_is_loaded(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(fitting, "best_steps", lambda *_: 3)
    model = fit(dataset(X, Y), RECIPE, replace(TRAINING, held_out=0.2))
    save(model, tmp_path)
    assert load(tmp_path).steps == model.steps == 3


def test_forces_and_functions_are_of_the_same_draws() -> None:
    """Each of several forces, put through the ODE by quadrature, gives the function of its draw."""
    model = fit(dataset(X, Y), RECIPE, TRAINING, dtype=torch.float64)
    layer = model.members[0].layers[0]
    scale, origin = model.scaling.input_scale[0], model.scaling.input_origin[0]
    functions = model.draw(3, seed=2)(np.array([150.0, 260.0]))
    for s in range(3):

        def force(tau: torch.Tensor, s: int = s) -> torch.Tensor:
            flat = origin + scale * tau.numpy().ravel()
            values = model.latent_forces(flat, num_samples=3, seed=2).samples[s, :, 0]
            return torch.tensor(values).reshape(tau.shape)

        x = torch.tensor([0.25, 0.8], dtype=torch.float64)
        driven = dlfm.responses.quadrature(layer.greens_function, force, x, "zero")[:, 0, 0]  # type: ignore[arg-type]
        expected = (driven + layer.offset[0]).detach().numpy()  # type: ignore[index]
        expected = expected * np.nanstd(Y[:, 0]) + np.nanmean(Y[:, 0])
        np.testing.assert_allclose(functions[s, :, 0], expected, rtol=1e-8)
