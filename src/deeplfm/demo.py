"""The demonstration: a latent force drives linear ODEs, and the closed forms meet the quadrature.

Draws a force, passes it through first- and second-order systems with both memories, measures the
error against brute-force integration and draws what the paper shows in figure 6: a fast normalised
filter leaves the force as it is, a slow one changes it beyond recognition.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import get_args

import torch
from torch import Tensor

from deeplfm.errors import NumericalError
from deeplfm.forces import ForcePath, SquaredExponential
from deeplfm.greens_functions import FirstOrder, GreensFunction, SecondOrder
from deeplfm.plotting import Curve, plot_filters, save_figure
from deeplfm.responses import path_response, quadrature
from deeplfm.shapes import Memory

ERROR_BAR = 1e-9  # relative to the largest response of the system


@dataclass(frozen=True)
class Check:
    """One line of the demonstration's table."""

    system: str
    memory: Memory
    largest: float
    error: float


@dataclass(frozen=True)
class Demonstration:
    """What the demonstration found and where its picture is."""

    checks: tuple[Check, ...]
    figure: Path


def systems() -> dict[str, GreensFunction]:
    """The paper's two decays, and an oscillator in its three regimes; all normalised."""
    return {
        "first order, γ = 200": FirstOrder(200.0, normalised=True),
        "first order, γ = 0.01": FirstOrder(0.01, normalised=True),
        "second order, α = 3, ω0 = 25": SecondOrder(3.0, 25.0, normalised=True),
        "second order, critical, 10": SecondOrder(10.0, 10.0, normalised=True),
        "second order, α = 20, ω0 = 8": SecondOrder(20.0, 8.0, normalised=True),
    }


def demonstrate(out: Path, seed: int = 0) -> Demonstration:
    """Run it; a `NumericalError` says so if a closed form and the quadrature disagree."""
    generator = torch.Generator().manual_seed(seed)
    force = SquaredExponential(lengthscale=0.1).draw(1, 64, generator)
    checks = tuple(
        _check(name, system, force, memory)
        for name, system in systems().items()
        for memory in get_args(Memory)
    )
    worst = max(checks, key=lambda check: check.error)
    if not worst.error <= ERROR_BAR:
        raise NumericalError(
            f"closed forms must agree with quadrature to {ERROR_BAR:g}; {worst.system}, "
            f"{worst.memory} memory is off by {worst.error:.1e}. Please report this."
        )
    figure = out / "forces_and_responses.png"
    with torch.no_grad():
        _draw(force, figure)
    return Demonstration(checks, figure)


def _check(name: str, system: GreensFunction, force: ForcePath, memory: Memory) -> Check:
    times = torch.linspace(0.05, 1, 4, dtype=torch.float64)

    def values(tau: Tensor) -> Tensor:
        with torch.no_grad():
            return force(tau.reshape(-1, 1)).reshape(tau.shape)

    with torch.no_grad():
        exact = path_response(system, force, times[:, None], memory)[0, :, 0, 0]
    summed = quadrature(system, values, times, memory)
    largest = summed.abs().max().item()
    return Check(name, memory, largest, (exact - summed).abs().max().item() / largest)


def _draw(force: ForcePath, path: Path) -> None:
    times = torch.linspace(0, 1, 500, dtype=torch.float64)
    lags = torch.linspace(0, 0.5, 500, dtype=torch.float64)
    filters, outputs = [], []
    for name, system in systems().items():
        filters.append(Curve(name, system(lags).numpy()))
        response = path_response(system, force, times[:, None], "infinite")
        outputs.append(Curve(name, response[0, :, 0, 0].numpy()))
    latent = Curve("latent force $u$", force(times[:, None])[0, :, 0].numpy())
    save_figure(plot_filters(lags.numpy(), filters, times.numpy(), latent, outputs), path)
