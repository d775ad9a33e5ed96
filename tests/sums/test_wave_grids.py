"""Tables of sums of waves against the sums themselves, in float64: values and gradients."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from deeplfm.sums.torch.wave_grids import grid_for, grid_sum
from deeplfm.sums.wave_sum import input_sums

# Lagrange over six nodes 0.35 radians apart: 0.35^6 · (1·3·5/2^3)² / 6! of a wave, and of its
# slope a bound by the same polynomial's derivative, which has six factors per spacing.
VALUES = 0.35**6 * (15 / 8) ** 2 / 720
SLOPES = 6 / 0.35 * VALUES
ROUNDING = 3e-7  # of float32, times the phase


def arguments(
    seed: int, samples: int, points: int, inputs: int, groups: int, each: int, sides: int
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator)

    waves = 7
    x = 2 * normal(samples, points, inputs)
    omega = 5 * normal(groups, inputs, waves)
    shape = (sides, samples, groups * each, inputs, waves)
    return x, omega, normal(*shape), normal(*shape)


@settings(max_examples=30, deadline=None)
@given(
    st.integers(0, 10**6),
    st.integers(2, 4),
    st.integers(200, 400),
    st.integers(1, 3),
    st.integers(1, 3),
    st.integers(1, 2),
    st.integers(1, 2),
)
def test_a_table_gives_the_sums_and_their_gradients(
    seed: int, samples: int, points: int, inputs: int, groups: int, each: int, sides: int
) -> None:
    given_ = arguments(seed, samples, points, inputs, groups, each, sides)
    grid = grid_for(given_[0], given_[1], sides)
    if grid is None:  # a frequency too high for so few points
        return
    fast = [one.clone().requires_grad_() for one in given_]
    slow = [one.double().requires_grad_() for one in given_]
    got = grid_sum(fast[0], fast[1], fast[2], fast[3], grid)
    expected = input_sums(slow[0], slow[1][None], slow[2], slow[3])
    phase = float(given_[0].abs().max() * given_[1].abs().max())
    weights = float((given_[2].abs() + given_[3].abs()).sum((-2, -1)).max())
    assert (got - expected).abs().max() <= weights * (VALUES + ROUNDING * (1 + phase))
    along = torch.randn(got.shape, generator=torch.Generator().manual_seed(seed))
    by_fast = torch.autograd.grad(got, fast, along)
    by_slow = torch.autograd.grad(expected, slow, along.double())
    # What a unit of error of each wave adds up to in a gradient: of a point one sum of weights
    # times frequencies, of a weight or a frequency a sum over points.
    fastest, farthest = float(given_[1].abs().max()), float(given_[0].abs().max())
    total = float(along.abs().sum())
    biggest = float(torch.maximum(given_[2].abs().max(), given_[3].abs().max()))
    allowed = SLOPES + ROUNDING * (1 + phase)
    sizes = [
        float(along.abs().max()) * weights * given_[2].shape[2] * fastest,
        2 * total * biggest * farthest,
        total,
        total,
    ]
    for one, other, size in zip(by_fast, by_slow, sizes, strict=True):
        assert (one - other).abs().max() <= size * allowed


def test_the_same_function_wherever_it_is_evaluated() -> None:
    x, omega, even, odd = arguments(0, 3, 600, 2, 2, 1, 2)
    whole_grid, part_grid = (grid_for(part, omega, 2) for part in (x, x[:, 40:590]))
    assert whole_grid is not None
    assert part_grid is not None
    whole = grid_sum(x, omega, even, odd, whole_grid)
    part = grid_sum(x[:, 40:590], omega, even, odd, part_grid)
    torch.testing.assert_close(part, whole[:, 40:590], rtol=0, atol=2e-5)  # rounding alone


@pytest.mark.parametrize(
    "spoilt",
    [torch.nan, torch.inf, 1e6],
    ids=["not a number", "infinite", "too far for a table"],
)
def test_what_no_table_can_hold_goes_without(spoilt: float) -> None:
    x, omega, even, odd = arguments(0, 3, 300, 2, 1, 2, 2)
    x[0, 0, 0] = spoilt
    assert grid_for(x, omega, 2) is None
    got = input_sums(x, omega[None], even, odd)
    assert bool(got[1:].isfinite().all())


def test_few_points_are_summed_directly() -> None:
    x, omega, *_ = arguments(0, 2, 5, 2, 1, 2, 2)
    assert grid_for(x, omega, 2) is None
    assert grid_for(x.double(), omega.double(), 2) is None
