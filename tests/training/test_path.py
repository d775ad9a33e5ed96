"""The path of a rhythm with what a second layer knows of it: nearer to a phase that is known."""

import copy

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from deeplfm.models.markov_model import MarkovModel
from deeplfm.statespace import Record
from deeplfm.statespace.phase_sites import PhaseSites, no_sites
from deeplfm.statespace.rhythm import phase_of, position, strongest
from deeplfm.training.depth import second_layer
from deeplfm.training.evidence import EvidenceTrainer
from deeplfm.training.path import learnt_path
from deeplfm.training.schedule import Training
from training.test_depth import fitted

Values = NDArray[np.float64]


def beats(count: int = 300) -> tuple[Record, Values]:
    """Sharp beats of different lengths with noise, and their phase; 40 rows are missing."""
    rng = np.random.default_rng(0)
    pace = 1 + 0.08 * np.repeat(rng.standard_normal(count // 20), 20)
    phase = np.cumsum(2 * np.pi / 20 * pace)
    peak = np.exp(3 * (np.cos(phase) - 1))
    values = np.stack([peak, np.roll(peak, 3)], 1)
    values = (values - values.mean(0)) / values.std(0) + 0.2 * rng.standard_normal((count, 2))
    values[140:180] = np.nan
    record = Record(np.linspace(0, 1, count), np.zeros(count, dtype=np.int64), values)
    return record, phase


@pytest.fixture(scope="module")
def layers() -> tuple[Record, Values, MarkovModel, MarkovModel]:
    record, phase = beats()
    first = fitted(record, 60)
    deep = second_layer(first, strongest(first.system()))
    EvidenceTrainer(deep, record, Training(steps=60, learning_rate=0.01), 0).run(60)
    return record, phase, first, deep


def error(first: MarkovModel, record: Record, sites: PhaseSites, truth: Values) -> Values:
    """How far the phase is from the true one, but for a constant, at every row."""
    with torch.no_grad():
        rows = sites.beside(first.observations(record, record.whole()), record.timeline)
        system = sites.joined(first.system())
        found = phase_of(*position(system, rows, sites.directions))[0][0].numpy()
    apart = np.exp(1j * (found - truth))
    return np.asarray(np.abs(np.angle(apart / np.mean(apart))))


def test_a_path_comes_nearer_to_the_true_phase(
    layers: tuple[Record, Values, MarkovModel, MarkovModel],
) -> None:
    record, phase, first, deep = layers
    directions = strongest(first.system())
    before = {name: value.clone() for name, value in deep.state_dict().items()}
    rhythm = deep.rhythm
    sites = learnt_path(first, deep, directions, record)
    plain = error(first, record, no_sites(record, directions), phase)
    learnt = error(first, record, sites, phase)
    gap, rms = np.isnan(record.targets).all(1), lambda x: np.sqrt((x**2).mean())
    assert rms(learnt[gap]) < 0.85 * rms(plain[gap])
    assert rms(learnt[~gap]) < 0.96 * rms(plain[~gap])
    assert deep.rhythm is rhythm
    assert all(torch.equal(value, before[name]) for name, value in deep.state_dict().items())


def test_rows_without_an_observation_get_no_site(
    layers: tuple[Record, Values, MarkovModel, MarkovModel],
) -> None:
    record, _, first, deep = layers
    sites = learnt_path(first, deep, strongest(first.system()), record)
    there = ~np.isnan(sites.targets)
    assert not there[140:180].any()
    assert (there.sum(1) <= 1).all()
    assert there[:140].any(1).mean() > 0.9


def test_flat_functions_say_nothing_about_the_phase(
    layers: tuple[Record, Values, MarkovModel, MarkovModel],
) -> None:
    record, _, first, deep = layers
    flat = copy.deepcopy(deep)
    assert flat.phase is not None
    with torch.no_grad():
        flat.phase.log_amplitude.fill_(-30.0)
    directions = strongest(first.system())
    sites = learnt_path(first, flat, directions, record)
    own = error(first, record, sites, np.zeros(300))
    np.testing.assert_allclose(
        own, error(first, record, no_sites(record, directions), np.zeros(300)), atol=1e-6
    )
