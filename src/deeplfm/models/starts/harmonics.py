"""Where frequencies start that carry a phase, and those of waves of that phase.

    of a phase:    next to 0, for its mean rate, and up to half the oscillation, for its drift
    of its waves:  harmonics k, exactly and next to them, and the spectrum below the first of them

Waves next to a harmonic let its amplitude drift. Frequencies of waves are per radian of the phase.
"""

import math
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from deeplfm.layers import FourierLayer
from deeplfm.models.starts.base import Start, Values
from deeplfm.models.starts.spectrum import draw_from, periodogram

_STILL = 0.06  # share of the frequencies next to 0
_REACH = 0.5  # of the oscillation: how fast its rate may change
_HARMONICS, _EXACT = 12, 3  # at most so many, and of so many frequencies one is exactly at one
_BESIDE = 0.7  # resolutions: spread of those next to a harmonic
_BELOW = 0.6  # of the first harmonic: where the spectrum is not the oscillation itself
_SURE = 1e-3  # resolutions: spread of q of a frequency, where it has one; more would turn a phase
_RIDGE = 1e-2

EXACT, SLOW, BESIDE = 0, 1, 2  # groups of waves, each with a prior scale of its own


def about_rest(
    layer: FourierLayer, fastest: float, resolution: float, start: Start
) -> Int[Tensor, " R"]:
    """Frequencies over the first input: 0 marks those next to rest, 1 the others, up to `fastest`.

    Two per resolution, as far as they reach: a drift is then free beyond the data.
    """
    frequencies, generator = layer.frequencies, start.generator
    _, forces, count, _ = frequencies.noise.shape
    still = max(1, round(_STILL * count))
    reach = min(_REACH * fastest, (count - still) * resolution / 2)
    drawn = [
        torch.cat(
            [
                0.25 * resolution * torch.randn(still, generator=generator, dtype=torch.float64),
                0.25 * resolution + reach * spread(count - still, generator),
            ]
        )
        for _ in range(forces)
    ]
    omega = torch.stack(drawn)[None]
    _start(layer, omega, torch.zeros_like(omega), _SURE * resolution, keep=start.keep_lengthscale)
    return (torch.arange(count) >= still).long()


class Waves(NamedTuple):
    """What is expected of the weights of waves with a mean square of 1, and their groups."""

    sizes: Float[Tensor, "G F"]
    groups: Int[Tensor, "G F"]


def about_harmonics(layer: FourierLayer, phase: Values, start: Start) -> Waves:
    """Frequencies of the last layer over the phase, those of each output from its own spectrum."""
    sets, forces, count, _ = layer.frequencies.noise.shape
    most = math.floor(math.pi * (len(phase) - 1) / float(np.ptp(phase)))  # Nyquist
    orders = max(1, min(_HARMONICS, most, count // _EXACT))
    resolution = 2 * math.pi / float(np.ptp(phase))
    carriers, offsets, sizes, groups = [], [], [], []
    for group in range(sets):
        own = start.y if sets == 1 else start.y[:, group : group + 1]
        power = harmonic_power(phase, own, orders)
        for _ in range(forces):
            order, offset, kind = _drawn(power, phase, own, count, resolution, start.generator)
            known = torch.tensor(power)[order]
            crowd = torch.bincount(order[orders:], minlength=orders + 1)[order]
            crowd[:orders] = 1
            carriers.append(order.double())
            offsets.append(offset)
            sizes.append((known / crowd / forces).sqrt().clamp(min=1e-3).repeat(2))
            groups.append(kind.repeat(2))
    shape = (sets, forces, count)
    about = torch.stack(carriers).reshape(shape)
    omega = about + torch.stack(offsets).reshape(shape)
    _start(layer, omega, about, _SURE * resolution, keep=start.keep_hidden)
    return Waves(torch.stack(sizes).reshape(sets, -1), torch.stack(groups).reshape(sets, -1))


def _drawn(
    power: Values,
    phase: Values,
    y: Values,
    count: int,
    resolution: float,
    generator: torch.Generator,
) -> tuple[Int[Tensor, " R"], Float[Tensor, " R"], Int[Tensor, " R"]]:
    """The harmonic of each of `count` frequencies, how far beside it it lies, and its group."""
    orders, left = len(power) - 1, count - (len(power) - 1)
    amplitude = np.sqrt(power)
    drawn = draw_from(np.arange(orders + 1.0), amplitude / amplitude.sum(), left, generator)
    order = torch.cat([torch.arange(1, orders + 1), drawn.long()])
    beside = torch.special.ndtri(spread(left, generator))
    offset = _BESIDE * resolution * beside[torch.randperm(left, generator=generator)]
    slow = drawn == 0
    omega, spectrum = periodogram(phase, y)
    below = omega < _BELOW
    if bool(slow.any()) and spectrum[below].sum() > 0:
        number = int(slow.sum())
        found = draw_from(omega[below], spectrum[below], number, generator)
        within = torch.rand(number, generator=generator, dtype=torch.float64) - 0.5
        offset[slow] = found + float(omega[1] - omega[0]) * within
    kind = torch.where(order == 0, SLOW, BESIDE)
    kind[:orders] = EXACT
    return order, torch.cat([torch.zeros(orders, dtype=torch.float64), offset]), kind


def harmonic_power(phase: Values, y: Values, orders: int) -> Values:
    """The power of each harmonic of the phase [K + 1], averaged over outputs; first of the rest."""
    waves = np.exp(1j * np.outer(phase, np.arange(1, orders + 1)))
    table = np.concatenate([np.ones((len(phase), 1)), waves.real, waves.imag], axis=1)
    power = np.zeros(orders + 1)
    for column in y.T:
        seen = ~np.isnan(column)
        rows = table[seen]
        gram = rows.T @ rows + _RIDGE * np.eye(rows.shape[1])
        weights = np.linalg.solve(gram, rows.T @ column[seen])
        power[0] += ((column[seen] - rows @ weights) ** 2).sum() / max(1, seen.sum())
        power[1:] += (weights[1:].reshape(2, -1) ** 2).sum(0) / 2
    return np.asarray(power / y.shape[1])


def spread(count: int, generator: torch.Generator) -> Float[Tensor, " K"]:
    """One number in each of `count` equal parts of (0, 1)."""
    steps = torch.arange(count, dtype=torch.float64)
    return (steps + torch.rand(count, generator=generator, dtype=torch.float64)) / max(1, count)


def _start(
    layer: FourierLayer,
    omega: Float[Tensor, "G Q R"],
    about: Float[Tensor, "G Q R"],
    std: float,
    *,
    keep: bool,
) -> None:
    """Frequencies over the first input, about carriers; those over others stay what they are.

    In a plane wave others hardly turn: a wave is one of the phase alone.
    """
    frequencies = layer.frequencies
    lengthscale = frequencies.lengthscale().detach().double().clone()
    everywhere = frequencies.noise.double() / lengthscale[:, :, None, :]
    if layer.plane_wave:
        everywhere = 1e-3 * everywhere
    everywhere[..., 0] = omega
    stds = 0.1 / lengthscale[:, :, None, :].expand(everywhere.shape).clone()
    stds[..., 0] = std
    carriers = torch.zeros_like(everywhere)
    carriers[..., 0] = about
    if not keep:
        beside = (omega - about).square().mean(-1).clamp(min=std**2)
        lengthscale[..., 0] = beside.rsqrt()
    frequencies.start(everywhere, stds, lengthscale, carriers)
