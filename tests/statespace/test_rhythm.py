"""The strongest rhythm of a state: its phase against draws, the cost of its path against a KL."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from deeplfm.statespace import Observations, Record, System
from deeplfm.statespace.rhythm import (
    path_cost,
    path_sites,
    phase_moments,
    position,
    rhythms,
    strongest,
)

f64 = torch.float64


def beating() -> System:
    """A strong mode and its neighbour, a weak one far off; the second output sees them best."""
    loadings = torch.tensor([[0.3, 0.1, 0.2, 0.1, 0.0, 0.1], [0.8, 0.3, 0.1, -0.4, 0.2, 0.0]])
    return System(
        torch.tensor([0.02, 0.05, 0.1], dtype=f64),
        torch.tensor([1.0, 1.1, 2.2], dtype=f64),
        None,
        loadings.double(),
        torch.tensor([0.01, 0.02], dtype=f64),
    )


def some_rows(count: int = 40, seed: int = 0) -> Observations:
    rng = np.random.default_rng(seed)
    times = np.cumsum(rng.uniform(0.1, 0.7, count))
    targets = np.stack([np.sin(times), np.cos(times + 0.3)], 1)
    targets[rng.uniform(size=targets.shape) < 0.2] = np.nan
    targets[10:14] = np.nan
    cut = Record(times, np.zeros(count, dtype=np.int64), targets).whole()
    return Observations(
        cut.timeline, cut.targets, cut.observed, torch.zeros(1, count, 2, 0).double()
    )


def covariance(system: System, times: Tensor) -> Tensor:
    """Prior covariance [N, E, N, E] of the outputs of oscillators."""
    count = len(system.decay)
    a = torch.complex(system.loadings[:, :count], system.loadings[:, count:])
    lag = times[:, None] - times
    wave = torch.exp(
        -system.decay[:, None, None] * lag.abs() + 1j * system.frequency[:, None, None] * lag
    )
    return torch.einsum("dk,ek,knm->ndme", a.conj(), a, wave).real


def times_of(rows: Observations) -> Tensor:
    return rows.timeline.steps[rows.timeline.step[0]].cumsum(0)


def test_the_rhythm_is_of_modes_near_the_strongest_one() -> None:
    system = beating()
    found = strongest(system)
    assert found[:, [2, 5]].abs().max() == 0  # far off
    np.testing.assert_allclose(found[0, :2], system.loadings[1, :2])
    np.testing.assert_allclose(found[1, 3:5], found[0, :2])  # a quarter of a turn later
    np.testing.assert_allclose(found[1, :2], -found[0, 3:5])


def test_the_highest_peak_is_a_rhythm_beside_a_mode_that_is_strong_and_broad() -> None:
    plain = beating()
    assert len(rhythms(plain)) == 1
    loadings = plain.loadings.clone()
    loadings[:, 2] = 3.0
    system = replace(plain, loadings=loadings, decay=torch.tensor([0.02, 0.05, 5.0], dtype=f64))
    broad, sharp = rhythms(system)
    assert torch.equal(broad, strongest(system))
    assert broad[0, 2] == 3
    assert broad[:, [0, 1, 3, 4]].abs().max() == 0
    assert sharp[:, [2, 5]].abs().max() == 0
    assert sharp[0, 0] != 0


def test_phases_are_those_of_draws_of_the_path() -> None:
    system, rows = beating(), some_rows()
    directions = strongest(system)
    phase, variance = phase_moments(system, rows, directions)
    loadings = torch.cat((system.loadings, directions))
    both = replace(system, loadings=loadings, noise=system.noise.repeat(2))
    every = covariance(both, times_of(rows))
    seen = rows.observed[0].reshape(-1)
    K = every[:, :2, :, :2].reshape(80, 80)[seen][:, seen]
    K = K + torch.diag(system.noise.repeat(40)[seen])
    across = every[:, 2:, :, :2].reshape(80, 80)[:, seen]
    mean = across @ torch.linalg.solve(K, rows.targets[0].reshape(-1)[seen])
    spread = every[:, 2:, :, 2:].reshape(80, 80) - across @ torch.linalg.solve(K, across.mT)
    spread = (spread + spread.mT) / 2 + 1e-10 * torch.eye(80)
    drawn = np.random.default_rng(0).multivariate_normal(mean.numpy(), spread.numpy(), 4000)
    angles = np.arctan2(drawn[:, 1::2], drawn[:, ::2])
    apart = np.angle(np.exp(1j * (angles - phase[0].numpy())))
    size = variance[0].sqrt().numpy()
    sure = size < 0.3  # where a turn is long beside what is not known
    assert sure.sum() > 30
    # A normal phase is off by the order of its variance; draws by their number.
    assert (np.abs(apart.mean(0))[sure] < size[sure] * (size[sure] + 0.1)).all()
    np.testing.assert_allclose(apart.std(0)[sure], size[sure], rtol=0.15)


def test_the_cost_of_a_path_is_a_divergence() -> None:
    system, rows = beating(), some_rows()
    directions = strongest(system)
    found = float(path_cost(system, rows, directions))
    path = path_sites(system, rows, directions)
    alone, sites = path.system, path.sites
    assert sites.scale is not None
    prior = covariance(alone, times_of(rows)).reshape(80, 80)
    seen = sites.observed[0].reshape(-1)
    K = prior[seen][:, seen] + torch.diag(sites.scale[0].reshape(-1)[seen])
    across = prior[:, seen]
    mean = across @ torch.linalg.solve(K, sites.targets[0].reshape(-1)[seen])
    # Of the state itself: outputs of two modes have four numbers per row, of which two are seen.
    inverse = torch.linalg.inv(K)
    information = across.mT @ torch.linalg.solve(prior + 1e-12 * torch.eye(80), across)
    trace = -(inverse @ information).diagonal().sum()
    log_ratio = torch.logdet(K) - sites.scale[0].reshape(-1)[seen].log().sum()
    shift = mean @ torch.linalg.solve(prior + 1e-12 * torch.eye(80), mean)
    assert found == pytest.approx(float(trace + log_ratio + shift) / 2, rel=1e-5)
    assert found > 0


def test_sites_give_a_path_its_mean_and_its_usual_spread() -> None:
    system, rows = beating(), some_rows(120)
    directions = strongest(system)
    meant, covariances = position(system, rows, directions)
    path = path_sites(system, rows, directions)
    seen = path.sites.observed
    mean, variance = path.moments.mean[seen], path.moments.variance[seen]
    spread = covariances.diagonal(dim1=2, dim2=3)[seen]
    assert float((mean - meant[seen]).square().mean()) < 0.1 * float(spread.mean())
    assert float(variance.mean()) == pytest.approx(float(spread.mean()), rel=1e-3)


def test_nothing_is_to_be_paid_for_a_path_that_is_not_known() -> None:
    """Rows that say nothing leave the path as it was before."""
    system, rows = beating(), some_rows()
    deaf = replace(system, noise=torch.full((2,), 1e9, dtype=f64))
    assert abs(float(path_cost(deaf, rows, strongest(system)))) < 1e-3
