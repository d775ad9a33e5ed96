"""The phase as hidden function: planted ones are found, and the bound is worth something."""

import math
from typing import Any

import numpy as np
import pytest
import torch

import deeplfm as dlfm
from deeplfm.data import Dataset, dataset, fit_scaling
from deeplfm.models import DeepLFM
from deeplfm.objectives import Batch
from deeplfm.training import Trainer, Training

NOISE = 0.1


def beats() -> tuple[Dataset, np.ndarray]:
    """24 beats in two channels with gaps of their own, and the phase; it drifts by a radian."""
    random = np.random.default_rng(0)
    x = np.linspace(0, 12, 360)
    phase = 2 * math.pi * 2 * x + np.sin(1.1 * x) + 0.5 * np.cos(2.3 * x)
    sharp = np.exp(3 * (np.cos(phase - 1) - 1))
    y = np.stack([sharp / sharp.std(), np.cos(phase) + 0.5 * np.sin(2 * phase)], axis=1)
    y += NOISE * random.standard_normal(y.shape)
    y[60:110, 0] = np.nan
    y[200:250, 1] = np.nan
    return dataset(x, y), phase


def made(**settings: Any) -> tuple[DeepLFM, Batch, np.ndarray]:
    data, phase = beats()
    scaling = fit_scaling(data)
    recipe = dlfm.FourierDLFM(**({"num_features": 30} | settings))
    model = recipe.build(data, scaling, torch.Generator().manual_seed(0))
    x, y = torch.tensor(scaling.inputs(data.x)), torch.tensor(scaling.targets(data.y))
    return model, Batch(x, y.nan_to_num(), torch.tensor(data.observed), len(data)), phase


def bound(model: DeepLFM, batch: Batch) -> float:
    return Trainer(model, batch, Training(steps=1), 0).bound()


def constant(batch: Batch) -> float:
    """The log density of the data under the best constant with the best noise."""
    parts = [y[seen] for y, seen in zip(batch.y.mT, batch.observed.mT, strict=True)]
    return sum(
        -len(y) / 2 * (math.log(2 * math.pi * float(y.var(correction=0))) + 1) for y in parts
    )


def test_the_hidden_function_is_the_phase() -> None:
    """To a twentieth of a radian with noise of a tenth; its spread is of the size of its error."""
    model, batch, phase = made()
    with torch.no_grad():
        draws = model.draw(200, torch.Generator().manual_seed(0)).values(batch.x, 0)[..., 0]
    error = (draws.mean(0) - draws.mean()).numpy() - (phase - phase.mean())
    assert np.sqrt((error**2).mean()) < 0.05
    assert 0.2 < float(draws.std(0).mean()) / np.sqrt((error**2).mean()) < 5


def test_the_bound_is_above_that_of_a_constant_and_of_one_layer() -> None:
    model, batch, _ = made()
    shallow, _, _ = made(num_layers=1)
    assert bound(model, batch) > bound(shallow, batch) > constant(batch)


def test_training_raises_the_bound() -> None:
    model, batch, _ = made()
    trainer = Trainer(model, batch, Training(steps=60), 0)
    before = trainer.bound()
    trainer.run()
    assert trainer.bound() > before


@pytest.mark.parametrize(
    "settings",
    [
        {"hidden_dim": 3},
        {"num_layers": 3},
        {"num_forces": 2},
        {"shared_forces": True, "num_forces": 2},
        {"shared_forces": True, "num_forces": 2, "hidden_dim": 2, "num_layers": 3},
        {"weights": "diagonal"},
        {"memory": "infinite"},
        {"inputs": "product", "memory": "infinite"},
        {"random_phases": True, "input_weights": True},
        {"skip": "none"},
        {"frequencies": "fixed_noise"},
        {"frequencies": "resampled"},
        {"greens_function": dlfm.FirstOrder(0.5)},
        {"greens_function": dlfm.NoDynamics()},
        {"likelihood": dlfm.StudentT()},
    ],
    ids=str,
)
def test_every_setting_starts_at_a_fit(settings: dict[str, Any]) -> None:
    """Draws explain nine tenths of what was observed, whatever the model is made of."""
    model, batch, _ = made(**settings)
    with torch.no_grad():
        mean = model.draw(50, torch.Generator().manual_seed(0))(batch.x).mean(0)
    errors = ((mean - batch.y).square() * batch.observed).sum(0) / batch.observed.sum(0)
    assert errors.max() < 0.1  # of a variance of 1
    assert bool(torch.isfinite(model.kl()))
