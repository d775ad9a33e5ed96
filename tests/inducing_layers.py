"""Inducing layers for tests, and the exact kernels of the same numbers."""

import torch
from torch import Tensor

import deeplfm as dlfm
from deeplfm.greens_functions import GreensFunction
from deeplfm.layers import InducingLayer
from deeplfm.shapes import Memory

f64 = torch.float64


def matrix(*rows: list[float]) -> Tensor:
    return torch.tensor(rows, dtype=f64)


def physics(name: str, num_inputs: int) -> GreensFunction:
    """Two outputs, three inputs at most; decays times lengthscales are 0.5 and above."""
    slow = matrix([1.5, 2.5, 3.0], [4.0, 2.0, 1.2])[:, :num_inputs]
    fast = matrix([5.0, 2.0, 3.0], [1.5, 4.0, 6.0])[:, :num_inputs]
    known = {
        "first": lambda: dlfm.FirstOrder(slow),
        "second": lambda: dlfm.SecondOrder(slow, fast),  # over- and underdamped
        "none": dlfm.NoDynamics,
    }
    return known[name]()


def layer_of(
    name: str,
    num_inputs: int,
    *,
    num_forces: int = 2,
    num_inducing: int = 7,
    memory: Memory = "infinite",
    num_basis: int = 24,
    separate: bool = False,
    shared_lengthscale: bool = False,
    jitter: float = 1e-6,
) -> InducingLayer:
    generator = torch.Generator().manual_seed(num_inputs)
    lengthscales = matrix([0.5, 0.8, 0.6], [0.9, 0.5, 0.7])
    shape = (num_forces,) * separate + (num_inducing, num_inputs)
    layer = InducingLayer(
        num_inputs,
        2,
        greens_function=physics(name, num_inputs),
        inducing_inputs=2 * torch.rand(*shape, generator=generator, dtype=f64) - 1,
        num_forces=num_forces,
        num_basis=num_basis,
        lengthscale=lengthscales[: 1 if shared_lengthscale else num_forces, :num_inputs],
        shared_lengthscale=shared_lengthscale,
        memory=memory,
        jitter=jitter,
        generator=generator,
    )
    with torch.no_grad():
        layer.sensitivities.copy_(matrix([1.2, -0.7], [0.4, 1.5])[:, :num_forces])
    return layer


def kernel_of(layer: InducingLayer) -> dlfm.LatentForceKernel:
    """The exact covariance, from the same numbers."""
    return dlfm.LatentForceKernel(
        layer.greens_function,
        lengthscale=layer.posterior.prior.lengthscale.detach(),
        sensitivities=layer.sensitivities.detach(),
        memory=layer.memory,
    )


def any_q(layer: InducingLayer) -> None:
    generator = torch.Generator().manual_seed(5)
    shape = tuple(layer.posterior.whitened.shift.shape)
    size = shape[-1]
    factor = torch.randn(*shape, size, generator=generator, dtype=f64).tril(-1) / 4
    factor += torch.diag_embed(0.2 + torch.rand(shape, generator=generator, dtype=f64))
    layer.posterior.whitened.set(torch.randn(shape, generator=generator, dtype=f64), factor)


def points(num_inputs: int, count: int = 4, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return 2 * torch.rand(count, num_inputs, generator=generator, dtype=f64) - 1
