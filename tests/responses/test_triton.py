"""The fused kernels against the plain sums, values and all gradients; on a CPU interpreted."""

import os
import sys
from collections.abc import Callable, Sequence

import pytest
import torch
from torch import Tensor

# Kernels are compiled or interpreted by what this says when Triton is imported.
if not torch.cuda.is_available() and "triton" not in sys.modules:
    os.environ["TRITON_INTERPRET"] = "1"
pytest.importorskip("triton", reason="the fused kernels need Triton")
if not torch.cuda.is_available() and os.environ.get("TRITON_INTERPRET") != "1":
    pytest.skip("Triton was imported to compile, and there is no GPU", allow_module_level=True)

from deeplfm.responses.bumps import bump_response
from deeplfm.responses.fused.triton_bumps import first_order_bump_sums
from deeplfm.responses.fused.triton_fourier import fourier_sums
from deeplfm.responses.fused.triton_planes import plane_wave_sums

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
EPS = {torch.float32: 2.0**-24, torch.float64: 2.0**-53}


def uniform(*shape: int, low: float = -1.0, high: float = 1.0, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed + sum(shape))
    numbers = torch.rand(*shape, generator=generator, dtype=torch.float64)
    return low + (high - low) * numbers


def compare(
    fused: Callable[..., Tensor],
    plain: Callable[..., Tensor],
    arguments: Sequence[Tensor],
    dtype: torch.dtype,
    ulps: float,
) -> None:
    """Values and gradients, within `ulps` of the largest; the plain ones are in float64."""
    arguments = [argument.to(dtype) for argument in arguments]  # the same numbers for both
    exact = [argument.double().requires_grad_() for argument in arguments]
    ours = [argument.to(DEVICE).requires_grad_() for argument in arguments]
    value, expected = fused(*ours), plain(*exact)
    assert value.dtype == dtype
    assert value.shape == expected.shape
    weights = uniform(*expected.shape, seed=7).to(dtype)
    (value * weights.to(DEVICE)).sum().backward()
    (expected * weights.double()).sum().backward()
    pairs = [(value, expected), *((a.grad, b.grad) for a, b in zip(ours, exact, strict=True))]
    for found, wanted in pairs:
        assert found is not None
        assert wanted is not None
        assert found.shape == wanted.shape
        error = (found.detach().cpu().double() - wanted.detach()).abs().max()
        assert error <= ulps * EPS[dtype] * (wanted.abs().max() + 1e-30), (error, found.shape)


def plain_fourier(x: Tensor, omega: Tensor, even: Tensor, odd: Tensor) -> Tensor:
    phase = x[:, :, None, :, None] * omega  # S3 N G P R
    terms = (torch.cos(phase) - 1) * even[:, :, None] + torch.sin(phase) * odd[:, :, None]
    total = terms.sum(-1)
    return total[0] if len(total) == 1 else torch.where((x < 0)[:, :, None], total[1], total[0])


# A sum of R products of numbers up to 1 and waves whose phases are up to ωx: rounding grows as R,
# and each phase is off by one rounding of itself.
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    ("shared", "samples", "points", "outputs", "groups", "inputs", "waves", "sides"),
    [
        (False, 2, 37, 3, 3, 2, 5, 2),
        (False, 3, 65, 2, 1, 1, 3, 1),
        (False, 1, 1, 1, 1, 1, 1, 2),
        (True, 3, 19, 2, 2, 3, 7, 2),
        (True, 2, 33, 2, 1, 1, 67, 1),
    ],
)
def test_fourier_sums(
    shared: bool,
    samples: int,
    points: int,
    outputs: int,
    groups: int,
    inputs: int,
    waves: int,
    sides: int,
    dtype: torch.dtype,
) -> None:
    x = uniform(1 if shared else samples, points, inputs, low=-3, high=3)
    omega = uniform(groups, inputs, waves, low=-5, high=5)
    weights = (sides, samples, outputs, inputs, waves)
    arguments = (x, omega, uniform(*weights, seed=1), uniform(*weights, seed=2))
    compare(fourier_sums, plain_fourier, arguments, dtype, ulps=16 * (waves + 5))


def plain_planes(x: Tensor, omega: Tensor, versine: Tensor, sine: Tensor) -> Tensor:
    phase = x @ omega.mT
    return (1 - torch.cos(phase)) @ versine + torch.sin(phase) @ sine


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    ("shared", "samples", "points", "outputs", "inputs", "waves"),
    [
        (False, 2, 41, 3, 2, 7),
        (False, 3, 5, 1, 5, 3),
        (False, 2, 33, 11, 1, 2),  # a prime number of outputs, more than a warp holds
        (True, 3, 19, 2, 3, 67),
        (True, 1, 3, 1, 1, 1),
    ],
)
def test_plane_wave_sums(
    shared: bool,
    samples: int,
    points: int,
    outputs: int,
    inputs: int,
    waves: int,
    dtype: torch.dtype,
) -> None:
    x = uniform(1 if shared else samples, points, inputs, low=-2, high=2)
    omega = uniform(waves, inputs, low=-4, high=4)
    weights = (samples, waves, outputs)
    arguments = (x, omega, uniform(*weights, seed=1), uniform(*weights, seed=2))
    compare(plane_wave_sums, plain_planes, arguments, dtype, ulps=16 * (waves + 5))


def plain_bumps(
    x: Tensor, centers: Tensor, lengthscale: Tensor, decay: Tensor, coefficients: Tensor
) -> Tensor:
    def response(p: int) -> Tensor:
        shape = (slice(None), slice(None), None, None, None)
        return bump_response(
            x[..., p][shape],  # S N D Q M
            centers[..., p],
            lengthscale[:, p, None],
            decay[:, p, None, None],
        )

    product = response(0)
    for p in range(1, x.shape[-1]):
        product = product * response(p)
    return (product * coefficients[:, None]).sum((-2, -1))


def bump_arguments(
    shared: bool, samples: int, points: int, outputs: int, inputs: int, forces: int, centers: int
) -> list[Tensor]:
    return [
        uniform(1 if shared else samples, points, inputs, low=-2, high=2),
        uniform(forces, centers, inputs, low=-2, high=2),
        uniform(forces, inputs, low=0.3, high=1.5),
        uniform(outputs, inputs, low=0.2, high=4),
        uniform(samples, outputs, forces, centers),
    ]


# A product of P responses, each good to some ten roundings, summed over centers.
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    ("shared", "samples", "points", "outputs", "inputs", "forces", "centers"),
    [
        (False, 2, 33, 2, 2, 1, 3),
        (False, 2, 5, 3, 5, 2, 2),  # more responses than a warp takes at a time
        (False, 2, 1, 1, 1, 1, 1),
        (True, 3, 7, 2, 2, 2, 9),  # more centers than a warp takes at a time
    ],
)
def test_bump_sums(
    shared: bool,
    samples: int,
    points: int,
    outputs: int,
    inputs: int,
    forces: int,
    centers: int,
    dtype: torch.dtype,
) -> None:
    arguments = bump_arguments(shared, samples, points, outputs, inputs, forces, centers)
    ulps = 32 * inputs * forces * centers + 64
    compare(first_order_bump_sums, plain_bumps, arguments, dtype, ulps)
