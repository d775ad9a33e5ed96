"""Kernels of an objective's terms and of the weights of plane waves, against their formulas."""

import math

import pytest
import torch
from torch import Tensor

from kernels_as_written import BOTH, DEVICE, compare, missing_for_kernels, uniform
from written_sums import wave_weights_as_written

if missing_for_kernels():
    pytest.skip(missing_for_kernels(), allow_module_level=True)

from deeplfm.sums.triton.frequencies import frequency_kl
from deeplfm.sums.triton.gaussian import gaussian_log_density
from deeplfm.sums.triton.wave_weights import first_order_wave_weights


# A sum over S·N·D squares, and gradients of a few operations each.
@BOTH
@pytest.mark.parametrize(("samples", "points", "outputs"), [(3, 5, 2), (18, 7, 1), (1, 130, 3)])
def test_gaussian_log_density(samples: int, points: int, outputs: int, dtype: torch.dtype) -> None:
    y = uniform(points, outputs, seed=1).to(dtype)
    observed = uniform(points, outputs, seed=2) > -0.4
    y[~observed] = torch.nan

    def fused(f: Tensor, variance: Tensor) -> Tensor:
        return gaussian_log_density(f, y.to(DEVICE), observed.to(DEVICE), variance, 17)

    def as_written(f: Tensor, variance: Tensor) -> Tensor:
        known = torch.where(observed, y.double(), 0.0)
        density = -((known - f).square() / variance + torch.log(2 * math.pi * variance)) / 2
        return 17 / points * torch.where(observed, density, 0.0).mean(0).sum()

    arguments = [uniform(samples, points, outputs), uniform(outputs, low=0.1, high=0.5)]
    compare(fused, as_written, arguments, dtype, roundings=16 + points * outputs)


@BOTH
@pytest.mark.parametrize("fixed", [True, False])
@pytest.mark.parametrize("shape", [(2, 1, 131, 3), (1, 2, 3, 1)])
def test_kl_of_frequencies(
    shape: tuple[int, int, int, int], fixed: bool, dtype: torch.dtype
) -> None:
    groups, forces, waves, inputs = shape
    noise = uniform(*shape, low=-2, high=2, seed=5).to(dtype)

    def fused(location: Tensor, log_std: Tensor, ell: Tensor) -> Tensor:
        return frequency_kl(location, log_std, noise.to(DEVICE) if fixed else None, ell)

    def as_written(location: Tensor, log_std: Tensor, ell: Tensor) -> Tensor:
        ell = ell[:, :, None]
        mean = location - log_std.exp() * noise.double() if fixed else location
        twice = 2 * (log_std + ell.log())
        return ((ell * mean).square() + torch.expm1(twice) - twice).sum() / 2

    arguments = [
        uniform(*shape, seed=1),
        uniform(*shape, low=-2, high=0.5, seed=2),
        uniform(groups, forces, inputs, low=0.5, high=2, seed=3),
    ]
    compare(fused, as_written, arguments, dtype, roundings=32 + waves * forces * inputs)


@BOTH
def test_kl_of_frequencies_at_the_prior_is_zero(dtype: torch.dtype) -> None:
    zeros = torch.zeros(1, 1, 5, 2, dtype=dtype, device=DEVICE)
    assert frequency_kl(zeros, zeros, None, torch.ones_like(zeros[:, :, 0])).item() == 0
    near = zeros + 1e-3  # a sum of a²: 1 - 1 in float32 would leave none of its digits
    found = frequency_kl(zeros, near, None, torch.ones_like(zeros[:, :, 0])).item()
    assert found == pytest.approx(10 * (math.expm1(2e-3) - 2e-3) / 2, rel=1e-4)


# Each weight is a product of P quotients; gradients sum S·B of them, with random signs.
@BOTH
@pytest.mark.parametrize(
    ("forces", "waves", "inputs", "outputs", "samples"),
    [(2, 3, 2, 3, 4), (1, 17, 1, 1, 65), (3, 2, 4, 2, 1)],  # the second: more than a tile has
)
def test_first_order_wave_weights(
    forces: int, waves: int, inputs: int, outputs: int, samples: int, dtype: torch.dtype
) -> None:
    phase = uniform(forces, waves, low=0, high=6, seed=4).to(dtype)

    def fused(theta: Tensor, decay: Tensor, sensitivities: Tensor, amplitude: Tensor) -> Tensor:
        return first_order_wave_weights(theta, phase.to(DEVICE), decay, sensitivities, amplitude)

    def as_written(
        theta: Tensor, decay: Tensor, sensitivities: Tensor, amplitude: Tensor
    ) -> Tensor:
        turned = wave_weights_as_written(theta, phase.double(), decay, sensitivities, amplitude)
        return torch.stack((turned.real, -turned.imag))

    arguments = [
        uniform(forces, waves, inputs, low=-3, high=3),
        uniform(outputs, inputs, low=0.3, high=3),
        uniform(outputs, forces, seed=1),
        uniform(samples, forces, waves, seed=2),
    ]
    roundings = 16 * inputs + samples + forces * waves
    compare(fused, as_written, arguments, dtype, roundings=2 * roundings, terms=1.0)
