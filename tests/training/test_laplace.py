"""The posterior of the physics: its precision is the curvature; phases of modes do not move."""

import time
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import deeplfm as dlfm
from deeplfm.models.markov_model import MarkovModel
from deeplfm.paper.datasets.simulated import springs
from deeplfm.regressor.markov import FittedMarkov
from deeplfm.statespace import Record
from deeplfm.training import laplace
from deeplfm.training.evidence import EvidenceTrainer
from deeplfm.training.laplace import fit_posterior, flat_parameters, set_flat
from deeplfm.variational.parameters import Quantity
from markov_records import KINDS, small_model, small_record


def trained(record: Record, **recipe: Any) -> MarkovModel:
    model = small_model(record, **recipe)
    EvidenceTrainer(model, record, dlfm.Training(steps=20), seed=0).run(20)
    return model


def hessian(model: MarkovModel, record: Record) -> Tensor:
    """-∂² log evidence / ∂ξ² by central differences of gradients in every raw number."""
    centre, cut, step = flat_parameters(model), record.whole(), 1e-4

    def gradient(values: Tensor) -> Tensor:
        set_flat(model, values)
        raw = [raw.value for raw in model.raw()]
        found = torch.autograd.grad(model.evidence(record, cut), raw, allow_unused=True)
        parts = zip(found, raw, strict=True)
        return torch.cat(
            [torch.zeros_like(r).flatten() if g is None else g.flatten() for g, r in parts]
        )

    rows = []
    for k in range(len(centre)):
        way = torch.zeros_like(centre)
        way[k] = step
        rows.append((gradient(centre - way) - gradient(centre + way)) / (2 * step))
    set_flat(model, centre)
    return torch.stack(rows)


