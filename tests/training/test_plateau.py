"""A training ends by itself where its bound rises no more; resumed, it ends at the same step."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import deeplfm as dlfm
from deeplfm.training import Trainer, Training, plateau
from deeplfm.training.checkpoints import Checkpoints
from deeplfm.training.evidence import EvidenceTrainer
from deeplfm.training.laplace import flat_parameters
from deeplfm.training.plateau import Ending, is_flat, sentence_of
from markov_records import small_record
from small_models import deep, deep_batch

WINDOW = 20


def falling(rate: float, noise: float = 0.0, steps: int = 3 * WINDOW) -> list[float]:
    random = np.random.default_rng(0)
    return list(100 - rate * np.arange(steps) + noise * random.standard_normal(steps))


@pytest.mark.parametrize(
    ("losses", "expected"),
    [
        (falling(0.0), True),
        (falling(0.1), False),  # 2 nats a window
        (falling(0.002), True),
        (falling(-0.1), True),  # the bound falls: there is nothing to wait for
        (falling(0.0, steps=3 * WINDOW - 1), False),  # too early to say
        (falling(0.0, noise=20.0), False),  # a fall of some nats may hide in it
        (falling(0.0, noise=0.3), True),
        ([*falling(0.5, steps=WINDOW), *[90.0] * (2 * WINDOW)], False),  # one flat window is luck
    ],
)
def test_what_is_flat(losses: list[float], expected: bool) -> None:
    assert is_flat(losses, WINDOW) is expected


def test_the_rate_falls_to_zero_over_one_window_more() -> None:
    ending = Ending(Training(steps=300, warmup=0.0, rate="constant"))
    ending.look(100, falling(0.0))
    assert ending.step == 100 + WINDOW
    assert ending.rate(100) == pytest.approx(0.01)
    rates = [ending.rate(step) for step in range(100, ending.step)]
    assert all(before > after > 0 for before, after in itertools.pairwise(rates))
    ending.look(110, falling(0.0))  # it is decided
    assert ending.step == 100 + WINDOW


def test_near_the_end_nothing_is_added() -> None:
    ending = Ending(Training(steps=300))
    ending.look(290, falling(0.0))
    assert ending.step == 300


def evidence_trainer(folder: Path | None = None, *, stop: bool = True) -> EvidenceTrainer:
    data = small_record((30, 12))
    model = dlfm.MarkovDLFM(modes=2).build(data, torch.Generator().manual_seed(0))
    training = Training(steps=300, stop_early=stop, checkpoint_every=50)
    return EvidenceTrainer(
        model, data, training, seed=3, checkpoints=None if folder is None else Checkpoints(folder)
    )


def test_an_evidence_that_rises_no_more_ends_its_training(tmp_path: Path) -> None:
    """Within a nat of all steps; resumed in the middle, and in the last window, bit for bit."""
    through, whole = evidence_trainer(), evidence_trainer(stop=False)
    through.run(300)
    whole.run(300)
    assert whole.step == 300
    assert through.finished
    assert through.step < 300
    assert through.history()["loss"][-1] < whole.history()["loss"][-1] + 1
    for number, stop in enumerate((90, through.step - 5)):
        folder = tmp_path / str(number)
        first = evidence_trainer(folder)
        first.run(stop)
        first.save()
        second = evidence_trainer(folder)
        second.resume()
        second.run(300)
        assert second.step == through.step
        assert torch.equal(flat_parameters(second.model), flat_parameters(through.model))


def test_a_layered_model_ends_and_resumes_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """It looks every 50 steps; here every fall is small."""
    monkeypatch.setattr(plateau, "_SMALL", 1e9)
    monkeypatch.setattr(plateau, "_SURE", 1e9)

    def layered(**options: Any) -> Trainer:
        return Trainer(deep(), deep_batch(), Training(steps=300, num_samples=1, **options), 0)

    through = layered()
    through.run()
    assert through.finished
    assert through.step == 100 + WINDOW
    part = layered()
    part.run(until=103)
    state = part.state()
    again = layered()
    again.restore(state)
    again.run()
    assert torch.equal(again.history()["loss"], through.history()["loss"])
    for options in ({"stop_early": False}, {"held_out": 0.1}, {"restarts": 2}):
        longer = layered(**options)
        longer.restore(state)
        assert longer.end == 300


def test_what_is_said() -> None:
    training = Training(steps=300)
    slow, fast = np.array(falling(0.001, steps=300)), np.array(falling(0.5, steps=300))
    assert "was still rising when its 300 steps were over, by 4" in str(
        sentence_of(training, {"loss": fast})
    )
    assert "had nearly stopped" in str(sentence_of(training, {"loss": slow}))
    assert "ended after 120 of 300 steps" in str(sentence_of(training, {"loss": slow[:120]}))
    assert sentence_of(training, {}) is None


def test_a_short_series_says_that_it_is_done() -> None:
    t = np.arange(60.0)
    y = np.sin(t / 3) + 0.1 * np.random.default_rng(0).standard_normal(60)
    model = dlfm.DeepLFMRegressor(
        dlfm.MarkovDLFM(num_layers=1, modes=2),
        dlfm.Training(steps=600),
        progress=False,
        check=False,
    ).fit(t, y)
    taken = len(model.history_["loss"])
    assert taken < 600
    assert f"ended after {taken} of 600 steps" in model.fitted_.convergence
