"""Smooth processes: the covariance that their ODE and force have, for any raw numbers."""

import numpy as np
import pytest
import torch
from scipy.integrate import quad

from deeplfm.layers.smooth import SmoothProcesses
from deeplfm.statespace import System, stack_blocks


def processes(seed: int, count: int = 2, outputs: int = 3) -> SmoothProcesses:
    layer = SmoothProcesses(count, outputs, length=40.0)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for part in layer.parameters():
            part.copy_(torch.randn(part.shape, generator=generator, dtype=torch.float64))
    return layer


def spectrum(omega: float, lengthscale: float, decay: float) -> float:
    """Of a Matérn-5/2 force behind a relaxation: |γ/(γ + jω)|² (κ² + ω²)⁻³, up to a factor."""
    rate = np.sqrt(5) / lengthscale
    return float(decay**2 / (decay**2 + omega**2) / (rate**2 + omega**2) ** 3)


def correlation(lag: float, lengthscale: float, decay: float) -> float:
    """By the Fourier integral of the spectrum: an oracle that knows no states."""
    scale = spectrum(0.0, lengthscale, decay)
    total = quad(lambda w: spectrum(w, lengthscale, decay) / scale, 0, np.inf, limit=400)[0]
    at_lag = quad(
        lambda w: spectrum(w, lengthscale, decay) / scale, 0, np.inf, weight="cos", wvar=lag,
        limit=400,
    )[0]  # fmt: skip
    return float(at_lag / total)


@pytest.mark.parametrize("seed", range(4))
def test_covariances_are_those_of_the_spectrum(seed: int) -> None:
    layer = processes(seed).requires_grad_(False)
    (block,), loadings = layer.parts(layer.natural())
    lag = 3.0
    phi, _ = block.moves(torch.tensor([lag], dtype=torch.float64))
    start = block.start()
    found = loadings @ phi[0] @ start @ loadings.mT
    usual = float(layer.usual)
    lengthscale, decay = (
        usual * layer.log_lengthscale.mul(1.5).exp(),
        layer.log_decay.mul(1.5).exp(),
    )
    rho = torch.tensor(
        [
            correlation(lag, float(a), float(b) / usual)
            for a, b in zip(lengthscale, decay, strict=True)
        ]
    ).double()
    expected = layer.mixing @ torch.diag(rho) @ layer.mixing.mT
    # quad asks for 1.5e-8 absolute of integrals that are above 0.01.
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)
    torch.testing.assert_close(loadings @ start @ loadings.mT, layer.mixing @ layer.mixing.mT)


def test_a_start_has_the_covariance_that_it_is_given() -> None:
    layer = SmoothProcesses(3, 3, length=10.0)
    root = torch.randn(3, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    layer.start(root @ root.mT)
    torch.testing.assert_close(layer.mixing @ layer.mixing.mT, root @ root.mT)


def test_gradients_reach_every_number() -> None:
    layer = processes(5)
    blocks, loadings = layer.parts(layer.natural())
    system = System(loadings.new_zeros(0), loadings.new_zeros(0), stack_blocks(blocks), loadings,
                    torch.ones(3).double())  # fmt: skip
    phi, noise = blocks[0].moves(torch.tensor([0.7], dtype=torch.float64))
    (system.loadings @ phi[0] @ noise[0] @ system.loadings.mT).sum().backward()
    for name, part in layer.named_parameters():
        assert part.grad is not None
        assert bool((part.grad != 0).all()), name
