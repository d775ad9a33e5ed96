"""The slow truth against textbook integrals that need no closed form of ours."""

import math

import pytest
import torch

import deeplfm as dlfm
from deeplfm.responses import quadrature

X = torch.tensor([0.0, 0.5, 2.0], dtype=torch.float64)


def test_constant_and_sine() -> None:
    """y' + γy = 1 gives (1 - e^{-γx})/γ; y' + γy = sin x gives (γ sin x - cos x)/(1 + γ²)."""
    gamma = 1.7
    g = dlfm.FirstOrder(gamma)
    ones = quadrature(g, torch.ones_like, X, "zero")
    torch.testing.assert_close(ones, (1 - torch.exp(-gamma * X)) / gamma)
    sine = quadrature(g, torch.sin, X)
    torch.testing.assert_close(sine, (gamma * X.sin() - X.cos()) / (1 + gamma**2))


def test_shape_follows_the_parameters() -> None:
    g = dlfm.FirstOrder(torch.tensor([[1.0, 2.0, 3.0]]))
    assert quadrature(g, torch.cos, X).shape == (3, 1, 3)
    assert quadrature(dlfm.NoDynamics(), torch.cos, X).tolist() == torch.cos(X).tolist()


def test_a_narrow_force_is_found() -> None:
    """A bump a thousand times narrower than the memory; its response is nearly ∫u e^{-γ(x-z)}."""
    g, x = dlfm.FirstOrder(0.01), torch.tensor([50.0], dtype=torch.float64)
    for z in (2.231, 17.3, 49.0):

        def force(tau: torch.Tensor, z: float = z) -> torch.Tensor:
            return torch.exp(-((tau - z) ** 2) / (2 * 0.05**2))

        exact = 0.05 * math.sqrt(2 * math.pi) * math.exp(-0.01 * (50 - z) + (0.01 * 0.05) ** 2 / 2)
        assert quadrature(g, force, x, scale=1.0).item() == pytest.approx(exact, rel=1e-10)
        assert quadrature(g, force, x).item() == pytest.approx(exact, rel=1e-10)
    assert quadrature(g, torch.zeros_like, x).item() == 0


def test_says_when_it_cannot() -> None:
    with pytest.raises(dlfm.NumericalError, match="must settle"):
        quadrature(
            dlfm.FirstOrder(1.0), lambda t: torch.where(t > 1 / math.pi, 1.0, 0.0).double(), X
        )
    with pytest.raises(dlfm.InputError, match="horizon must be above 0; got -1"):
        quadrature(dlfm.FirstOrder(1.0), torch.cos, X, horizon=-1.0)
    with pytest.raises(dlfm.InputError, match="x must be 0 or above"):
        quadrature(dlfm.FirstOrder(1.0), torch.cos, -X - 1, "zero")
    with pytest.raises(dlfm.InputError, match=r"x must be \[N\]"):
        quadrature(dlfm.FirstOrder(1.0), torch.cos, X[:, None])
