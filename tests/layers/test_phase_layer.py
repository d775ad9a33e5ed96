"""Functions of a phase: the Gaussian process that they are, and expectations over the phase."""

import math

import numpy as np
import pytest
import torch

from deeplfm.layers.phase import HARMONICS, PhaseLayer

f64 = torch.float64


def layer(outputs: int = 2) -> PhaseLayer:
    made = PhaseLayer(outputs)
    with torch.no_grad():
        made.log_amplitude.copy_(torch.linspace(-0.5, 0.5, outputs))
        made.log_lengthscale.fill_(0.3)
    return made


def test_covariance_is_that_of_a_squared_exponential_on_a_turn() -> None:
    """Its spectrum is e^{-(kℓ)²/2}; a sum over turns of the kernel on the line has the same."""
    own = layer(1)
    lag = torch.linspace(0, 2 * math.pi, 9, dtype=f64)[None]
    with torch.no_grad():
        waves = own(lag, torch.zeros_like(lag))[0, :, 0]
        found = waves @ waves[0]
        lengthscale = 0.5 * math.exp(0.3)
        turns = 2 * math.pi * torch.arange(-9, 10, dtype=f64)
        on_the_line = torch.exp(-((lag[0, :, None] + turns) ** 2) / (2 * lengthscale**2)).sum(1)
        constant = math.sqrt(2 * math.pi) * lengthscale / (2 * math.pi)  # the wave of k = 0
        expected = on_the_line - constant
        expected = own.amplitude[0] ** 2 * expected / expected[0]
    # Waves beyond the last one are left out: they have less than this share of the variance.
    rest = sum(math.exp(-((k * lengthscale) ** 2) / 2) for k in range(HARMONICS + 1, 50))
    size = sum(math.exp(-((k * lengthscale) ** 2) / 2) for k in range(1, 50))
    np.testing.assert_allclose(
        found, expected, atol=float(own.amplitude[0].detach() ** 2) * 3 * rest / size
    )


@pytest.mark.parametrize("spread", [0.1, 0.7, 1.2])
def test_expectations_over_a_normal_phase_are_those_of_quadrature(spread: float) -> None:
    own = layer()
    mean = torch.tensor([[0.3, 2.9]], dtype=f64)
    nodes, weights = np.polynomial.hermite_e.hermegauss(120)
    with torch.no_grad():
        found = own(mean, torch.full_like(mean, spread**2))
        every = [own(mean + spread * node, torch.zeros_like(mean)) for node in nodes]
    expected = sum(w * one for w, one in zip(weights / weights.sum(), every, strict=True))
    np.testing.assert_allclose(found, expected, atol=1e-10)


def test_outputs_have_weights_of_their_own() -> None:
    own = layer(3)
    with torch.no_grad():
        found = own(torch.zeros(1, 1, dtype=f64), torch.zeros(1, 1, dtype=f64))[0, 0]
    assert found.shape == (3, own.count)
    each = 2 * HARMONICS
    for d in range(3):
        others = [k for k in range(own.count) if k // each != d]
        assert not found[d, others].any()
        assert float(found[d].square().sum()) == pytest.approx(
            float(own.amplitude[d].detach() ** 2)
        )
