"""The covariance of the spectral mixture, term by term, from the vector of its parameters."""

import math

import numpy as np
from numpy.typing import NDArray

from deeplfm.paper.baselines.spectral_kernel import Layout

Values = NDArray[np.float64]


def spectral_covariance(layout: Layout, theta: Values, lag: float, d: int, e: int) -> float:
    """k_de(lag), term by term."""
    q, shape = layout.components, (layout.components, layout.outputs, layout.rank)
    size = math.prod(shape)
    omega, sigma = np.exp(theta[:q]), np.exp(theta[q : 2 * q])
    omega[0] = 0
    A = theta[2 * q : 2 * q + size].reshape(shape).astype(complex)
    if layout.phases:
        A = A + 1j * theta[2 * q + size : 2 * q + 2 * size].reshape(shape)
    total = 0.0
    for k in range(q):
        joint = (A[k] @ A[k].conj().T)[d, e]
        wave = (joint * np.exp(1j * omega[k] * lag)).real
        total += wave * math.exp(-((sigma[k] * lag) ** 2) / 2)
    return float(total)
