"""Where the frequencies of a Fourier layer start, and what is expected at each of them.

Those over the input of a series come from its spectrum: about the dominant oscillation in the first
layer, below it in later ones. Those over hidden functions are one draw of the prior.
"""

import math
from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from deeplfm.layers import FourierLayer
from deeplfm.models.starts.base import Start, Values
from deeplfm.models.starts.oscillation import Oscillation
from deeplfm.models.starts.spectrum import draw_from, periodogram, spectral_frequencies

# Shares of the features about an oscillation; the others are lines of its spectrum.
_STILL, _SMOOTH, _FAR = 0.05, 0.25, 0.35
_REACH, _LITTLE = 0.5, 0.025  # of its frequency: how far is far; how little is expected there
_SLOW = 7  # how much slower than the oscillation the direct dependence on the input starts
_BELOW = 0.6  # of its frequency: where the spectrum is not the oscillation itself


def _near(
    oscillation: Oscillation, count: int, resolution: float, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Frequencies about the oscillation, and the part of it that is expected at each [count].

    Lines of its spectrum, and a smooth drift as fast, go on beyond the data. What is left are beats
    that come early or late: frequencies far off, of which little is expected. A few next to 0 let
    the layer leave state zero: with the offset they cancel the transient of the others.
    """
    bandwidth, steady = oscillation.bandwidth, oscillation.bandwidth == 0
    still = max(1, round(_STILL * count))
    smooth, far = (0 if steady else round(share * count) for share in (_SMOOTH, _FAR))
    lines = max(0, count - still - smooth - far)

    def spread(number: int) -> Tensor:  # over (0, 1), evenly
        steps = torch.arange(number, dtype=torch.float64)
        return (steps + torch.rand(number, generator=generator, dtype=torch.float64)) / number

    # Lines a resolution apart would repeat the first phase after the last: they are widened.
    width = (0.05 if steady else 1.0) * resolution
    offsets = torch.cat(
        [
            0.05 * resolution * torch.randn(still, generator=generator, dtype=torch.float64)
            - oscillation.frequency,
            draw_from(oscillation.offsets, oscillation.amplitude, lines, generator)
            + width * (torch.rand(lines, generator=generator, dtype=torch.float64) - 0.5),
            bandwidth * torch.special.ndtri(spread(smooth)),
            _REACH * oscillation.frequency * (2 * spread(far) - 1),
        ]
    )[:count]
    expected = torch.ones_like(offsets)
    expected[count - far :] = _LITTLE
    return oscillation.frequency + offsets, expected


def _slower(oscillation: Oscillation, shape: Sequence[int], start: Start) -> Tensor:
    """Frequencies of what is beside the oscillation: slow ones, and some of an output's spectrum.

    As many of the latter as the output has power there, up to a half.
    """
    drawn = torch.randn(*shape, generator=start.generator, dtype=torch.float64)
    drawn = drawn * oscillation.frequency / _SLOW
    for group, values in enumerate(drawn.flatten(1)):
        own = start.y if len(drawn) == 1 else start.y[:, group : group + 1]
        omega, power = periodogram(start.x[:, 0], own)
        below = omega < _BELOW * oscillation.frequency
        count = round(min(0.5, power[below].sum()) * len(values))
        if count:
            values[:count] = draw_from(omega[below], power[below], count, start.generator)
            values.copy_(values[torch.randperm(len(values), generator=start.generator)])
    return drawn


def start_frequencies(
    layer: FourierLayer, first: bool, targets: Values, oscillation: Oscillation | None, start: Start
) -> Float[Tensor, " F"] | None:
    """Those of the input from a spectrum, those of hidden inputs from one draw of the prior.

    At the mean of the prior, 0, all features would be the same. Returns prior standard deviations
    of the weights, where they are not 1.
    """
    frequencies, expected = layer.frequencies, None
    lengthscale = frequencies.lengthscale().detach().clone()
    std = 0.1 / lengthscale[:, :, None, :].expand(frequencies.noise.shape)
    omega = frequencies.noise / lengthscale[:, :, None, :]
    if start.series and start.from_spectrum:
        shape, std = omega.shape[:-1], std.clone()
        resolution = 2 * math.pi / float(np.ptp(start.x))
        if oscillation is None:
            drawn = spectral_frequencies(start.x[:, 0], targets, shape, start.generator)
        elif first:
            forces = [
                _near(oscillation, shape[-1], resolution, start.generator) for _ in range(shape[1])
            ]
            drawn = torch.stack([force for force, _ in forces])[None]
            expected = torch.cat([part for _, part in forces for _ in range(2)])
        else:
            drawn = _slower(oscillation, shape, start)
        omega[..., -1], std[..., -1] = drawn, 0.1 * resolution
        if not start.keep_lengthscale:
            lengthscale[..., -1] = drawn.square().mean(-1).rsqrt()
    frequencies.start(omega, std, lengthscale)
    return expected
