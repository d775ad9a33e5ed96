"""A second layer of a Markov model: the first one inside of it, where it pays and where not."""

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch

import deeplfm as dlfm
from deeplfm.models.markov_model import MarkovModel
from deeplfm.regressor.markov_rehearsal import of_depth
from deeplfm.statespace import Record
from deeplfm.statespace.rhythm import path_cost, strongest
from deeplfm.training import Training, depth
from deeplfm.training.depth import deepen, may_deepen, promising, second_layer
from deeplfm.training.evidence import EvidenceTrainer

STEPS = 100


def beats(seed: int = 0, count: int = 500, jitter: float = 0.06) -> Record:
    """Sharp beats whose intervals differ, in two outputs; a fifth of the entries is missing."""
    rng = np.random.default_rng(seed)
    phase = np.cumsum(
        2 * np.pi / 20 * (1 + jitter * np.repeat(rng.standard_normal(count // 20), 20))
    )
    peak = np.exp(3 * (np.cos(phase) - 1))
    values = np.stack([peak, np.roll(peak, 3) + 0.3 * np.sin(phase)], 1)
    values = (values - values.mean(0)) / values.std(0) + 0.05 * rng.standard_normal((count, 2))
    values[rng.uniform(size=values.shape) < 0.2] = np.nan
    return Record(np.linspace(0, 1, count), np.zeros(count, dtype=np.int64), values)


def fitted(record: Record, steps: int = STEPS) -> MarkovModel:
    model = dlfm.MarkovDLFM(modes=10).build(record, torch.Generator().manual_seed(0))
    EvidenceTrainer(model, record, Training(steps=steps), 0).run(steps)
    return model


def training_on(record: Record, names: list[str] | None = None):  # type: ignore[no-untyped-def]
    def train(model: MarkovModel, name: str) -> bool:
        if names is not None:
            names.append(name)
        training = of_depth(Training(steps=3 * STEPS))
        EvidenceTrainer(model, record, training, 0).run(training.steps)
        return True

    return train


@pytest.fixture(scope="module")
def beating() -> tuple[Record, MarkovModel]:
    record = beats()
    return record, fitted(record)


def test_without_amplitude_it_is_the_first_layer(beating: tuple[Record, MarkovModel]) -> None:
    record, first = beating
    deep = second_layer(first, strongest(first.system()))
    assert deep.phase is not None
    with torch.no_grad():
        deep.phase.log_amplitude.fill_(-40.0)
        cut = record.whole()
        found, expected = float(deep.evidence(record, cut)), float(first.evidence(record, cut))
    assert found == pytest.approx(expected, rel=1e-9)


def test_sharp_beats_of_different_length_are_worth_a_second_layer(
    beating: tuple[Record, MarkovModel],
) -> None:
    record, first = beating
    before = copy.deepcopy(first.state_dict())
    names: list[str] = []
    deep, found = deepen(first, record, training_on(record, names))
    assert found.kept
    assert found.gain is not None
    assert found.gain > 20
    assert deep is not None
    assert deep.phase is not None
    assert float(deep.phase.amplitude.detach().max()) > 0.3  # it took the beats over
    assert names == ["depth", "beside"]
    after = first.state_dict()
    assert all(torch.equal(value, after[name]) for name, value in before.items())


def test_a_plain_wave_is_not() -> None:
    """An oscillator says all that there is to say about it."""
    rng = np.random.default_rng(1)
    times = np.linspace(0, 1, 300)
    values = np.stack([np.sin(2 * np.pi * 20 * times), np.cos(2 * np.pi * 20 * times)], 1)
    values = values + 0.3 * rng.standard_normal(values.shape)
    record = Record(times, np.zeros(300, dtype=np.int64), values)
    deep, found = deepen(fitted(record), record, training_on(record))
    assert deep is None
    assert not found.kept
    assert found.gain is not None
    assert found.gain < 0


def test_what_cannot_have_one_says_why(beating: tuple[Record, MarkovModel]) -> None:
    record, first = beating
    assert may_deepen(first, record) is None
    none = dlfm.MarkovDLFM(greens_function=dlfm.FirstOrder(1.0))
    generator = torch.Generator().manual_seed(0)
    given = none.build(record, generator)
    heavy = dlfm.MarkovDLFM(modes=4, likelihood=dlfm.StudentT()).build(record, generator)
    panel = replace(record, series=np.arange(500) // 250)
    few = replace(record, times=record.times[:60], targets=record.targets[:60],
                  series=record.series[:60])  # fmt: skip
    for model, own, words in (
        (given, record, "physics is given"),
        (heavy, record, "heavy tails"),
        (first, panel, "panel"),
        (first, few, "periods"),
    ):
        why = may_deepen(model, own)
        assert why is not None
        assert words in why
        assert deepen(model, own, training_on(own))[1].why == why


def test_a_training_that_was_interrupted_leaves_the_first_layer(
    beating: tuple[Record, MarkovModel],
) -> None:
    record, first = beating
    deep, found = deepen(first, record, lambda model, name: False)
    assert deep is None
    assert not found.kept
    assert "interrupted" in found.why


def test_the_rhythm_that_gains_more_is_followed(
    beating: tuple[Record, MarkovModel], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before anything is learnt, and whichever comes first."""
    record, first = beating
    system, cut = first.system(), record.whole()
    beat = strongest(system)
    count = len(system.frequency)
    far = int(system.frequency.abs().argmax())
    other = torch.zeros_like(beat)
    other[0, far] = other[1, count + far] = 0.3
    gains = []
    for one in (beat, other):
        with torch.no_grad():
            rows = first.observations(record, cut)
            cost = path_cost(system, rows, one)
            gains.append(float(second_layer(first, one).evidence(record, cut) - cost))
    assert abs(gains[0] - gains[1]) > 1
    better = beat if gains[0] > gains[1] else other
    for found in ([other, beat], [beat, other]):
        monkeypatch.setattr(depth, "rhythms", lambda _, found=found: found)
        assert torch.equal(promising(first, record), better)
