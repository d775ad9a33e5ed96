"""Several starts: at each mark the best go on, and the best at the end is predicted with."""

from collections.abc import Callable

import pytest
import torch
from torch.distributions import Normal

from deeplfm.errors import InputError
from deeplfm.training import Race, Trainer, Training
from deeplfm.training.progress import Report
from deeplfm.training.schedule import Combination
from small_models import deep, deep_batch, noise_variance


def race_of(bounds: list[Callable[[int], float]], combine: Combination = "best") -> Race:
    """One start for each bound, a function of the step it has reached; no arithmetic is done."""
    settings = Training(steps=10, num_samples=1, combine=combine)
    trainers = [Trainer(deep(), deep_batch(), settings, seed) for seed in range(len(bounds))]
    for trainer, bound in zip(trainers, bounds, strict=True):
        replace_work(trainer, bound)
    return Race(trainers)


def replace_work(trainer: Trainer, bound: Callable[[int], float]) -> None:
    def run(until: int, report: Report | None = None) -> None:
        trainer.step = until

    trainer.run, trainer.bound = run, lambda: bound(trainer.step)  # type: ignore[method-assign, assignment, misc]


def constant(*values: float) -> list[Callable[[int], float]]:
    return [lambda _, value=value: value for value in values]  # type: ignore[misc]


def test_the_best_half_goes_on_then_the_best_quarter_then_the_best() -> None:
    """Of five starts 3 go on after 20 % of the steps, 2 after 50 %; 1 is chosen at the end."""
    race = race_of(constant(-30.0, -50.0, -10.0, -40.0, -20.0))
    race.run(until=1)
    assert race.alive == [0, 1, 2, 3, 4]
    race.run(until=2)
    assert race.alive == [0, 2, 4]
    race.run(until=4)
    assert race.alive == [0, 2, 4]
    race.run(until=5)
    assert race.alive == [2, 4]
    race.run()
    assert race.alive == [2, 4]
    assert race.chosen() == [2]
    assert [trainer.step for trainer in race.trainers] == [5, 2, 10, 2, 10]


def test_starts_are_compared_by_their_bound_at_the_mark() -> None:
    """One that begins badly and one that ends badly: each mark looks at that moment alone."""
    late = race_of([lambda step: float(step), lambda _: 3.0, lambda _: 2.5, lambda _: 1.0])
    late.run()
    assert late.alive == [1]  # the first was at 2 when the better half of four was chosen
    fading = race_of([lambda step: -float(step), lambda _: -3.0, lambda _: -9.0])
    fading.run(until=2)
    assert fading.alive == [0, 1]
    fading.run()
    assert fading.chosen() == [1]


def test_a_mixture_keeps_the_better_half_to_the_end() -> None:
    race = race_of(constant(1.0, 5.0, 2.0, 4.0, 3.0), "mixture")
    race.run()
    assert race.alive == race.chosen() == [1, 3, 4]


def test_the_bound_is_that_of_the_model_now() -> None:
    """The mean over draws of Σ log N(y | f, σ²) over what was observed, less the KL."""
    batch = deep_batch()
    trainer = Trainer(deep(), batch, Training(steps=4, num_samples=1), 0)
    before = trainer.bound()
    trainer.run()
    with torch.no_grad():
        path = trainer.model.draw_for_training(16, torch.Generator().manual_seed(0))
        f, std = path(batch.x), noise_variance(trainer.model).sqrt()
        total = 0.0
        for sample in f:
            for n, d in batch.observed.nonzero().tolist():
                total += float(Normal(sample[n, d], std[d]).log_prob(batch.y[n, d]))
        expected = total / 16 - float(trainer.model.kl())
    assert trainer.bound() == pytest.approx(expected, rel=1e-9)
    assert trainer.bound() != pytest.approx(before, rel=1e-3)


def test_an_interrupted_race_keeps_the_starts_that_have_begun() -> None:
    race = race_of(constant(1.0, 2.0, 3.0))
    with pytest.raises(KeyboardInterrupt):
        race.stop()
    race.trainers[1].step = 1
    race.stop()
    assert race.alive == race.chosen() == [1]
    with pytest.raises(InputError, match="trainers must hold one or more"):
        Race([])
