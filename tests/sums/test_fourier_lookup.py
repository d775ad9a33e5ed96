"""A Fourier layer of first order from tables against its waves as written, in float64."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import pytest
import torch
from torch import Tensor

from deeplfm.sums.c import fourier as compiled
from deeplfm.sums.c import library
from deeplfm.sums.torch import fourier_lookup
from written_sums import fourier_as_written


class Path(NamedTuple):
    """A way to tables, and its errors as shares of a wave and of its slope."""

    function: Callable[..., Tensor | None]
    values: float
    slopes: float


# Lagrange over six nodes 0.35 radians apart: 0.35^6 · (1·3·5/2^3)² / 6! of a wave, and of its
# slope a bound by the same polynomial's derivative, which has six factors per spacing. Over eight
# nodes 0.4 radians apart: 0.4^8 · (1·3·5·7/2^4)² / 8!.
SIX, EIGHT = 0.35**6 * (15 / 8) ** 2 / 720, 0.4**8 * (105 / 16) ** 2 / 40320
PATHS = {
    "torch": Path(fourier_lookup.first_order_fourier_sum, SIX, 6 / 0.35 * SIX),
    "compiled": Path(compiled.first_order_fourier_sum, EIGHT, 8 / 0.4 * EIGHT),
}
ROUNDING = 3e-7  # of float32, times the phase


class Sizes(NamedTuple):
    samples: int
    points: int
    groups: int
    each: int  # outputs of a group
    own: int
    shared: int
    forces: int
    waves: int


CASES = [
    Sizes(3, 300, 2, 1, 2, 1, 1, 7),
    Sizes(3, 300, 1, 2, 2, 2, 2, 5),
    Sizes(2, 600, 2, 2, 1, 0, 2, 3),
    Sizes(1, 600, 1, 1, 1, 1, 1, 3),
    Sizes(4, 50, 3, 1, 0, 2, 1, 4),
    Sizes(4, 50, 1, 3, 0, 1, 1, 4),
]


def arguments(size: Sizes) -> list[Tensor]:
    generator = torch.Generator().manual_seed(size.points + size.waves)

    def uniform(*shape: int, low: float = -1, high: float = 1) -> Tensor:
        return low + (high - low) * torch.rand(shape, generator=generator)

    inputs, outputs = size.own + size.shared, size.groups * size.each
    return [
        uniform(size.samples, size.points, size.own, low=-3, high=3),
        uniform(size.points, size.shared, low=0, high=3),
        uniform(size.groups, size.forces, size.waves, inputs, low=-5, high=5),
        uniform(size.groups, inputs, low=1, high=3),
        uniform(size.groups, inputs, size.forces),
        uniform(size.samples, outputs, 2 * size.forces * size.waves),
        uniform(outputs),
    ]


@pytest.fixture(params=PATHS)
def path(request: pytest.FixtureRequest) -> Path:
    if request.param == "compiled" and not library.is_built():
        pytest.skip("no compiled kernels here")
    return PATHS[request.param]


def from_tables(path: Path, x: Tensor, shared: Tensor, *others: Tensor) -> Tensor:
    own, alike = (part if part.shape[-1] else None for part in (x, shared))
    found = path.function(own, alike, *others)
    assert found is not None
    return found


def gradients(values: Tensor, leaves: Sequence[Tensor], along: Tensor) -> list[Tensor]:
    found = torch.autograd.grad(values, leaves, along.to(values), allow_unused=True)
    return [
        torch.zeros_like(leaf) if one is None else one
        for one, leaf in zip(found, leaves, strict=True)
    ]


def compare(path: Path, given: list[Tensor]) -> None:
    """Values and gradients; what a unit of error of each wave adds up to, from magnitudes alone."""
    fast = [one.clone().requires_grad_(k != 1) for k, one in enumerate(given)]
    slow = [one.double().requires_grad_(k != 1) for k, one in enumerate(given)]
    got, expected = from_tables(path, *fast), fourier_as_written(*slow)
    x, shared, omega, decay, amplitude, weights, _ = (one.double().abs() for one in given)
    farthest = max(float(part.max()) for part in (x, shared) if part.numel())
    fastest = float(torch.maximum(omega.max(), decay.max()))
    rounding = ROUNDING * (1 + fastest * farthest)
    # A wave is at most |a| / (√R γ). Per unit of ω or γ its answer changes by at most 1/γ of
    # itself, and the wave by |x|; ω is in one pair of waves, γ and a are in all of an input.
    slowest, root = float(decay.min()), omega.shape[2] ** 0.5
    largest, width = float(amplitude.max()) / (root * slowest), omega.shape[-1]
    one, all_of_them = 2 * float(weights.max()), float(weights.sum(-1).max())
    assert (got - expected).abs().max() <= width * largest * all_of_them * (path.values + rounding)
    along = 0.5 + torch.rand(got.shape, generator=torch.Generator().manual_seed(0))
    leaves = [(a, b) for k, (a, b) in enumerate(zip(fast, slow, strict=True)) if k != 1]
    by_fast = gradients(got, [a for a, _ in leaves], along)
    by_slow = gradients(expected, [b for _, b in leaves], along)
    everywhere, change = float(along.abs().sum()), farthest + 1 / slowest
    sizes = [
        largest * one * change,
        largest * all_of_them * change,
        all_of_them / (root * slowest),
        largest * width,
        1.0,
    ]
    allowed = [everywhere * size * (path.values + rounding) for size in sizes]
    of_points = float(along.abs().sum(-1).max()) * largest * all_of_them * fastest
    for found, exact, error in zip(
        by_fast, by_slow, [of_points * (path.slopes + rounding), *allowed], strict=True
    ):
        assert bool(((found - exact).abs() <= error).all())
        assert not exact.any() or exact.abs().max() > 3 * error  # or nothing would be tested


@pytest.mark.parametrize("size", CASES)
def test_values_and_gradients(path: Path, size: Sizes) -> None:
    compare(path, arguments(size))


def test_on_one_side_of_the_origin(path: Path) -> None:
    x, *others = arguments(CASES[0])
    compare(path, [x.abs(), *others])


def test_waves_in_pieces_and_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fourier_lookup, "_PIECE", 64)
    monkeypatch.setattr(fourier_lookup, "_KEPT", 0)
    compare(PATHS["torch"], arguments(Sizes(3, 300, 2, 1, 1, 2, 1, 5)))


def test_the_same_function_wherever_it_is_evaluated(path: Path) -> None:
    x, shared, *others = arguments(Sizes(3, 600, 2, 1, 2, 1, 1, 7))
    part = from_tables(path, x[:, 40:590], shared[40:590], *others)
    whole = from_tables(path, x, shared, *others)
    torch.testing.assert_close(part, whole[:, 40:590], rtol=0, atol=2e-5)  # rounding alone


def test_when_compiled_tables_are_made() -> None:
    """On as many sides of the origin as there are points; not for few of them, nor too far."""
    x, _, omega, decay, *_ = arguments(CASES[0])
    both, one = compiled._grid_for(x, omega, decay), compiled._grid_for(x.abs(), omega, decay)
    assert both is not None
    assert one is not None
    assert (both.sides, one.sides) == (2, 1)
    assert compiled._grid_for(x[:, :5], omega, decay) is None
    for spoilt in (torch.nan, torch.inf, 1e7):
        x[0, 0, 0] = spoilt
        assert compiled._grid_for(x, omega, decay) is None


def test_what_is_left_to_plain_sums() -> None:
    x, shared, *others = arguments(CASES[0])
    assert (
        fourier_lookup.first_order_fourier_sum(x[:, :5], shared[:5], *others) is None
    )  # few points
    assert (
        fourier_lookup.first_order_fourier_sum(x, shared - 1, *others) is None
    )  # before the origin
    assert (
        fourier_lookup.first_order_fourier_sum(x, shared.clone().requires_grad_(), *others) is None
    )
    assert (
        fourier_lookup.first_order_fourier_sum(*(one.double() for one in (x, shared, *others)))
        is None
    )
    for spoilt in (torch.nan, torch.inf, 1e7):
        x[0, 0, 0] = spoilt
        assert fourier_lookup.first_order_fourier_sum(x, shared, *others) is None


def test_slopes_of_a_long_table_are_as_cheap_as_the_table() -> None:
    """A matrix of all pairs of nodes would have 320 GB here. The error is h⁷/140 per cell."""
    step = 0.35
    phases = step * torch.arange(200_000, dtype=torch.float64)
    found = fourier_lookup._slopes(torch.sin(phases)[None])[0, 3:-3]
    torch.testing.assert_close(
        found, step * torch.cos(phases)[3:-3], rtol=0, atol=1.01 * step**7 / 140
    )
