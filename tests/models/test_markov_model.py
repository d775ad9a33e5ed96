"""The Markov model: its start, its gradients, and what changes nothing."""

from typing import Any

import numpy as np
import pytest
import torch

import deeplfm as dlfm
from deeplfm.forces import SquaredExponential
from deeplfm.layers.markov import OscillatorBank
from deeplfm.models.starts.markov import spectral_start
from deeplfm.statespace import Record
from deeplfm.training.laplace import flat_parameters, set_flat
from markov_records import KINDS, small_model, small_record
from own_likelihoods import Laplace


@pytest.mark.parametrize(
    ("rows", "outputs", "expected"),
    [(1000, 3, 40), (425, 3, 40), (213, 7, 21), (240, 2, 24), (240, 1, 20)],
)
def test_outputs_have_rows_enough_for_their_loadings(
    rows: int, outputs: int, expected: int
) -> None:
    """Seven channels of 213 rows had 40 oscillators, and a quarter of their noise was left."""
    targets = np.random.default_rng(0).normal(size=(rows, outputs))
    record = Record(np.arange(float(rows)), np.zeros(rows, dtype=np.int64), targets)
    model = dlfm.MarkovDLFM().build(record, torch.Generator().manual_seed(0))
    assert model.bank is not None
    assert len(model.bank.log_decay) == expected


@pytest.mark.parametrize(
    ("outputs", "modes"), [(1, 3), (2, 1), (2, 4), (3, 2), (4, 1), (7, 1), (7, 5)]
)
def test_a_bank_starts_at_the_loadings_that_it_is_given(outputs: int, modes: int) -> None:
    bank = OscillatorBank(modes, outputs)
    generator = torch.Generator().manual_seed(0)
    loadings = torch.randn(outputs, modes, 2, generator=generator, dtype=torch.float64)
    bank.start(loadings)
    np.testing.assert_allclose(bank.natural()["loadings"].detach(), loadings, atol=1e-14)


@pytest.mark.parametrize("outputs", [1, 2, 5])
def test_a_shift_of_phase_of_a_mode_changes_nothing(outputs: int) -> None:
    rng = np.random.default_rng(0)
    times = np.sort(rng.uniform(0, 10, 30))
    targets = np.sin(2 * times)[:, None] + 0.3 * rng.normal(size=(30, outputs))
    record = Record(times, np.zeros(30, dtype=np.int64), targets)
    model = small_model(record, modes=3)
    assert model.bank is not None
    before = model.evidence(record, record.whole()).item(), model.log_prior().item()
    angle = torch.tensor([0.3, -2.0, 1.0], dtype=torch.float64)
    with torch.no_grad():
        for part, turn in model.bank.turns():
            part.copy_(angle.cos()[:, None] * part + angle.sin()[:, None] * turn)
    after = model.evidence(record, record.whole()).item(), model.log_prior().item()
    np.testing.assert_allclose(after, before, rtol=1e-11)


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("kind", list(KINDS))
def test_gradients_are_those_of_differences(kind: str, known: bool) -> None:
    record = small_record((20, 8), trend=kind.startswith("levels"), known=known)
    model, cut = small_model(record, **KINDS[kind]), record.whole()

    def objective(values: torch.Tensor) -> float:
        set_flat(model, values)
        with torch.no_grad():
            return (model.evidence(record, cut) + model.log_prior()).item()

    centre = flat_parameters(model)
    total = model.evidence(record, cut) + model.log_prior()
    # A shared width is not used where there is nothing shared: its prior alone has a gradient.
    found = torch.autograd.grad(total, [raw.value for raw in model.raw()])
    gradient = torch.cat([part.reshape(-1) for part in found])
    step, expected = 1e-5, []
    for k in range(len(centre)):
        way = torch.zeros_like(centre)
        way[k] = step
        expected.append((objective(centre + way) - objective(centre - way)) / (2 * step))
    # Differences lose 1e-16 · |objective| / step and step² of the third derivative.
    np.testing.assert_allclose(gradient, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("kind", list(KINDS))
def test_the_evidence_of_natural_parameters_is_that_of_the_model(kind: str) -> None:
    record = small_record(known=True)
    model, cut = small_model(record, **KINDS[kind]), record.whole()
    own = model.evidence(record, cut).item()
    natural = {name: value.detach().clone() for name, value in model.natural().items()}
    with torch.no_grad():
        for raw in model.raw():  # they must all come from `natural`
            raw.value.add_(1.0)
    assert model.evidence(record, cut, natural).item() == pytest.approx(own, rel=1e-12)


def test_the_spectrum_finds_the_frequencies_that_are_there() -> None:
    times = np.sort(np.random.default_rng(0).uniform(0, 20, 80))
    targets = np.stack([np.sin(3 * times), np.cos(3 * times) + 0.5 * np.sin(5 * times)], 1)
    found = spectral_start(Record(times, np.zeros(80, dtype=np.int64), targets), 2)
    resolution = 2 * np.pi / 20
    np.testing.assert_allclose(sorted(found.frequency), [3, 5], atol=resolution / 2)


@pytest.mark.parametrize("apart", [1e-7, 1e-12])
def test_rows_in_pairs_do_not_ask_for_an_endless_spectrum(apart: float) -> None:
    times = np.linspace(0, 10, 40)
    times = np.concatenate([times, times + apart])
    record = Record(times, np.zeros(80, dtype=np.int64), np.sin(3 * times)[:, None])
    found = spectral_start(record, 1)
    assert found.frequency[0] == pytest.approx(3, abs=2 * np.pi / 10)


def test_known_periods_come_first() -> None:
    record = small_record()
    found = spectral_start(record, 1, [1.5, 4.0])
    assert found.frequency.tolist() == [1.5, 4.0]
    model = dlfm.MarkovDLFM(modes=1, periods=(2.0, 3.0)).build(record, torch.Generator())
    assert model.bank is not None
    np.testing.assert_allclose(model.bank.frequency_centre, [np.pi, 2 * np.pi / 3])


@pytest.mark.usefixtures("without_shape_checks")
@pytest.mark.parametrize(
    "wrong",
    [
        {"num_layers": 3},
        {"modes": -1},
        {"periods": (0.0,)},
        {"lengthscale": -1.0},
        {"trend": "steep"},
        {"likelihood": Laplace()},
        {"greens_function": [dlfm.FirstOrder(1.0)] * 3},
        {"greens_function": dlfm.FirstOrder(1.0), "force": SquaredExponential()},
    ],
)
def test_what_cannot_be_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(dlfm.InputError, match="must"):
        dlfm.MarkovDLFM(**wrong).build(small_record(), torch.Generator())
