"""One step of the loop against the same step by hand: objective, rows, rate, decay, record."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.distributions import Normal

from deeplfm.objectives import Batch
from deeplfm.training import Race, Stage, Trainer, Training
from deeplfm.training.checkpoints import Checkpoints
from deeplfm.training.minibatches import Minibatches
from small_models import deep, deep_batch, noise_variance, shallow

ONE = Training(steps=1, num_samples=3)


def log_densities(rows: Tensor | slice, samples: int, seed: int) -> Tensor:
    """log N(y | f_s, σ²) [S, rows, D] of the untrained model, 0 where nothing was observed."""
    model, batch = deep(), deep_batch()
    with torch.no_grad():
        f = model.draw_for_training(samples, torch.Generator().manual_seed(seed))(batch.x[rows])
        std = noise_variance(model).sqrt()
        densities: Tensor = Normal(f, std).log_prob(batch.y[rows])
        return densities * batch.observed[rows]


def by_hand(objective: str, rows: Tensor | slice, samples: int, seed: int) -> float:
    """N/|batch| Σ mean_s log p or N/|batch| Σ log mean_s p, over what was observed."""
    logs = log_densities(rows, samples, seed)
    total = 0.0
    for n in range(logs.shape[1]):
        for d in range(logs.shape[2]):
            values = logs[:, n, d].tolist()
            if objective == "elbo":
                total += sum(values) / samples
            else:
                total += math.log(sum(math.exp(value) for value in values) / samples)
    return 12 / logs.shape[1] * total


@pytest.mark.parametrize(
    ("settings", "objective", "samples"),
    [
        ({}, "elbo", 3),
        ({"objective": "multi_sample"}, "multi_sample", 3),
        ({"stages": (Stage(1.0, 2, objective="multi_sample"),)}, "multi_sample", 2),
        ({"stages": (Stage(1.0, 4),), "objective": "multi_sample"}, "multi_sample", 4),
        ({"stages": (Stage(1.0, 2, objective="elbo"),), "objective": "multi_sample"}, "elbo", 2),
    ],
)
def test_a_step_scores_what_its_stage_says(
    settings: dict[str, Any], objective: str, samples: int
) -> None:
    trainer = Trainer(deep(), deep_batch(), replace(ONE, **settings), 5)
    divergence = deep().kl().item()
    trainer.run()
    history = {name: column.tolist() for name, column in trainer.history().items()}
    expected = by_hand(objective, slice(None), samples, 5)
    assert history["step"] == [1]
    assert history["expected_log_likelihood"] == pytest.approx([expected], rel=1e-9)
    assert history["kl"] == pytest.approx([divergence], rel=1e-9)
    assert history["loss"] == pytest.approx([divergence - expected], rel=1e-9)


@pytest.mark.parametrize("objective", ["elbo", "multi_sample"])
def test_a_step_sees_the_rows_of_its_batch(objective: Any) -> None:
    """Their inputs, targets and gaps, and the sum over them scaled up to all rows."""
    trainer = Trainer(deep(), deep_batch(), replace(ONE, batch_size=5, objective=objective), 5)
    trainer.run()
    rows = Minibatches(12, 5, 5, torch.device("cpu")).rows(0)
    assert rows is not None
    expected = by_hand(objective, rows, 3, 5)
    found = trainer.history()["expected_log_likelihood"].item()
    assert found == pytest.approx(expected, rel=1e-9)
    assert found != pytest.approx(by_hand(objective, slice(None), 3, 5), rel=1e-3)


def moves(settings: Training) -> tuple[Tensor, Tensor]:
    """The first parameters of a shallow model before and after training."""
    model, layer, batch = shallow("diagonal", frequencies="prior_draws")
    with torch.no_grad():
        layer.sensitivities.fill_(1.5)
    trainer = Trainer(model, batch, settings, 0)
    before = layer.sensitivities.detach().clone()
    trainer.run()
    return before, layer.sensitivities.detach()


def test_the_first_step_is_as_long_as_its_rate() -> None:
    """Adam's first step is the rate in the direction of the sign, whatever the gradient's size."""
    settings = Training(steps=1, num_samples=2, learning_rate=0.03, warmup=0.0, gradient_norm=None)
    before, after = moves(settings)
    torch.testing.assert_close((after - before).abs(), torch.full_like(after, 0.03))
    # With decay the parameter first shrinks by rate times decay, then moves as before.
    before, shrunk = moves(replace(settings, weight_decay=0.5))
    torch.testing.assert_close(after - shrunk, 0.03 * 0.5 * before)


def test_each_step_has_its_own_rate() -> None:
    settings = Training(steps=4, num_samples=1, learning_rate=0.1, warmup=0.5, rate="constant")
    trainer = Trainer(deep(), deep_batch(), settings, 0)
    rates = []
    for step in range(1, 5):
        trainer.run(until=step)
        rates.append(trainer.optimiser._rate.item())
    assert rates == pytest.approx([0.05, 0.1, 0.1, 0.1])


@pytest.mark.parametrize("limit", [None, 1e9, 0.5])
def test_gradients_are_shortened_to_the_limit(limit: float | None) -> None:
    settings = replace(ONE, gradient_norm=limit)
    trainer, free = (
        Trainer(deep(), deep_batch(), one, 0)
        for one in (settings, replace(ONE, gradient_norm=None))
    )
    norms = []
    for one in (trainer, free):
        one.run()
        parts = [p.grad.flatten() for p in one.optimiser.parameters if p.grad is not None]
        norms.append(torch.cat(parts).norm().item())
    assert norms[1] > 10
    assert norms[0] == pytest.approx(0.5 if limit == 0.5 else norms[1], rel=1e-5)


def test_seconds_add_up_over_pauses() -> None:
    trainer = Trainer(deep(), deep_batch(), Training(steps=4, num_samples=1), 0)
    trainer.run(until=2)
    first = trainer.history()["seconds"][-1].item()
    trainer.run()
    seconds = trainer.history()["seconds"]
    assert seconds[2] > first > 0
    assert (seconds.diff() > 0).all()


def race(folder: Path, steps: int = 10) -> Race:
    training = Training(steps=steps, num_samples=1, checkpoint_every=3)
    made = []
    for seed in range(3):
        model, _, batch = shallow("diagonal", frequencies="prior_draws")
        made.append(Trainer(model, batch, training, seed))
    return Race(made, Checkpoints(folder))


def test_a_race_goes_on_with_the_starts_that_were_left(tmp_path: Path) -> None:
    """Two of three are left after step 2, and the folder holds these alone, at the last step."""
    first = race(tmp_path)
    first.run(until=4)
    assert len(first.alive) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["race.safetensors"]
    second = race(tmp_path)
    second.resume()
    assert second.alive == first.alive
    assert [trainer.step for trainer in second.trainers] == [
        4 if k in first.alive else 0 for k in range(3)
    ]
    first.run()
    second.run()
    assert second.chosen() == first.chosen()
    for k in first.alive:
        ours, theirs = (one.trainers[k].history()["loss"] for one in (first, second))
        assert torch.equal(ours, theirs)
    assert [path.name for path in tmp_path.iterdir()] == ["race.safetensors"]


def test_rows_of_others_are_read_where_data_are_too_large() -> None:
    """`read` is asked for the rows of the batch, and what it gives is scored, scaled to all."""
    batch, asked = deep_batch(), []

    def read(rows: Tensor) -> Batch:
        asked.append(rows)
        return Batch(batch.x[rows], batch.y[rows], batch.observed[rows], 12)

    few = Batch(batch.x[:2], batch.y[:2], batch.observed[:2], 12)
    stored = Trainer(deep(), few, replace(ONE, batch_size=5), 5, read=read)
    whole = Trainer(deep(), batch, replace(ONE, batch_size=5), 5)
    stored.run()
    whole.run()
    assert torch.equal(stored.history()["loss"], whole.history()["loss"])
    (rows,) = asked
    expected = Minibatches(12, 5, 5, torch.device("cpu")).rows(0)
    assert expected is not None
    assert torch.equal(rows, expected)
