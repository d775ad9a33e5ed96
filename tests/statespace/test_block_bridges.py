"""Prior paths of small linear SDEs: exact covariance, singular noise, both sides of the origin."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from deeplfm.statespace.block_rungs import Ladder, divide, independent_parts, square_root
from deeplfm.statespace.bridges import PriorPaths
from deeplfm.statespace.keyed_normals import standard_normals
from deeplfm.sums.markov_smooth import markov_smooth
from impulses import draw_impulses
from linear_blocks import (
    LinearBlock,
    covariance,
    integrated_walk,
    matern32,
    one_noise_for_two,
    ornstein_uhlenbeck,
    side_by_side,
    two_levels_of_one_noise,
    walk,
)

NONE = torch.empty(0, dtype=torch.float64)
KINDS = {
    "level": (ornstein_uhlenbeck(1.0), True),
    "quick level": (ornstein_uhlenbeck(1e3, 4.0), True),
    "slow level": (ornstein_uhlenbeck(1e-6), True),
    "walk": (walk(2.0), False),
    "walk from somewhere": (walk(0.1, 3.0), False),
    "integrated walk": (integrated_walk(), False),
    "one noise for two": (one_noise_for_two(), False),
    "one noise for two levels": (two_levels_of_one_noise(1.0, 3.0), True),
    "smooth": (matern32(1.0), True),
    "quick and smooth": (matern32(300.0), True),
    "slow and smooth": (matern32(0.003), True),
}


def paths(block: LinearBlock, samples: int, origin: float = 0.0, scale: float = 1.0) -> PriorPaths:
    return PriorPaths(NONE, NONE, block, num_samples=samples, seed=1, origin=origin, scale=scale)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=8)
@given(
    st.lists(st.floats(-5, 5) | st.floats(0, 1e-5) | st.floats(-99, 99), min_size=1, max_size=4),
    st.floats(-3, 3),
    st.floats(-1, 1.5),
)
def test_the_covariance_is_exact(
    kind: str, times: list[float], origin: float, log_scale: float
) -> None:
    block, stationary = KINDS[kind]
    at = np.array(sorted(set(times)))
    with pytest.MonkeyPatch.context() as patch:
        draw_impulses(patch, 1500)
        drawn = paths(block, 1500, origin, 10.0**log_scale)
        impulses = drawn(at).numpy()
    assert all(part.ladder.stationary == stationary for part in drawn.blocks)
    exact = covariance(block, at - origin, stationary)
    size = np.sqrt(np.einsum("inin->in", exact)).max(1)  # of each state, over these times
    size += np.sqrt(block.diffusion(torch.tensor([10.0**log_scale]).double()).numpy()[0].diagonal())
    error = np.abs(np.einsum("sni,smj->injm", impulses, impulses) - exact)
    # What is not drawn is 1e-12 of a state's variance; 2^20 doublings lose 2^20 roundings. States
    # that share a noise cannot be told apart over short steps, which costs more.
    bound = 2e-8 if kind == "one noise for two levels" else 2e-10
    assert (error <= bound * size[:, None, None, None] * size[:, None] + 1e-300).all()


def test_moments_of_many_draws() -> None:
    block = side_by_side(ornstein_uhlenbeck(2.0), walk(0.7), integrated_walk(3.0), matern32(4.0))
    at, samples = np.array([0.0, 0.013, 0.6, 0.61, 1.5, 9.0]), 20_000
    states = paths(block, samples)(at).numpy()
    drawn = np.einsum("sni,smj->injm", states, states) / samples
    exact = covariance(block, at, False)  # after the origin stationary parts are no exception
    variance = np.einsum("inin->in", exact)
    error = np.sqrt((variance[:, :, None, None] * variance + exact**2) / samples)
    assert (np.abs(drawn - exact) <= 5 * error + 1e-300).all()


def test_before_the_origin() -> None:
    block = side_by_side(walk(1.0, 2.0), ornstein_uhlenbeck(1.0), integrated_walk())
    states = paths(block, 5, origin=3.0)(np.array([-1e4, 2.0, 3.0, 3.5]))
    held = [0, 2, 3]
    assert (states[:, 0, held] == states[:, 2, held]).all()
    assert (states[:, 1, held] == states[:, 2, held]).all()
    assert (states[:, 2, 2:] == 0).all()
    assert (states[:, 0, 1] != states[:, 2, 1]).all()
    assert (states[:, 3] != states[:, 2]).all()


@pytest.mark.parametrize("distance", [1e-12, 1e-9, 1e-6, 1e-3, 1.0])
def test_a_position_moves_with_its_velocity(distance: float) -> None:
    """x(t + d) - x(t) is the integral of v: rounding of x never gets into v, nor jumps."""
    at = np.random.default_rng(0).uniform(0.5, 7, 60)
    drawn = paths(integrated_walk(), 200)
    here, there = drawn(at), drawn(at + distance)
    step = torch.from_numpy(at + distance - at)
    jump = there[..., 1] - here[..., 1]
    mean = (there[..., 1] + here[..., 1]) / 2
    # Given both velocities the position is normal around their mean: variance d³/12.
    rest = (there[..., 0] - here[..., 0] - step * mean) / (step**3 / 12 + 1e-30).sqrt()
    assert float(rest.square().mean()) < 1 + 5 * np.sqrt(2 / 200)
    ratio = float((jump.square() / step).mean())
    assert abs(ratio - 1) < 5 * np.sqrt(2 / 200) or distance < 1e-11
    assert ratio < 2


@pytest.mark.parametrize("kind", KINDS)
def test_no_jump_at_the_ends_of_cells(kind: str) -> None:
    """The last number before a dyadic time is as close as the next one after it."""
    ends = np.array([0.25, 0.5, 0.75, 1.0, 2.0, 4.0, 3.0, 2.0**-20])
    drawn = paths(KINDS[kind][0], 50)
    at, spread = drawn(ends), drawn(ends).square().mean((0, 1)).sqrt()
    for towards in (-np.inf, np.inf):
        near = np.nextafter(ends, towards)
        # A level of decay 1000 moves by sqrt(2 · 1000 · 4e-16) = 1e-6 over such a distance.
        assert ((drawn(near) - at).abs() <= 5e-6 * spread + 1e-300).all()


@pytest.mark.parametrize("distance", [2.0**-50, 2.0**-40, 2.0**-25, 2.0**-10])
def test_what_noise_cannot_reach_stays_continuous(distance: float) -> None:
    """x_1 - x_2 changes by its derivative, across cells where both have the same noise."""
    a, b = 1.0, 3.0
    drawn = paths(two_levels_of_one_noise(a, b), 50)
    ends = np.arange(1, 2**10) / 2**10  # of cells of all levels; deeper ones are reached from them
    here, there = drawn(ends - distance), drawn(ends)
    change = (there - here) @ torch.tensor([1.0, -1.0]).double()
    slope = (there + here) / 2 @ torch.tensor([-a, b]).double()
    # Around the trapezium rule the integral of (b - a) β varies by (b - a)² d³ / 12. In cells
    # shorter than about 1e-5, whose correlation is singular to rounding, the slope is constant.
    rest = (change - distance * slope).abs()
    assert float(rest.max()) < 6 * (b - a) * np.sqrt(distance**3 / 12) + 0.1 * distance + 1e-14


def test_parts_that_nothing_connects_are_found() -> None:
    block = side_by_side(walk(), integrated_walk(), ornstein_uhlenbeck(1e5), one_noise_for_two())
    parts = independent_parts(block, 1.0)
    assert [part.tolist() for part in parts] == [[0], [1, 2], [3], [4, 5, 6]]
    stationary = [Ladder(block, part, 1.0).stationary for part in parts]
    assert stationary == [False, False, True, False]


@given(st.integers(1, 5), st.integers(0, 5), st.integers(0, 2**32), st.floats(-60, 0))
def test_roots_and_quotients_of_singular_covariances(
    size: int, rank: int, seed: int, log_step: float
) -> None:
    rng = np.random.default_rng(seed)
    graded = np.array(10.0 ** (log_step * np.arange(size) / 2))[:, None]
    factor = graded * rng.normal(size=(size, min(rank, size)))
    given = factor @ factor.T
    root = square_root(given)
    scale = np.sqrt(np.diagonal(given))
    assert (np.abs(root @ root.T - given) <= 1e-9 * scale[:, None] * scale).all()
    quotient, missed = divide(given, given)
    np.testing.assert_allclose(
        (quotient + missed) * graded.T / graded, np.eye(size), atol=1e-4, rtol=0
    )


def test_draws_given_data_are_those_of_the_smoother() -> None:
    """Matheron's rule: a path, plus what the smoother makes of the data less the path and noise."""
    rng, samples, double = np.random.default_rng(0), 4000, torch.float64
    decay, frequency = torch.tensor([[0.3, 2.0], [5.0, -1.0]], dtype=double)
    block = side_by_side(walk(0.5), matern32(2.0))
    at = np.sort(rng.uniform(0, 3, 12))
    at[0] = 0.0
    loadings = torch.from_numpy(rng.normal(size=(2, 7)))
    noise = torch.tensor([0.1, 0.4], dtype=double)
    step = torch.from_numpy(np.diff(at, prepend=0.0))
    observed = torch.from_numpy(rng.uniform(size=(1, 12, 2)) < 0.6)
    readout = torch.from_numpy(rng.normal(size=(3, 7)))
    data = torch.from_numpy(rng.normal(size=(1, 12, 2, 1)))

    def smoothed(targets: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        mean, variance, _, _ = markov_smooth.by(
            "plain",
            *(step[:, None] * decay, step[:, None] * frequency),
            *(block.transition(step), block.diffusion(step), block.start()),
            *(loadings, noise.expand(1, 1, 2), targets),
            *(torch.arange(12, dtype=torch.int32)[None], observed, readout),
        )
        return mean[0], variance[0]

    prior = PriorPaths(decay, frequency, block, num_samples=samples, seed=4, origin=0.0, scale=3.0)
    keys = (np.arange(samples)[:, None, None], np.arange(12)[:, None], np.arange(2))
    errors = torch.from_numpy(standard_normals(4, *keys)) * noise.sqrt()
    drawn_data = prior.functions(at, loadings) + errors
    correction, _ = smoothed(data - drawn_data.permute(1, 2, 0)[None])
    draws = prior.functions(at, readout) + correction.permute(2, 0, 1)
    mean, variance = smoothed(data)
    assert ((draws.mean(0) - mean[..., 0]).abs() < 5 * (variance / samples).sqrt()).all()
    assert ((draws.var(0) / variance - 1).abs() < 5 * np.sqrt(2 / samples)).all()