@pytest.mark.parametrize("kind", ["levels and slopes", "one ODE", "an ODE per output"])
def test_the_precision_is_the_curvature_and_the_prior(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of models whose natural parameters are their raw ones."""
    monkeypatch.setattr(laplace, "_LOOSE", 0.0)
    record = small_record((40,), trend=kind.startswith("levels"))
    model = trained(record, **KINDS[kind])
    posterior = fit_posterior(model, record, seed=0)
    assert torch.equal(posterior.mean, flat_parameters(model))
    values, vectors = torch.linalg.eigh(hessian(model, record))
    concave = (vectors * values.clamp(min=0)) @ vectors.mT
    prior = torch.cat([torch.full((r.value.numel(),), r.spread**-2.0) for r in model.raw()])
    expected = torch.linalg.inv(concave + torch.diag(prior.double()))
    found = posterior.factor @ posterior.factor.mT
    # One-sided differences of 1e-4 know the curvature to about 1e-4 of the third derivative.
    np.testing.assert_allclose(found, expected, atol=2e-3 * float(expected.abs().max()))


def test_turns_of_phases_are_not_in_it() -> None:
    record = small_record((40,))
    model = trained(record, modes=3)
    posterior = fit_posterior(model, record, seed=0)
    assert model.bank is not None
    names = [raw.name for raw in model.raw()]
    for mode in range(3):
        parts = {raw.name: torch.zeros_like(raw.value) for raw in model.raw()}
        for part, turn in model.bank.turns():
            (name,) = (raw.name for raw in model.raw() if raw.value is part)
            parts[name][:, mode] = turn[:, mode]
        tangent = torch.cat([parts[name].detach().reshape(-1) for name in names])
        moved = (tangent / tangent.norm()) @ posterior.factor
        assert float(moved.abs().max()) < 1e-10


def test_draws_depend_on_the_seed_and_their_number_alone() -> None:
    record = small_record()
    posterior = fit_posterior(small_model(record, modes=2), record, seed=0)
    np.testing.assert_allclose(posterior.draw(3, 5), posterior.draw(8, 5)[:3], rtol=1e-12)
    assert not torch.equal(posterior.draw(3, 5), posterior.draw(3, 6))


def test_draws_have_the_moments_of_the_gaussian() -> None:
    record = small_record()
    posterior = fit_posterior(small_model(record, modes=1), record, seed=0)
    draws = posterior.draw(4000, 1) - posterior.mean
    covariance = posterior.factor @ posterior.factor.mT
    std = covariance.diagonal().sqrt()
    assert bool((draws.mean(0).abs() <= 5 * std / 4000**0.5 + 1e-12).all())
    spread = draws.square().mean(0)
    error = 5 * covariance.diagonal() * (2 / 4000) ** 0.5
    assert bool(((spread - covariance.diagonal()).abs() <= error + 1e-12).all())


def test_an_outlier_says_nothing_of_the_physics_where_tails_are_heavy() -> None:
    record = small_record((40,))
    row = int(np.flatnonzero(~np.isnan(record.targets[:, 0]))[5])
    model = trained(record, **KINDS["heavy tails"])
    spreads = []
    for value in (40.0, np.nan):
        record.targets[row, 0] = value
        one = Record(record.times, record.series, record.targets)
        factor = fit_posterior(model, one, seed=0).factor
        spreads.append((factor @ factor.mT).diagonal().sqrt())
    # One entry of 32 counts or does not, and draws are shrunk in steps of 1/64 by four of them.
    np.testing.assert_allclose(spreads[0], spreads[1], rtol=0.3, atol=1e-9)


def test_many_rows_are_counted_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(laplace, "_ROWS", 40)
    record = small_record((100, 20))
    cut, share = laplace.curvature_rows(record, seed=0)
    assert int(cut.observed.sum()) <= 80
    seen = int((~np.isnan(record.targets)).sum())
    assert share * int(cut.observed.sum()) == pytest.approx(seen)
    posterior = fit_posterior(small_model(record, modes=2), record, seed=0)
    assert bool(posterior.factor.isfinite().all())


def test_threads_do_not_see_each_others_parameters(monkeypatch: pytest.MonkeyPatch) -> None:
    record = small_record()
    model = small_model(record, modes=1)
    alone = fit_posterior(model, record, seed=0)
    before = flat_parameters(model)
    plain = Quantity.forward

    def slow(self: Quantity) -> Tensor:
        time.sleep(1e-3)  # others run meanwhile
        return plain(self)

    monkeypatch.setattr(Quantity, "forward", slow)
    threads = torch.get_num_threads()
    torch.set_num_threads(4)
    try:
        together = fit_posterior(model, record, seed=0)
    finally:
        torch.set_num_threads(threads)
    assert torch.equal(flat_parameters(model), before)
    np.testing.assert_allclose(together.factor, alone.factor, rtol=1e-9, atol=1e-12)


@pytest.fixture(scope="module")
def moved_springs() -> FittedMarkov:
    """Two springs: their frequencies are known a thousand times as well as the force is."""
    simulated = springs(2)
    recipe = dlfm.MarkovDLFM(greens_function=dlfm.SecondOrder(0.5, 1.5), level=False)
    model = dlfm.DeepLFMRegressor(recipe, dlfm.Training(steps=100), progress=False)
    fitted = model.fit(simulated.times, simulated.values).fitted_
    assert isinstance(fitted, FittedMarkov)
    fitted.model.requires_grad_(True)
    return fitted


def test_the_least_known_direction_of_stiff_physics_is_found(moved_springs: FittedMarkov) -> None:
    """Forward differences made its curvature negative, which says nothing."""
    model, record = moved_springs.model, moved_springs.record
    rows = laplace._Rows(record, record.whole(), None, 1.0, "auto")
    found = torch.linalg.eigvalsh(laplace._curvature(model, rows))
    expected = torch.linalg.eigvalsh(hessian(model, record))
    assert expected[0] > 0
    assert expected[-1] > 1e4 * expected[0]
    torch.testing.assert_close(found, expected, rtol=0.01, atol=0.0)


def test_how_wide_a_belief_is_does_not_depend_on_luck(
    moved_springs: FittedMarkov, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A draw that is long by chance made the one loose direction up to three times too narrow."""
    model, record = moved_springs.model, moved_springs.record
    least = torch.linalg.eigvalsh(hessian(model, record))[:2]
    monkeypatch.setattr(laplace, "_LOOSE", float(least.mean()))
    factors = [fit_posterior(model, record, seed).factor for seed in (0, 2, 7)]
    for other in factors[1:]:
        torch.testing.assert_close(other @ other.mT, factors[0] @ factors[0].mT)


@pytest.mark.parametrize(("count", "as_drawn"), [(1, False), (8, False), (9, True), (0, True)])
def test_few_numbers_are_looked_at_both_ways(count: int, as_drawn: bool) -> None:
    draws = torch.randn(4, count, generator=torch.Generator().manual_seed(0)).double()
    found = laplace._usual_draws(draws)
    assert torch.equal(found, draws) == as_drawn
    if not as_drawn:
        torch.testing.assert_close(found[:2], -found[2:])
        torch.testing.assert_close(found.square().sum(1), torch.full((4,), float(count)).double())
