"""The shapes of `sums.py`: arguments of every sum at sizes that users have.

R = M = B = 100 as in the paper; "toy" is 500 points of one output, "physio" 1000 points of three,
"protein" batches of 200 rows with nine inputs. S is 10 samples on a CPU, 100 on CUDA.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

import deeplfm as dlfm
from deeplfm import sums
from deeplfm.forces import SMOOTH
from deeplfm.forces.numbers import random_numbers
from deeplfm.greens_functions import FixedDynamics, GreensFunction
from deeplfm.sums import Sum
from deeplfm.variational.gaussians import FullGaussian

WAVES = 100


@dataclass(frozen=True)
class Maker:
    """Random numbers of one type on one device; those with a gradient are remembered."""

    device: str
    dtype: torch.dtype
    samples: int
    leaves: list[Tensor] = field(default_factory=list)

    def rand(self, *shape: int, low: float = -1.0, high: float = 1.0, learn: bool = True) -> Tensor:
        generator = torch.Generator().manual_seed(sum(shape))
        numbers = low + (high - low) * torch.rand(shape, generator=generator)
        numbers = numbers.to(self.device, self.dtype).requires_grad_(learn)
        if learn:
            self.leaves.append(numbers)
        return numbers

    def ode(self, g: GreensFunction, outputs: int, inputs: int) -> FixedDynamics:
        """Its numbers as leaves: what makes them of parameters is no part of a sum."""
        numbers = g.tiled(outputs, inputs).to(self.device, self.dtype).fixed()
        factors = []
        for factor in numbers.factors:
            parts = [part.detach().requires_grad_() for part in factor]
            self.leaves.extend(parts)
            factors.append(type(factor)(*parts))
        return FixedDynamics(tuple(factors), numbers.normalised, numbers.stable)


@dataclass(frozen=True)
class Case:
    """A sum at one shape; `options` are its keyword arguments."""

    of: Sum[Any, Any]
    make: Callable[[Maker], tuple[Any, ...]]
    dtype: torch.dtype = torch.float32
    samples: int | None = None  # None: those of a training step on the device
    options: dict[str, Any] = field(default_factory=dict)
    gradients: bool = True
    devices: tuple[str, ...] = ("cpu", "cuda")


def fourier(
    g: GreensFunction, points: int, own: int, shared: int, outputs: int
) -> Callable[[Maker], tuple[Any, ...]]:
    """The last layer of DLFM-RFF: hidden functions of each sample, and inputs that all share."""

    def make(m: Maker) -> tuple[Any, ...]:
        inputs = own + shared
        x = m.rand(m.samples if own else 1, points, own or shared, low=0.0, learn=bool(own))
        return (
            x,
            m.rand(points, shared, low=0.0, learn=False) if own and shared else None,
            m.ode(g, outputs, inputs),
            m.rand(1, outputs, 1, WAVES, inputs, low=-15.0, high=15.0),
            m.rand(outputs, inputs, 1),
            None,
            None,
            m.rand(m.samples, outputs, 2 * WAVES),
            m.rand(outputs),
            "zero",
        )

    return make


def forces(
    points: int, inputs: int, outputs: int, *, own: bool = True
) -> Callable[[Maker], tuple[Any, ...]]:
    """A layer of DLFM-VIP: a drawn force through ODEs of first order."""

    def make(m: Maker) -> tuple[Any, ...]:
        return (
            m.ode(dlfm.FirstOrder(3.0), outputs, inputs),
            m.rand(m.samples if own else 1, points, inputs),
            m.rand(1, 1, WAVES, inputs, low=-4.0, high=4.0),
            m.rand(1, 1, WAVES, low=0.0, high=6.0, learn=False),
            m.rand(m.samples, 1, WAVES),
            m.rand(1, WAVES, inputs),
            m.rand(1, inputs, low=0.2, high=0.5),
            m.rand(m.samples, 1, WAVES),
            m.rand(outputs, 1),
            "infinite",
        )

    return make


def bumps(
    g: GreensFunction, points: int, inputs: int, outputs: int, *, own: bool, span: float = 1.0
) -> Callable[[Maker], tuple[Any, ...]]:
    def make(m: Maker) -> tuple[Any, ...]:
        return (
            m.ode(g, outputs, inputs),
            m.rand(m.samples if own else 1, points, inputs, high=span),
            m.rand(1, WAVES, inputs, high=span),
            m.rand(1, inputs, low=0.2, high=0.4),
            m.rand(m.samples, outputs, 1, WAVES),
            "infinite",
        )

    return make


def planes(points: int, inputs: int, outputs: int, *, own: bool) -> Callable[[Maker], Any]:
    def make(m: Maker) -> tuple[Any, ...]:
        return (
            m.rand(m.samples if own else 1, points, inputs),
            m.rand(1, WAVES, inputs, low=-9.0, high=9.0),
            m.rand(m.samples, WAVES, outputs),
            m.rand(m.samples, WAVES, outputs),
        )

    return make


def matheron(forces: int, points: int, inputs: int) -> Callable[[Maker], tuple[Any, ...]]:
    def make(m: Maker) -> tuple[Any, ...]:
        like = torch.zeros((), dtype=m.dtype, device=m.device)
        whitened = FullGaussian((forces, points), like=like)
        # As leaves: what makes them of parameters is no part of a sum.
        parts = [part.detach().requires_grad_(part.requires_grad) for part in whitened.parts()]
        m.leaves.extend(part for part in parts if part.requires_grad)
        generator = torch.Generator(device=m.device).manual_seed(0)
        numbers = random_numbers(m.samples, WAVES, whitened.shift, inputs, SMOOTH, generator)
        return (
            SMOOTH,
            m.rand(1, points, inputs),
            m.rand(1, inputs, low=0.2, high=0.5),
            m.rand(forces, low=0.5, high=1.0),
            *parts,
            torch.full_like(like, 1e-4),
            *numbers,
        )

    return make


def every_bump(points: int) -> Callable[[Maker], tuple[Any, ...]]:
    def make(m: Maker) -> tuple[Any, ...]:
        g = m.ode(dlfm.SecondOrder(0.5, 20.0), 3, 1)
        x, z = m.rand(points, 1, learn=False), m.rand(1, WAVES, 1, learn=False)
        return g, x, z, m.rand(1, 1, low=0.05, high=0.1, learn=False), "infinite"

    return make


def density(points: int, outputs: int) -> Callable[[Maker], tuple[Any, ...]]:
    def make(m: Maker) -> tuple[Any, ...]:
        y = m.rand(points, outputs, learn=False)
        f, variance = m.rand(m.samples, points, outputs), m.rand(outputs, low=0.1, high=0.5)
        return f, y, torch.ones_like(y, dtype=torch.bool), variance, points

    return make


def divergence(outputs: int, inputs: int) -> Callable[[Maker], tuple[Any, ...]]:
    def make(m: Maker) -> tuple[Any, ...]:
        shape = (outputs, 1, WAVES, inputs)
        noise = m.rand(*shape, learn=False)
        return m.rand(*shape), m.rand(*shape), noise, m.rand(outputs, 1, inputs, low=0.2)

    return make


def markov(
    rows: int, outputs: int, oscillators: int, *, series: int = 1, smooth: bool = False
) -> Callable[..., Any]:
    """Records at even steps, all of them observed, whose physics is learnt; or smoothed."""

    def make(m: Maker) -> tuple[Any, ...]:
        nothing = torch.zeros(1, 0, 0, dtype=m.dtype, device=m.device)
        model = (
            m.rand(1, oscillators, low=0.001, high=0.1),
            m.rand(1, oscillators, low=0.0, high=3.0),
            nothing,
            nothing,
            nothing[0],
            m.rand(outputs, 2 * oscillators),
            m.rand(1, 1, outputs, low=0.1),
            m.rand(series, rows, outputs, 1, learn=False),
            torch.zeros(series, rows, dtype=torch.int32, device=m.device),
            torch.ones(series, rows, outputs, dtype=torch.bool, device=m.device),
        )
        return (*model, model[5]) if smooth else model

    return make


FIRST, SECOND, APPROXIMATE = dlfm.FirstOrder(3.0), dlfm.SecondOrder(2.0, 9.0), {"approximate": True}
F64 = torch.float64
CASES: dict[str, Case] = {
    "physio, layer 2": Case(sums.fourier_sum, fourier(FIRST, 1000, 3, 1, 3)),
    "physio, layer 1": Case(sums.fourier_sum, fourier(FIRST, 1000, 0, 1, 3)),
    "protein, layer 2": Case(sums.fourier_sum, fourier(FIRST, 200, 3, 9, 1)),
    "physio, forces": Case(sums.force_response_sum, forces(1000, 3, 3), options=APPROXIMATE),
    "physio, forces of layer 1": Case(
        sums.force_response_sum, forces(1000, 1, 3, own=False), options=APPROXIMATE
    ),
    "toy, forces of layer 1": Case(
        sums.force_response_sum, forces(500, 1, 3, own=False), options=APPROXIMATE
    ),
    "toy, forces": Case(sums.force_response_sum, forces(500, 3, 1), options=APPROXIMATE),
    "physio, bumps": Case(sums.bump_sum, bumps(FIRST, 1000, 3, 3, own=True), options=APPROXIMATE),
    "physio, predicted bumps": Case(
        sums.bump_sum, bumps(FIRST, 149, 3, 3, own=True), F64, 100, APPROXIMATE, False, ("cpu",)
    ),
    "physio, resonators": Case(
        sums.bump_sum, bumps(SECOND, 1000, 1, 3, own=False), options=APPROXIMATE, devices=("cpu",)
    ),
    "physio, resonators of each sample": Case(
        sums.bump_sum, bumps(SECOND, 1000, 1, 3, own=True), options=APPROXIMATE, devices=("cpu",)
    ),
    "long record, predicted bumps": Case(
        sums.bump_sum,
        bumps(dlfm.FirstOrder(8.0), 4000, 1, 3, own=True, span=80.0),
        *(F64, 10, APPROXIMATE, False, ("cpu",)),
    ),
    "physio, waves": Case(sums.plane_wave_sum, planes(1000, 3, 3, own=True)),
    "toy, waves": Case(sums.plane_wave_sum, planes(500, 3, 1, own=True)),
    "100 inducing points": Case(sums.matheron_draw, matheron(1, 100, 3)),
    "50 inducing points": Case(sums.matheron_draw, matheron(1, 50, 1)),
    "3 forces of 100 points": Case(sums.matheron_draw, matheron(3, 100, 3)),
    "1000 rows": Case(sums.bumps_at, every_bump(1000), gradients=False, devices=("cpu",)),
    "physio, density": Case(sums.gaussian_density, density(1000, 3)),
    "toy, density": Case(sums.gaussian_density, density(500, 1)),
    "physio, frequencies": Case(sums.frequency_kl, divergence(3, 4)),
    "1000 × 3, 30 oscillators": Case(
        sums.markov_evidence, markov(1000, 3, 30), F64, devices=("cpu",)
    ),
    "1000 × 3, 30 oscillators, smoothed": Case(
        sums.markov_smooth, markov(1000, 3, 30, smooth=True), F64, gradients=False, devices=("cpu",)
    ),
    "1000 series of 100 × 3, 10 oscillators": Case(
        sums.markov_evidence, markov(100, 3, 10, series=1000), F64, devices=("cuda",)
    ),
    "1000 series of 100 × 3, 10 oscillators, smoothed": Case(
        sums.markov_smooth,
        markov(100, 3, 10, series=1000, smooth=True),
        *(F64, 1, {}, False, ("cuda",)),
    ),
}
CASES["1000 rows"].options.update(APPROXIMATE)
