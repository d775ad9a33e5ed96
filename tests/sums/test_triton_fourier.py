"""The kernels of a first-order Fourier layer from its zero state, against waves as written."""

from typing import NamedTuple

import pytest
import torch
from torch import Tensor

from kernels_as_written import BOTH, DEVICE, compare, missing_for_kernels, uniform
from written_sums import fourier_as_written

if missing_for_kernels():
    pytest.skip(missing_for_kernels(), allow_module_level=True)

from deeplfm.sums.triton.fourier import first_order_fourier_sum


class Sizes(NamedTuple):
    samples: int
    points: int
    outputs: int
    groups: int
    own: int
    shared: int
    forces: int
    waves: int


CASES = [
    Sizes(2, 37, 3, 3, 2, 1, 1, 3),
    Sizes(2, 5, 2, 1, 0, 2, 2, 3),
    Sizes(3, 33, 2, 1, 1, 1, 2, 2),
    Sizes(1, 1, 1, 1, 1, 0, 1, 1),
    Sizes(2, 17, 2, 2, 0, 1, 1, 67),  # more waves and points than a tile has
]


def arguments(size: Sizes) -> list[Tensor]:
    inputs = size.own + size.shared
    return [
        uniform(size.samples, size.points, size.own, low=-3, high=3),
        uniform(size.points, size.shared, low=-3, high=3),
        uniform(size.groups, size.forces, size.waves, inputs, low=-5, high=5),
        uniform(size.groups, inputs, low=0.3, high=3),
        uniform(size.groups, inputs, size.forces, seed=1),
        uniform(size.samples, size.outputs, 2 * size.forces * size.waves, seed=2),
        uniform(size.outputs, seed=3),
    ]


def fused(x: Tensor, shared: Tensor, *others: Tensor) -> Tensor:
    """No such inputs are none; a sum of nothing keeps a gradient for them."""
    own = x if x.shape[-1] else None
    alike = shared if shared.shape[-1] else None
    return first_order_fourier_sum(own, alike, *others) + x.sum() * 0 + shared.sum() * 0


# As in `test_triton`: rounding grows with the number of waves, inputs and, in gradients, points.
@BOTH
@pytest.mark.parametrize("size", CASES)
def test_values_and_gradients(size: Sizes, dtype: torch.dtype) -> None:
    terms = size.forces * size.waves * (size.own + size.shared)
    compare(fused, fourier_as_written, arguments(size), dtype, roundings=16 * (terms + 5))


def test_an_ode_that_grows() -> None:
    """A negative decay, over a stretch on which it makes ten times as much."""
    x, shared, omega, decay, *others = arguments(Sizes(2, 9, 2, 2, 1, 1, 1, 3))
    given = [x, shared, omega, -0.8 * decay / decay.max(), *others]
    compare(fused, fourier_as_written, given, torch.float64, roundings=16 * 11 * 11)


def test_strided_arguments() -> None:
    """Columns of a wider tensor, transposed ones, and a gradient of stride 0."""
    x, shared, omega, decay, amplitude, weights, offset = arguments(Sizes(2, 5, 2, 2, 2, 1, 2, 2))
    wide = torch.cat((x, x), dim=-1)

    def strided(function, x, shared, omega, decay, amplitude, *others):  # type: ignore[no-untyped-def]
        inputs = x.transpose(0, 1).contiguous().transpose(0, 1)[..., 1:3]
        amplitude = amplitude.mT.contiguous().mT
        omega = omega.transpose(0, 3).contiguous().transpose(0, 3)
        return function(inputs, shared, omega, decay, amplitude, *others).sum((0, 2))

    compare(
        lambda *parts: strided(fused, *parts),
        lambda *parts: strided(fourier_as_written, *parts),
        [wide, shared, omega, decay, amplitude, weights, offset],
        torch.float64,
        roundings=256,
    )


def test_near_the_origin_nothing_cancels() -> None:
    """The response of a slow ODE starts as x: float32 keeps its digits."""
    x = torch.tensor([-1e-5, -1e-7, 1e-7, 1e-5]).expand(2, -1)[..., None]
    one = torch.ones(1, 1, 1, 1)
    weights = torch.tensor([1.0, 0.0]).expand(2, 1, 2)
    parts = (x, one, one[0, 0], one[0], weights, torch.zeros(1))
    x_there, *others = (part.to(DEVICE) for part in parts)
    found = first_order_fourier_sum(x_there, None, *others)
    # ∫_0^x e^{-(x-τ)} cos τ dτ = x - x²/2 + …, the same backwards but for its sign
    exact = torch.where(x < 0, -1, 1) * (x.abs().double() - x.double() ** 2 / 2)
    assert torch.allclose(found.cpu().double(), exact, rtol=1e-6, atol=0)


@pytest.mark.parametrize("decay", [1e-3, 1e3])
def test_far_inputs_stay_finite(decay: float) -> None:
    x = torch.tensor([-1e3, -1.0, 0.0, 1e3]).expand(2, -1)[..., None].to(DEVICE).requires_grad_()
    rates = torch.full((1, 1), decay, device=DEVICE, requires_grad=True)
    omega = torch.tensor([1e-6, 100.0], device=DEVICE)[None, None, :, None].requires_grad_()
    one, zero = torch.ones(1, 1, 1, device=DEVICE), torch.zeros(1, device=DEVICE)
    weights = torch.ones(2, 1, 4, device=DEVICE)
    value = first_order_fourier_sum(
        x,
        x[0].detach(),
        torch.cat((omega, omega), -1),
        torch.cat((rates, rates), -1),
        torch.cat((one, one), 1),
        weights,
        zero,
    )
    found = torch.autograd.grad(value.sum(), (x, rates, omega))
    assert all(bool(part.isfinite().all()) for part in (value, *found))
