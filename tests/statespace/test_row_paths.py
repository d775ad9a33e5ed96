"""Paths at rows have the covariance of the state that they are drawn from."""

import numpy as np
import pytest
import torch

from deeplfm.statespace import IntegratedWalk, System, stack_blocks
from deeplfm.statespace.clock import Clock
from deeplfm.statespace.row_paths import row_paths
from deeplfm.statespace.timeline import order_in_time

COUNT = 20_000
TIMES = np.array([0.0, 0.3, 0.4, 1.7, 1.7, 3.0])


def tensor(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def drawn(system: System, times: np.ndarray) -> np.ndarray:
    line = order_in_time(times)
    return line.rows(row_paths(system, line, COUNT, np.random.default_rng(0))[None])


def test_oscillators_have_their_covariance_at_uneven_times() -> None:
    decay, frequency = tensor(0.5, 0.1), tensor(3.0, 7.0)
    loadings = torch.tensor([[1.0, 0.3, 0.5, 0.0], [0.0, 0.7, -0.4, 1.0]], dtype=torch.float64)
    system = System(decay, frequency, None, loadings, tensor(1.0, 1.0))
    order = np.array([3, 0, 5, 1, 4, 2])
    paths = drawn(system, TIMES[order])  # in any order
    first, second = (paths[:, d] for d in (0, 1))
    apart = TIMES[order][:, None] - TIMES[order]
    a = loadings[:, :2].numpy() + 1j * loadings[:, 2:].numpy()
    rate = -decay.numpy() * np.abs(apart)[..., None] + 1j * frequency.numpy() * apart[..., None]
    for one, other, (d, e) in ((first, first, (0, 0)), (first, second, (0, 1))):
        expected = np.real(a[d].conj() * a[e] * np.exp(rate)).sum(-1)
        np.testing.assert_allclose(one @ other.T / COUNT, expected, atol=0.06)


def test_oscillators_turn_by_their_clock() -> None:
    """As in `bridges`: e^{-λτ} cos ω(τ + what the clock gained)."""
    clock = Clock((np.array([0.0, 1.0, 3.0]),), (np.array([0.3, -0.2]),))
    loadings = torch.tensor([[1.0, 0.0]], dtype=torch.float64)
    system = System(tensor(0.2), tensor(4.0), None, loadings, tensor(1.0))
    faster = torch.from_numpy(clock.of_steps(TIMES, 0))[None]
    random = np.random.default_rng(0)
    paths = row_paths(system, order_in_time(TIMES), COUNT, random, faster)[:, 0]
    ahead, apart = TIMES + clock.ahead(TIMES, 0), np.abs(TIMES[:, None] - TIMES)
    expected = np.exp(-0.2 * apart) * np.cos(4.0 * (ahead[:, None] - ahead))
    # A product of two standard normals has a variance of at most 2.
    assert np.abs(paths @ paths.T / COUNT - expected).max() < 5 * np.sqrt(2 / COUNT)


@pytest.mark.parametrize("unit", [1.0, 1e-9])
def test_blocks_move_as_they_say_in_any_unit_of_time(unit: float) -> None:
    walk = IntegratedWalk(tensor(1.0))
    none = torch.zeros(0, dtype=torch.float64)
    system = System(none, none, stack_blocks([walk]), walk.values, tensor(1.0))
    paths = drawn(system, unit * TIMES)[:, 0] / unit**1.5
    assert (paths[0] == 0).all()  # it starts at 0
    expected = TIMES**3 / 3  # of an integrated walk
    np.testing.assert_allclose(paths.var(1), expected, rtol=0.06, atol=1e-12)
    np.testing.assert_allclose(paths[3], paths[4])  # no time has passed
