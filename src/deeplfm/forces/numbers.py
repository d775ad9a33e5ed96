"""The random numbers of a draw by Matheron's rule in training: one basis for all samples."""

import math
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from deeplfm.forces.kernels import ForceKernel
from deeplfm.randomness import normal, uniform
from deeplfm.shapes import check_count


class Numbers(NamedTuple):
    """Standard normal numbers, but for the phases, and the scales of a kernel in ξ."""

    phase: Float[Tensor, "1 Q B"]
    xi: Float[Tensor, "1 Q B P"]
    weights: Float[Tensor, "S Q B"]
    whitened: Float[Tensor, "Q M S"]
    eta: Float[Tensor, "Q M S"]


def random_numbers(
    samples: int,
    basis: int,
    values: Float[Tensor, "Q M"],
    inputs: int,
    kernel: ForceKernel,
    generator: torch.Generator | None,
) -> Numbers:
    """The numbers for draws of such values at inducing inputs."""
    check_count("num_samples", samples)
    check_count("num_basis", basis)
    forces, points = values.shape
    sizes = (forces * basis * inputs, samples * forces * basis, *[forces * points * samples] * 2)
    xi, weights, whitened, eta = normal((sum(sizes),), generator, values).split(sizes)
    phase = uniform((1, forces, basis), generator, values, 2 * math.pi)
    xi = xi.view(1, forces, basis, inputs)
    scales = kernel.spectral_scales((1, forces, basis, 1), generator, values)
    return Numbers(
        phase,
        xi if scales is None else xi * scales,
        weights.view(samples, forces, basis),
        whitened.view(forces, points, samples),
        eta.view(forces, points, samples),
    )
