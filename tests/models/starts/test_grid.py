"""The first layer of a series: a grid into the past, and resonators that lag as they are told."""

import math

import numpy as np
import pytest
import torch

import deeplfm as dlfm
from deeplfm.greens_functions import GreensFunction
from deeplfm.layers import InducingLayer
from deeplfm.models.starts.base import Start
from deeplfm.models.starts.grid import _typical_frequency, grid_size, phases, start_on_grid
from deeplfm.models.starts.oscillation import Oscillation

OMEGA = 90.0
X = np.linspace(0, 1, 400)


def oscillation() -> Oscillation:
    return Oscillation(OMEGA, np.exp(1j * OMEGA * X), np.zeros(1), np.ones(1))


def started(
    g: GreensFunction, outputs: int = 3, count: int = 60, past: float = 2.0, keep: bool = False
) -> InducingLayer:
    zeros = torch.zeros(count, 1, dtype=torch.float64)
    layer = InducingLayer(
        1, outputs, greens_function=g.tiled(outputs, 1), inducing_inputs=zeros, lengthscale=0.7,
        learn_inputs=False,
    )  # fmt: skip
    start = Start(X[:, None], np.cos(OMEGA * X)[:, None], torch.Generator().manual_seed(0))
    with torch.no_grad():
        start_on_grid(
            layer, oscillation(), start, past=past, own_physics=True, keep_lengthscale=keep
        )
    return layer


def lag(damping: float, frequency: float) -> float:
    """By how much y'' + 2αy' + ω²y = cos(Ωt) lags behind its force: the textbook's atan2."""
    return math.atan2(2 * damping * OMEGA, frequency**2 - OMEGA**2)


@pytest.mark.parametrize(
    ("outputs", "expected"),
    [(2, [1 / 4, 3 / 4]), (3, [1 / 4, 3 / 4]), (5, [1 / 8, 3 / 8, 5 / 8, 7 / 8])],
)
def test_resonators_lag_by_even_parts_of_half_a_turn(outputs: int, expected: list[float]) -> None:
    """Of three or more the first is slow, and stands beside the oscillation."""
    g = started(dlfm.SecondOrder(), outputs).greens_function
    damping, frequency = (g.value(name)[:, 0].tolist() for name in ("damping", "frequency"))
    slow = outputs - len(expected)
    found = [lag(a, w) / math.pi for a, w in zip(damping[slow:], frequency[slow:], strict=True)]
    assert found == pytest.approx(expected)
    assert damping[slow:] == pytest.approx([OMEGA / 20] * len(expected))
    if slow:
        assert frequency[0] == pytest.approx(OMEGA / 7)


def test_the_grid_reaches_as_far_back_as_the_slowest_remembers() -> None:
    """Past 2: two time constants of the slowest before the data; as long as the data at most."""
    decays = torch.tensor([[8.0], [40.0], [20.0]], dtype=torch.float64)
    grid = started(dlfm.FirstOrder(decays)).posterior.inducing_inputs[:, 0]
    torch.testing.assert_close(grid, torch.linspace(-2 / 8, 1, 60, dtype=torch.float64))
    grid = started(dlfm.FirstOrder(0.1)).posterior.inducing_inputs[:, 0]
    torch.testing.assert_close(grid, torch.linspace(-1, 1, 60, dtype=torch.float64))


def test_lengthscales_let_neighbours_on_the_grid_overlap() -> None:
    """1.8 over the frequency where points are many, 1/0.8 of their spacing where they are few."""
    many, few = (started(dlfm.FirstOrder(8.0), count=count) for count in (400, 60))
    assert many.posterior.prior.lengthscale.item() == pytest.approx(1.8 / OMEGA)
    assert few.posterior.prior.lengthscale.item() == pytest.approx(1.25 / 59 / 0.8)
    kept = started(dlfm.FirstOrder(8.0), keep=True)
    assert kept.posterior.prior.lengthscale.item() == pytest.approx(0.7)


def test_as_many_points_as_the_oscillation_needs() -> None:
    """Its ω0 over a span of 1 and the past, in steps of 2.8 x 0.8 radians; 600 at most."""
    y = np.cos(OMEGA * X)[:, None]
    # Damping ω0/20 = 4.5 forgets in 1/4.5: a past of 2 begins 0.444 before the data.
    for past, back in ((0.0, 0.0), (2.0, 2 / (OMEGA / 20))):
        expected = (1 + back) * OMEGA / 2.24 + 2
        assert grid_size(X[:, None], y, past) == pytest.approx(expected, abs=2)
    many = np.linspace(0, 1, 9000)
    assert grid_size(many[:, None], np.cos(3000 * many)[:, None], 2.0) == 600
    assert grid_size(X[:, None], (X**2)[:, None], 2.0) == 0


def test_phases_are_what_the_resonators_answer() -> None:
    """cos(Ωx - lag) with the gain 1/|ω² - Ω² + 2jαΩ|; the strongest has amplitude 1."""
    layer = started(dlfm.SecondOrder(), 4)
    with torch.no_grad():
        found = phases(layer, oscillation())
    g = layer.greens_function
    damping, frequency = (g.value(name)[:, 0].tolist() for name in ("damping", "frequency"))
    gains = [
        1 / math.hypot(w**2 - OMEGA**2, 2 * a * OMEGA)
        for a, w in zip(damping, frequency, strict=True)
    ]
    for d in range(4):
        turned = np.cos(OMEGA * X - lag(damping[d], frequency[d]))
        np.testing.assert_allclose(found[:, d], gains[d] / max(gains) * turned, atol=1e-9)


def test_without_an_oscillation_the_spectrum_says_how_fast() -> None:
    """Of two tones of one power the root of the mean square frequency."""
    y = np.stack([np.sin(40 * X), np.sin(120 * X)], axis=1)
    start = Start(X[:, None], y, torch.Generator())
    assert _typical_frequency(start) == pytest.approx(math.sqrt((40**2 + 120**2) / 2), rel=0.05)
    few = Start(X[:2, None], y[:2], torch.Generator())
    assert _typical_frequency(few) == pytest.approx(2 * math.pi / np.ptp(X[:2]))
