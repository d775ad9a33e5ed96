"""The compiled kernels of a first-order Fourier layer from its zero state, as written."""

import pytest
import torch
from torch import Tensor

from deeplfm.sums.c import library
from deeplfm.sums.c.fourier import first_order_fourier_sum
from kernels_as_written import compare, uniform
from written_sums import fourier_as_written

if not library.is_built():
    pytest.skip("no compiled kernels here", allow_module_level=True)


def fourier_arguments(
    samples: int, points: int, groups: int, each: int, own: int, shared: int, forces: int,
    waves: int,
) -> list[Tensor]:  # fmt: skip
    inputs, outputs = own + shared, groups * each
    return [
        uniform(samples, points, own, low=-3, high=3),
        uniform(points, shared, low=-3, high=3, seed=4),
        uniform(groups, forces, waves, inputs, low=-5, high=5),
        uniform(groups, inputs, low=0.3, high=3),
        uniform(groups, inputs, forces, seed=1),
        uniform(samples, outputs, 2 * forces * waves, seed=2),
        uniform(outputs, seed=3),
    ]


def fourier(x: Tensor, shared: Tensor, *others: Tensor) -> Tensor:
    """No such inputs are none; a sum of nothing keeps a gradient for them."""
    own, alike = (part if part.shape[-1] else None for part in (x, shared))
    sums = first_order_fourier_sum(own, alike, *others, tables=False)
    return sums + x.sum() * 0 + shared.sum() * 0


# Rounding grows with the number of waves and inputs and, in gradients, of points.
@pytest.mark.parametrize(
    "sizes",
    [
        (2, 37, 3, 1, 2, 1, 1, 3),
        (2, 5, 1, 2, 0, 2, 2, 3),
        (9, 33, 2, 2, 1, 1, 2, 2),
        (1, 1, 1, 1, 1, 0, 1, 1),
        (3, 300, 1, 3, 1, 1, 1, 7),
    ],
)
def test_from_the_zero_state(sizes: tuple[int, int, int, int, int, int, int, int]) -> None:
    _, _, _, each, own, shared, forces, waves = sizes
    roundings = 16 * (forces * waves * (own + shared) * each + 5)
    compare(
        fourier,
        fourier_as_written,
        fourier_arguments(*sizes),
        torch.float32,
        roundings,
        device="cpu",
    )


def test_strided_arguments() -> None:
    """Columns of a wider tensor, transposed ones, and a gradient of stride 0."""
    x, shared, omega, *others = fourier_arguments(2, 5, 2, 1, 2, 1, 2, 2)

    def strided(function, x, shared, omega, *others):  # type: ignore[no-untyped-def]
        inputs = x.transpose(0, 1).contiguous().transpose(0, 1)[..., 1:3]
        omega = omega.transpose(0, 3).contiguous().transpose(0, 3)
        return function(inputs, shared, omega, *others).sum((0, 2))

    compare(
        lambda *parts: strided(fourier, *parts),
        lambda *parts: strided(fourier_as_written, *parts),
        [torch.cat((x, x), dim=-1), shared, omega, *others],
        torch.float32,
        roundings=256,
        device="cpu",
    )


def test_near_the_origin_nothing_cancels() -> None:
    """The response of a slow ODE starts as x: float32 keeps its digits."""
    x = torch.tensor([-1e-5, -1e-7, 1e-7, 1e-5])[None, :, None]
    one = torch.ones(1, 1, 1, 1)
    weights = torch.tensor([1.0, 0.0])[None, None]
    found = first_order_fourier_sum(x, None, one, one[0, 0], one[0], weights, torch.zeros(1))
    # ∫_0^x e^{-(x-τ)} cos τ dτ = x - x²/2 + …, the same backwards but for its sign
    wanted = x.double() - torch.sign(x) * x.double() ** 2 / 2
    torch.testing.assert_close(found.double(), wanted, rtol=1e-6, atol=0)


def test_nan_stays_nan() -> None:
    """Training finds a point that is no number by the loss."""
    own, shared, *parts = (part.float() for part in fourier_arguments(2, 20, 1, 1, 1, 1, 1, 3))
    own[0, 3] = torch.nan
    found = first_order_fourier_sum(own, shared, *parts)
    assert found.isnan().nonzero().tolist() == [[0, 3, 0]]
