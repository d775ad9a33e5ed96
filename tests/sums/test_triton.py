"""The kernels of Triton against the plain sums, values and all gradients; on a CPU interpreted."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from deeplfm.greens_functions import FirstOrder
from deeplfm.responses.bumps import bump_response
from deeplfm.sums import bump_sum
from kernels_as_written import BOTH, DEVICE, EPS, compare, missing_for_kernels, uniform
from written_sums import bumps_as_written

if missing_for_kernels():
    pytest.skip(missing_for_kernels(), allow_module_level=True)

from deeplfm.sums.triton.bumps import first_order_bump_sums
from deeplfm.sums.triton.planes import plane_wave_sums


def plane_arguments(
    samples: int, points: int, outputs: int, inputs: int, waves: int
) -> list[Tensor]:
    weights = (samples, waves, outputs)
    return [
        uniform(samples, points, inputs, low=-2, high=2),
        uniform(waves, inputs, low=-4, high=4),
        uniform(*weights, seed=1),
        uniform(*weights, seed=2),
    ]


def planes_as_written(x: Tensor, omega: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    phase = x @ omega.mT
    return torch.cos(phase) @ cosine + torch.sin(phase) @ sine


# A sum of R products of weights up to 1 and waves whose phases are up to 40: rounding grows as R,
# and each phase is off by a rounding or two of itself.
@BOTH
@pytest.mark.parametrize(
    ("samples", "points", "outputs", "inputs", "waves"),
    [
        (2, 41, 2, 2, 5),
        (3, 5, 1, 5, 3),
        (2, 3, 9, 1, 2),  # more outputs than a warp holds
        (1, 3, 1, 1, 1),
    ],
)
def test_plane_wave_sums(
    samples: int, points: int, outputs: int, inputs: int, waves: int, dtype: torch.dtype
) -> None:
    arguments = plane_arguments(samples, points, outputs, inputs, waves)
    compare(plane_wave_sums, planes_as_written, arguments, dtype, roundings=16 * (waves + 5))


def test_strided_inputs_and_gradients() -> None:
    """Columns of a wider tensor, and the gradient of a sum over outputs, which has stride 0."""
    wide, *rest = plane_arguments(2, 5, 2, 2, 3)
    wide = torch.cat((wide, wide), dim=-1)
    compare(
        lambda x, *others: plane_wave_sums(x[..., 1:3], *others).sum(-1),
        lambda x, *others: planes_as_written(x[..., 1:3], *others).sum(-1),
        [wide, *rest],
        torch.float64,
        roundings=128,
    )


@BOTH
def test_long_phases_keep_their_rounding(dtype: torch.dtype) -> None:
    x = uniform(2, 128, 1, low=-100, high=100).to(dtype)
    omega = uniform(1, 1, low=90, high=100).to(dtype)
    one, zero = torch.ones(2, 1, 1, dtype=dtype), torch.zeros(2, 1, 1, dtype=dtype)
    phase = x.double() * omega.double()
    for cosine, sine, wanted in ((zero, one, phase.sin()), (one, zero, phase.cos())):
        found = plane_wave_sums(*(part.to(DEVICE) for part in (x, omega, cosine, sine)))
        error = (found.cpu().double() - wanted).abs()
        assert bool((error <= EPS[dtype] * (3 * phase.abs() + 16)).all())


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
@BOTH
@pytest.mark.parametrize(
    ("shared", "samples", "points", "outputs", "inputs", "forces", "centers"),
    [
        (False, 2, 33, 2, 2, 2, 1),
        (False, 2, 3, 2, 7, 1, 1),  # more responses than a warp takes at a time
        (False, 2, 1, 1, 1, 1, 1),
        (True, 2, 5, 2, 1, 2, 9),  # more centers than a warp takes at a time
    ],
)
def test_bump_sums(
    shared: bool, samples: int, points: int, outputs: int, inputs: int, forces: int, centers: int,
    dtype: torch.dtype,
) -> None:  # fmt: skip
    arguments = bump_arguments(shared, samples, points, outputs, inputs, forces, centers)
    roundings = 32 * inputs * forces * centers + 64
    compare(first_order_bump_sums, bumps_as_written, arguments, dtype, roundings)


@pytest.mark.parametrize("normalised", [False, True])
def test_the_gain_of_an_ode_goes_into_the_coefficients(normalised: bool) -> None:
    x, centers, ell, decay, coefficients = bump_arguments(False, 2, 4, 2, 2, 1, 3)
    g = FirstOrder(decay, normalised=normalised).double()
    gain = decay.prod(-1) if normalised else torch.ones(2, dtype=torch.float64)
    expected = bump_sum.by("plain", g, x, centers, ell, coefficients, "infinite")
    arguments = (x, centers, ell, g.decay.detach(), coefficients * gain[:, None, None])
    found = first_order_bump_sums(*(part.to(DEVICE) for part in arguments))
    assert torch.allclose(found.cpu(), expected.detach(), rtol=1e-12, atol=1e-14)


@BOTH
@pytest.mark.parametrize("scale", [0.1, 30.0])
@pytest.mark.parametrize("decay", [1e-3, 1.0, 1e3])
def test_extreme_bumps(scale: float, decay: float, dtype: torch.dtype) -> None:
    """Decays, lags far before and after a bump, and points far away: finite, and right."""
    x = torch.tensor([-1e3, -31.0, -0.2, 0.0, 0.13, 0.5, 29.0, 1e3], dtype=torch.float64)
    arguments = [
        torch.stack((x, -x))[..., None],
        torch.tensor([[[0.0], [-1e3], [1e3]]], dtype=torch.float64),
        torch.full((1, 1), scale, dtype=torch.float64),
        torch.full((1, 1), decay, dtype=torch.float64),
        torch.ones(2, 1, 1, 3, dtype=torch.float64),
    ]
    # Lags up to 2e3 are off by a rounding, which is (t/ℓ)² or γt of them in an exponent that still
    # counts: at most about 60 of either where a term is not negligible.
    compare(first_order_bump_sums, bumps_as_written, arguments, dtype, roundings=600)


@BOTH
def test_each_response_keeps_its_digits(dtype: torch.dtype) -> None:
    """Single responses, relative to themselves: each exponent loses as many digits as it is."""
    lag = torch.linspace(-6, 12, 96, dtype=dtype)
    ell, decay = torch.full((1, 1), 0.9, dtype=dtype), torch.full((1, 1), 0.8, dtype=dtype)
    zero, one = torch.zeros(1, 1, 1, dtype=dtype), torch.ones(2, 1, 1, 1, dtype=dtype)
    for rate in (decay, 100 * decay):
        wanted = bump_response(lag.double(), 0.0, ell.double(), rate.double()).flatten()
        x = torch.stack((lag, lag))[..., None]
        parts = (part.to(DEVICE) for part in (x, zero, ell, rate, one))
        found = first_order_bump_sums(*parts)[0, :, 0].cpu().double()
        t, kappa = lag.double() / 0.9, float(rate) * 0.9
        after = torch.where(t > kappa, (kappa * (kappa / 2 - t)).abs(), 0.0)
        allowed = EPS[dtype] * (32 + 6 * (t**2 / 2 + after)) * wanted
        assert bool(((found - wanted).abs() <= allowed).all())


@pytest.mark.skipif(DEVICE == "cpu", reason="graphs are captured on a GPU")
def test_graph_capture() -> None:
    cases: list[tuple[Callable[..., Tensor], list[Tensor]]] = [
        (plane_wave_sums, plane_arguments(2, 37, 3, 2, 5)),
        (first_order_bump_sums, bump_arguments(False, 2, 37, 2, 2, 1, 5)),
        (first_order_bump_sums, bump_arguments(True, 2, 37, 2, 2, 1, 5)),
    ]
    for function, numbers in cases:
        leaves = [part.float().to(DEVICE).requires_grad_() for part in numbers]
        expected = torch.autograd.grad(function(*leaves).sum(), leaves)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            found = torch.autograd.grad(function(*leaves).sum(), leaves)
        graph.replay()
        torch.cuda.synchronize()
        assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))
