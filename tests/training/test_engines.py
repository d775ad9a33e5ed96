"""Every way to carry out a step gives the same training; what cannot be had is said."""

from typing import Any

import numpy as np
import pytest
import torch

import deeplfm as dlfm
from deeplfm.models import Recipe
from deeplfm.objectives import Batch
from deeplfm.regressor.fitting import fit
from deeplfm.sums import Backend
from deeplfm.sums.c import library
from deeplfm.training import Stage, Trainer
from deeplfm.training.schedule import USED

RECIPES = {
    "fourier": dlfm.FourierDLFM(num_features=12, hidden_dim=2),
    # Few inducing points: bumps of many cancel, and rounding grows from one step to the next.
    "inducing": dlfm.InducingDLFM(
        num_inducing=6, num_basis=12, hidden_dim=2, greens_function=dlfm.FirstOrder(5.0)
    ),
}


def trained(recipe: Recipe, backend: Backend, device: str = "cpu", **options: Any) -> Trainer:
    x = np.linspace(0, 1, 200)
    y = np.stack([np.sin(9 * x), np.cos(7 * x)], axis=1)
    data = dlfm.data.dataset(x, y)
    scaling = dlfm.data.fit_scaling(data)
    model = recipe.build(data, scaling, torch.Generator().manual_seed(0))
    inputs = torch.tensor(scaling.inputs(x[:, None])).to(device, torch.float32)
    targets = torch.tensor(scaling.targets(y)).to(device, torch.float32)
    batch = Batch(inputs, targets, torch.ones_like(targets, dtype=torch.bool), 200)
    training = dlfm.Training(steps=20, num_samples=3, backend=backend, **options)
    trainer = Trainer(model.to(device, torch.float32), batch, training, 0)
    trainer.run()
    return trainer


def named(trainer: Trainer) -> list[str]:
    return [USED[code] for code in trainer.history()["backend"].tolist()]


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES)
def test_lookups_train_as_plain_sums_do(recipe: Recipe) -> None:
    plain, lookup = trained(recipe, "plain"), trained(recipe, "torch")
    assert named(plain) == ["plain"] * 20
    assert named(lookup) == ["torch"] * 20
    one, other = (trainer.history()["loss"] for trainer in (plain, lookup))
    # Lookups are good to 1e-5 of the functions; the loss is a sum of squares over their noise.
    torch.testing.assert_close(one, other, rtol=2e-3, atol=0.2)


@pytest.mark.skipif(not library.is_built(), reason="no compiled kernels here")
@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES)
def test_compiled_kernels_train_as_plain_sums_do(recipe: Recipe) -> None:
    plain, compiled = trained(recipe, "plain"), trained(recipe, "c")
    assert named(compiled) == ["c"] * 20
    one, other = (trainer.history()["loss"] for trainer in (plain, compiled))
    # The loss is a sum of squares over their noise; after 20 steps rounding has grown.
    torch.testing.assert_close(one, other, rtol=2e-3, atol=0.2)
    assert torch.equal(trained(recipe, "auto").history()["loss"], other)


def test_kernels_that_were_not_built_are_missed(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(library, "is_built", lambda: False)
    assert named(trained(RECIPES["fourier"], "auto")) == ["torch"] * 20
    assert not caplog.records
    assert named(trained(RECIPES["fourier"], "c")) == ["torch"] * 20
    assert "backend c is not to be had here" in caplog.text


@pytest.mark.skipif(not torch.cuda.is_available(), reason="graphs need CUDA")
@pytest.mark.parametrize("batch_size", [None, 50])
@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES)
def test_recorded_steps_are_those_that_run(recipe: Recipe, batch_size: int | None) -> None:
    """Draws, rows, rates and stages change under a recorded step as they do without."""
    stages = (Stage(0.5, 2, frozenset({"hyperparameters"})),)
    options: dict[str, Any] = {"device": "cuda", "batch_size": batch_size, "stages": stages}
    graph, eager = trained(recipe, "auto", **options), trained(recipe, "triton", **options)
    assert named(graph).count("graph") == 16  # all but two of each stage
    torch.testing.assert_close(
        graph.history()["loss"], eager.history()["loss"], rtol=1e-3, atol=1e-2
    )


@pytest.mark.skipif(not torch.cuda.is_available(), reason="graphs need CUDA")
def test_starts_side_by_side_never_record_each_other() -> None:
    """After a few fits PyTorch has handed out each of its streams: one is that of recordings."""
    x = np.linspace(0, 1, 200)
    y = np.stack([np.sin(9 * x), np.cos(7 * x)], axis=1)
    data = dlfm.data.dataset(x, y)
    training = dlfm.Training(steps=20, num_samples=2, restarts=6, combine="mixture")
    losses = [
        fit(data, RECIPES["fourier"], training, device="cuda", progress=False).histories[0]["loss"]
        for _ in range(8)
    ]
    for loss in losses[1:]:
        np.testing.assert_allclose(loss, losses[0], rtol=1e-3, atol=1e-2)
