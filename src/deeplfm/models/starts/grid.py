"""Where the first layer of a series starts: a grid of forces, and resonators that they drive.

    u = A cos φ(x):  each hidden function is the phase of the oscillation, at a lag of its own

A resonator rings: a force that kicks it now and then keeps it in phase with the data, at little
cost in KL, and it goes on ringing where the data end.
"""

import logging
import math

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from deeplfm.greens_functions import GreensFunction
from deeplfm.layers import InducingLayer
from deeplfm.models.starts.base import Start, Values
from deeplfm.models.starts.oscillation import Oscillation, dominant_oscillation
from deeplfm.models.starts.spectrum import enough, periodogram

logger = logging.getLogger(__name__)

_QUALITY = 20  # ω0/α of the resonators: they ring for about three periods
_SLOW = 7  # how much slower than the oscillation is the function beside the resonators
_RATIO = 0.8  # spacing of a grid over the lengthscale: q reaches 98 % and more
_TURN = 1.8  # ω0 ℓ: forces no faster than the oscillation needs
_WANTED, _FASTEST = 2.8, 3.6  # ω0 ℓ that a grid should allow; above which it hardly drives it

_MOST = 600  # points that a grid takes unasked: q has a covariance of all of them


def grid_size(x: Values, y: Values, past: float) -> int:
    """How many points of a grid a force needs to drive the oscillation of a series; 0 if none."""
    oscillation = dominant_oscillation(x[:, 0], y) if np.ptp(x) > 0 else None
    if oscillation is None:
        return 0
    span = float(np.ptp(x))
    back = past / _damping(oscillation.frequency, past, span)
    needed = math.ceil((span + back) * oscillation.frequency / (_WANTED * _RATIO)) + 1
    return min(needed, _MOST)


def _damping(frequency: float, past: float, span: float) -> float:
    """The damping of the resonators; the grid reaches back until they forget what was before."""
    return max(frequency / _QUALITY, past / span)


def start_on_grid(
    layer: InducingLayer,
    oscillation: Oscillation | None,
    start: Start,
    *,
    past: float,
    own_physics: bool,
    keep_lengthscale: bool,
) -> None:
    """The first layer of a series: a regular grid, from before the data to their end."""
    low, high = float(start.x.min()), float(start.x.max())
    span, count = high - low, layer.posterior.inducing_inputs.shape[-2]
    frequency = oscillation.frequency if oscillation else _typical_frequency(start)
    g = layer.greens_function
    if own_physics:
        damping = _damping(frequency, past, span) if oscillation else None
        g.match_oscillation(*_resonators((layer.num_outputs, 1), frequency, damping))
    back = 0.0
    if layer.memory == "infinite" and g.order > 0:
        back = min(past / float(g.poles().real.min()), span)
    grid = torch.linspace(low - back, high, count, dtype=torch.float64)
    layer.posterior.inducing_inputs.copy_(grid[:, None])
    if keep_lengthscale:
        return
    spacing = (span + back) / max(1, count - 1)
    lengthscale = max(_TURN / frequency, spacing / _RATIO)
    if oscillation is not None and frequency * lengthscale > _FASTEST:
        needed = math.ceil((span + back) * frequency / (_FASTEST * _RATIO)) + 1
        logger.warning(
            "%d inducing points are few for %.0f periods: about %d would follow them",
            count,
            (span + back) * frequency / (2 * math.pi),
            needed,
        )
    layer.posterior.prior.set_lengthscale(torch.tensor([lengthscale], dtype=torch.float64))


def _typical_frequency(start: Start) -> float:
    if not enough(start.y):
        return 2 * math.pi / float(np.ptp(start.x))
    omega, power = periodogram(start.x[:, 0], start.y)
    return math.sqrt(float((power * omega**2).sum()))


def _resonators(
    shape: tuple[int, int], frequency: float, alpha: float | None
) -> tuple[Float[Tensor, "D P"], Float[Tensor, "D P"]]:
    """Frequencies and dampings about the oscillation, tuned apart so that their phases differ.

    At ω0 a resonator with ω_d² = ω0² + 2αω0 cot ψ lags by ψ. Of three or more functions the first
    is slow: it stands beside the oscillation, where the mean function puts time itself.
    """
    outputs = shape[0]
    tuned, damping = torch.full(shape, frequency), torch.full(shape, 1.25 * frequency)
    if alpha is not None:
        slow = 1 if outputs >= 3 else 0
        for d in range(slow, outputs):
            lag = math.pi * (d - slow + 0.5) / (outputs - slow)
            squared = frequency**2 + 2 * alpha * frequency / math.tan(lag)
            tuned[d], damping[d] = math.sqrt(max(squared, (frequency / 2) ** 2)), alpha
        tuned[:slow], damping[:slow] = frequency / _SLOW, max(alpha, frequency / _SLOW)
    return tuned.to(torch.float64), damping.to(torch.float64)


def phases(layer: InducingLayer, oscillation: Oscillation) -> Float[Tensor, "N D"]:
    """What the outputs do when a force is the oscillation; the strongest has amplitude 1."""
    g: GreensFunction = layer.greens_function
    at = torch.full((1, 1, 1), 1j * oscillation.frequency, dtype=torch.complex128)
    gain = g.transfer(at)[:, 0, 0].expand(layer.num_outputs)
    gain = gain * layer.sensitivities.sum(1)
    gain = gain / gain.abs().max()
    return (torch.tensor(oscillation.values)[:, None] * gain).real
