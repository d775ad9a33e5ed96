"""A clock against plain integrals, and a system that turns by it against one at other times."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from deeplfm.statespace import Observations, System
from deeplfm.statespace.bridges import PriorPaths
from deeplfm.statespace.clock import Clock
from deeplfm.statespace.timeline import order_in_time

KNOTS, FASTER = np.array([0.0, 1.0, 2.5, 4.0]), np.array([0.05, -0.02, 0.04])
CLOCK = Clock((KNOTS,), (FASTER,))


def by_quadrature(time: float) -> float:
    """∫ c from the first knot, by a fine midpoint rule; c goes on beyond the outer knots."""
    edges = np.linspace(KNOTS[0], time, 200_001)
    middle = (edges[1:] + edges[:-1]) / 2
    c = FASTER[np.clip(np.searchsorted(KNOTS, middle) - 1, 0, 2)]
    return float((c * np.diff(edges)).sum())


@pytest.mark.parametrize("time", [-1.3, 0.0, 0.4, 1.0, 2.0, 2.5, 3.9, 4.0, 6.5])
def test_ahead_is_the_integral(time: float) -> None:
    # The midpoint rule is off by the widths of two cells at each jump of c.
    assert CLOCK.ahead(np.array([time]), 0)[0] == pytest.approx(by_quadrature(time), abs=1e-5)


@given(st.lists(st.floats(-2, 6), min_size=1, max_size=12))
def test_steps_add_up_to_what_the_clock_is_ahead(times: list[float]) -> None:
    at = np.sort(np.array(times))
    total = np.cumsum(CLOCK.of_steps(at, 0) * np.diff(at, prepend=at[0]))
    np.testing.assert_allclose(total, CLOCK.ahead(at, 0) - CLOCK.ahead(at[:1], 0), atol=1e-12)


def test_steps_inside_of_a_window_are_exactly_alike() -> None:
    """So that their moves are computed once: knots are times of rows."""
    at = np.arange(0, 41) / 10
    found = CLOCK.of_steps(at, 0)
    assert set(found[1:]) == set(FASTER)
    assert (found[1:11] == FASTER[0]).all()


def test_a_series_without_a_clock_is_steady() -> None:
    at = np.array([0.0, 1.0, 5.0])
    empty = Clock((KNOTS, np.zeros(0)), (FASTER, np.zeros(0)))
    for series in (1, 2):
        assert (empty.ahead(at, series) == 0).all()
        assert (empty.of_steps(at, series) == 0).all()


def test_without_decay_a_clock_is_another_time() -> None:
    """An oscillator that never forgets sees only how far its clock is."""
    times = np.sort(np.random.default_rng(0).uniform(0, 4, 15))
    warped = times + CLOCK.ahead(times, 0)
    loadings = torch.tensor([[0.8, 0.3]], dtype=torch.float64)
    own = torch.tensor([0.0], dtype=torch.float64), torch.tensor([3.0], dtype=torch.float64)
    system = System(*own, None, loadings, torch.tensor([0.1], dtype=torch.float64))
    targets = torch.from_numpy(np.random.default_rng(1).standard_normal((1, 15, 1)))
    seen, design = torch.ones(1, 15, 1, dtype=torch.bool), torch.zeros(1, 15, 1, 0).double()

    def evidence(at: np.ndarray, faster: np.ndarray | None) -> torch.Tensor:
        given = None if faster is None else torch.from_numpy(faster)[None]
        rows = Observations(order_in_time(at), targets, seen, design, faster=given)
        return system.evidence(rows)

    found = evidence(times, CLOCK.of_steps(times, 0))
    torch.testing.assert_close(found, evidence(warped, None), rtol=1e-11, atol=0)
    assert not torch.allclose(found, evidence(times, None), rtol=1e-3)


def test_paths_turn_by_the_clock() -> None:
    """Their covariance is that of the filter: e^{-λτ} cos ω(τ + what the clock gained)."""
    own = torch.tensor([0.3], dtype=torch.float64), torch.tensor([5.0], dtype=torch.float64)
    count, times = 20_000, np.array([0.5, 1.7, 3.0])
    paths = PriorPaths(
        *own,
        None,
        num_samples=count,
        seed=0,
        origin=0.0,
        scale=4.0,
        ahead=lambda at: CLOCK.ahead(at, 0),
    )
    x = paths(times)[..., 0].numpy()
    ahead = times + CLOCK.ahead(times, 0)
    lag, turn = np.abs(times[:, None] - times), 5.0 * (ahead[:, None] - ahead)
    wanted = np.exp(-0.3 * lag) * np.cos(turn)
    # A product of two standard normals has a variance of at most 2.
    assert np.abs(x.T @ x / count - wanted).max() < 5 * np.sqrt(2 / count)
