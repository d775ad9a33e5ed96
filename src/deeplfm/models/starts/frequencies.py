"""Where the frequencies of a Fourier layer start.

Those over the input of a series come from its spectrum. Those over hidden functions are one draw of
the prior.
"""

import math

import numpy as np

from deeplfm.layers import FourierLayer
from deeplfm.models.starts.base import Start, Values
from deeplfm.models.starts.spectrum import spectral_frequencies


def start_frequencies(layer: FourierLayer, targets: Values, start: Start) -> None:
    """Those of the input from a spectrum, those of hidden inputs from one draw of the prior.

    At the mean of the prior, 0, all features would be the same.
    """
    frequencies = layer.frequencies
    lengthscale = frequencies.lengthscale().detach().clone()
    std = 0.1 / lengthscale[:, :, None, :].expand(frequencies.noise.shape)
    omega = frequencies.noise / lengthscale[:, :, None, :]
    if start.series and start.from_spectrum:
        std = std.clone()
        resolution = 2 * math.pi / float(np.ptp(start.x))
        drawn = spectral_frequencies(start.x[:, 0], targets, omega.shape[:-1], start.generator)
        omega[..., -1], std[..., -1] = drawn, 0.1 * resolution
        if not start.keep_lengthscale:
            lengthscale[..., -1] = drawn.square().mean(-1).rsqrt()
    frequencies.start(omega, std, lengthscale)
