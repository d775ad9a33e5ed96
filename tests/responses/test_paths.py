"""A drawn force through an ODE: against quadrature of the same path, in one and two inputs."""

from typing import Any

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck
from torch.func import functional_call

import deeplfm as dlfm
from deeplfm.forces import ForcePath, ForcePrior, InducingPosterior
from deeplfm.greens_functions import GreensFunction
from deeplfm.responses import path_response, quadrature
from deeplfm.shapes import Memory


def posterior_path(num_inputs: int) -> ForcePath:
    generator = torch.Generator().manual_seed(0)
    lengthscale = torch.tensor([[0.5, 0.9], [0.8, 0.6]], dtype=torch.float64)[:, :num_inputs]
    prior = ForcePrior(lengthscale, 1.7, num_forces=2, num_inputs=num_inputs)
    z = torch.rand(7, num_inputs, dtype=torch.float64, generator=generator) * 3
    posterior = InducingPosterior(prior, z)
    mean = torch.randn(2, 7, dtype=torch.float64, generator=generator)
    posterior.whitened.set(mean, 0.3 * torch.eye(7, dtype=torch.float64).expand(2, 7, 7))
    return posterior.draw(3, 20, generator)


@pytest.mark.parametrize("memory", ["infinite", "zero"])
@pytest.mark.parametrize(
    "g",
    [dlfm.FirstOrder(2.0), dlfm.SecondOrder(1.0, 1.0), dlfm.NoDynamics()],
    ids=lambda g: f"{type(g).__name__}{g.order}",
)
def test_one_input(g: GreensFunction, memory: Memory) -> None:
    path = posterior_path(1)
    x = torch.linspace(0.1, 3, 4, dtype=torch.float64)
    with torch.no_grad():
        got = path_response(g, path, x[:, None], memory)
        assert got.shape == (3, 4, 1, 2)
        for s in range(3):
            for q in range(2):
                summed = quadrature(
                    g,
                    lambda tau, s=s, q=q: path(tau.reshape(-1, 1))[s, :, q].reshape(tau.shape),  # type: ignore[misc]
                    x,
                    memory,
                )
                torch.testing.assert_close(got[s, :, 0, q], summed, rtol=0, atol=1e-10)


@pytest.mark.parametrize("memory", ["infinite", "zero"])
def test_two_inputs_are_a_double_integral(memory: Memory) -> None:
    """The phase must enter once: with it inside the product this fails."""
    path, decay = posterior_path(2), torch.tensor([[2.0, 3.0], [4.0, 1.5]], dtype=torch.float64)
    g = dlfm.FirstOrder(decay)
    x = torch.tensor([[0.4, 1.1]], dtype=torch.float64)
    with torch.no_grad():
        got = path_response(g, path, x, memory)
    nodes, weights = np.polynomial.legendre.leggauss(160)
    for d in range(2):
        lags, measures = [], []
        for p in range(2):
            length = x[0, p].item() if memory == "zero" else 30 / decay[d, p].item()
            lag = torch.tensor(length * (nodes + 1) / 2)
            lags.append(lag)
            measures.append(torch.tensor(length * weights / 2) * torch.exp(-decay[d, p] * lag))
        grid = torch.stack(torch.meshgrid(*lags, indexing="ij"), dim=-1).reshape(-1, 2)
        with torch.no_grad():
            values = path(x - grid).reshape(3, 160, 160, 2)
        summed = torch.einsum("sijq,i,j->sq", values, *measures)
        torch.testing.assert_close(got[:, 0, d], summed, rtol=0, atol=1e-9)


@pytest.mark.parametrize("memory", ["infinite", "zero"])
def test_gradcheck(memory: Memory) -> None:
    path = posterior_path(1)
    numbers: Any = {n: v.detach() for n, v in vars(path).items() if isinstance(v, torch.Tensor)}
    path = ForcePath(**numbers)
    x = torch.tensor([[0.3], [1.4]], dtype=torch.float64, requires_grad=True)
    decay = torch.tensor([[1.5]], dtype=torch.float64, requires_grad=True)

    def call(x: torch.Tensor, decay: torch.Tensor) -> Any:
        g = dlfm.FirstOrder(1.0).tiled(1, 1)
        named = {"quantities.decay.raw": torch.log(decay)}
        return functional_call(
            Respond(g, path, memory), {f"g.{k}": v for k, v in named.items()}, (x,)
        )

    assert gradcheck(call, (x, decay))


class Respond(torch.nn.Module):
    """`path_response` as a module, so that its parameters can be replaced."""

    def __init__(self, g: GreensFunction, path: ForcePath, memory: Memory) -> None:
        super().__init__()
        self.g, self.path, self.memory = g, path, memory

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return path_response(self.g, self.path, x, self.memory)


def test_the_same_path_is_the_same_function() -> None:
    path = posterior_path(1)
    x = torch.linspace(0, 3, 12, dtype=torch.float64)[:, None]
    g = dlfm.SecondOrder(0.4, 4.0)
    whole = path_response(g, path, x)
    parts = torch.cat([path_response(g, path, part) for part in x.split(5)], dim=1)
    torch.testing.assert_close(whole, parts, rtol=0, atol=1e-14)
    shared = path_response(g, path, x[None].expand(3, -1, -1))
    torch.testing.assert_close(whole, shared)
