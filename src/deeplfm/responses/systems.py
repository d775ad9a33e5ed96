"""The response of a whole ODE to a wave, a bump, or any force drawn as a sum of them.

    y(x) = ∫ G(x - τ) u(τ) dτ, exact for every Green's function, repeated poles included

Arguments broadcast against the parameters of the Green's function, shape () or [D, P].
`memory` says where the integral starts; G = δ ignores it.
"""

from typing import final

import torch
from torch import Tensor

from deeplfm.greens_functions import Dynamics
from deeplfm.greens_functions.pole_functions import PoleFunction
from deeplfm.responses.bumps import bump_moment
from deeplfm.responses.waves import wave_moment
from deeplfm.shapes import Memory, Number, as_tensors, check_positive


@final
class WaveFunction(PoleFunction):
    """The force e^{jωτ}, as seen by a pole."""

    def __init__(self, x: Tensor, frequency: Tensor, memory: Memory) -> None:
        self.x, self.frequency, self.memory = x, frequency, memory

    @property
    def is_real(self) -> bool:
        return False

    def at(self, pole: Tensor) -> Tensor:
        return self.moment(pole, 0)

    def moment(self, pole: Tensor, order: int) -> Tensor:
        if self.memory == "infinite" or order == 0:
            return wave_moment(self.x, self.frequency, pole, self.memory, order)
        # When e^{-sx} is far below rounding the start is forgotten, and x^n would overflow.
        forgotten = (pole * self.x).detach() > 100
        lag = torch.where(forgotten, torch.zeros_like(self.x), self.x)
        rate = torch.where(forgotten, pole, torch.ones_like(pole))
        return torch.where(
            forgotten,
            wave_moment(self.x, self.frequency, rate, "infinite", order),
            wave_moment(lag, self.frequency, pole, "zero", order),
        )

    def reach(self, pole: Tensor) -> Tensor:
        if self.memory == "infinite":
            return 1 / torch.hypot(*torch.broadcast_tensors(pole, self.frequency))
        return _within_interval(self.x, torch.where(pole > 0, 1 / pole, torch.inf))

    @property
    def longest(self) -> float | None:
        return None if self.memory == "infinite" else _longest(self.x)

    @property
    def arguments(self) -> dict[str, Tensor]:
        return {"x": self.x, "frequency": self.frequency}

    def kept(self, where: Tensor) -> "WaveFunction":
        x = torch.where(where, self.x, torch.zeros_like(self.x))
        frequency = torch.where(where, self.frequency, torch.zeros_like(self.frequency))
        return WaveFunction(x, frequency, self.memory)

    def instant(self) -> Tensor:
        phase = self.frequency * self.x
        return torch.complex(torch.cos(phase), torch.sin(phase))


@final
class BumpFunction(PoleFunction):
    """The force e^{-(τ-z)²/(2ℓ²)}, as seen by a pole."""

    def __init__(self, x: Tensor, center: Tensor, lengthscale: Tensor, memory: Memory) -> None:
        self.x, self.center, self.lengthscale, self.memory = x, center, lengthscale, memory

    @property
    def is_real(self) -> bool:
        return True

    def at(self, pole: Tensor) -> Tensor:
        return self.moment(pole, 0)

    def moment(self, pole: Tensor, order: int) -> Tensor:
        return bump_moment(self.x, self.center, self.lengthscale, pole, self.memory, order)

    def reach(self, pole: Tensor) -> Tensor:
        m = pole * self.lengthscale - (self.x - self.center) / self.lengthscale
        lag = self.lengthscale * torch.where(m < 0, 1 - m, 1 / (1 + m.abs()))
        return lag if self.memory == "infinite" else _within_interval(self.x, lag)

    @property
    def longest(self) -> float | None:
        return None if self.memory == "infinite" else _longest(self.x)

    @property
    def arguments(self) -> dict[str, Tensor]:
        return {"x": self.x, "center": self.center, "lengthscale": self.lengthscale}

    def kept(self, where: Tensor) -> "BumpFunction":
        x, center = (torch.where(where, t, torch.zeros_like(t)) for t in (self.x, self.center))
        scale = torch.where(where, self.lengthscale, torch.ones_like(self.lengthscale))
        return BumpFunction(x, center, scale, self.memory)

    def instant(self) -> Tensor:
        return torch.exp(-(((self.x - self.center) / self.lengthscale) ** 2) / 2)


def system_wave_response(
    greens_function: Dynamics,
    x: Number,
    frequency: Number,
    memory: Memory = "infinite",
    *,
    trailing: int = 0,
) -> Tensor:
    """∫ G(x - τ) e^{jωτ} dτ; complex. `trailing` dimensions of size 1 follow the parameters."""
    greens_function.check_memory(memory)
    x, frequency = as_tensors({"x": x, "frequency": frequency})
    return greens_function.respond(WaveFunction(x, frequency, memory), trailing)


def system_bump_response(
    greens_function: Dynamics,
    x: Number,
    center: Number,
    lengthscale: Number,
    memory: Memory = "infinite",
    *,
    trailing: int = 0,
) -> Tensor:
    """∫ G(x - τ) e^{-(τ-z)²/(2ℓ²)} dτ; real. `trailing` is as for waves."""
    greens_function.check_memory(memory)
    x, center, lengthscale = as_tensors({"x": x, "center": center, "lengthscale": lengthscale})
    check_positive("lengthscale", lengthscale, "")
    return greens_function.respond(BumpFunction(x, center, lengthscale, memory), trailing)


def _longest(x: Tensor) -> float:
    return float(x.detach().abs().max()) if x.numel() else 0.0


def _within_interval(x: Tensor, lag: Tensor) -> Tensor:
    """Lags cut to x, as zero memory has none that are longer; before the origin |x| itself."""
    return torch.where(x < 0, x.abs(), torch.minimum(*torch.broadcast_tensors(x.abs(), lag)))
