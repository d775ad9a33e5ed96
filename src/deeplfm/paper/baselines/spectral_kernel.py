"""The covariance of several outputs of a series, as a mixture of spectral components.

    k_de(τ) = Σ_q Re[(A_q A_qᴴ)_de e^{jω_q τ}] e^{-½ (σ_q τ)²}

A_q [D, R] is complex: each component is coregionalised with phases, so that outputs may lag behind
each other (the cross-spectral mixture). With a real A_q outputs move together or not at all.
"""

import math
from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from deeplfm.models.starts.oscillation import dominant_oscillation
from deeplfm.models.starts.spectrum import periodogram

Values = NDArray[np.float64]

_LEAST_WIDTH = 1.0  # width of a spectral component that is coherent over all of [0, 1]
_WIDER = 4.0  # factor on the width of components that stand at a harmonic for the second time
_FREE = 1.5  # factor by which frequencies may move from their start
_REST = 0.2  # amplitude of the component for what no harmonic explains
_LEAST = 0.03  # amplitude of components that the data do not show


@final
@dataclass(frozen=True)
class Layout:
    """The places of the parameters of Q components of rank R for D outputs in one vector.

    [log ω: Q] [log σ: Q] [Re A: Q D R] [Im A: Q D R] [log noise: D]. The first component has
    ω = 0 whatever its number is: it is for trends. Without phases Im A is not used.
    """

    components: int
    outputs: int
    rank: int
    phases: bool

    def unpacked(self, theta: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """ω [Q], σ [Q], Re B and Im B [Q, D, D] with B = A Aᴴ, and the noise variances [D]."""
        q, shape = self.components, (self.components, self.outputs, self.rank)
        size = math.prod(shape)
        frequency, width, real, imaginary, noise = theta.split([q, q, size, size, self.outputs])
        moving = torch.arange(q, device=theta.device) > 0
        omega = torch.where(moving, frequency.exp(), torch.zeros_like(frequency))
        re, im = real.view(shape), imaginary.view(shape) * float(self.phases)
        in_phase, out_of_phase = re @ re.mT + im @ im.mT, im @ re.mT - re @ im.mT
        return omega, width.exp(), in_phase, out_of_phase, noise.exp()

    def covariances(self, theta: Tensor, lags: Tensor) -> Tensor:
        """k_de(τ) [U, D, D] at lags τ [U], without noise."""
        omega, width, in_phase, out_of_phase, _ = self.unpacked(theta)
        envelope = torch.exp((lags[:, None] * width).square() / -2)
        angle = lags[:, None] * omega
        covariance = (envelope * torch.cos(angle)) @ in_phase.flatten(1)
        if self.phases:
            covariance = covariance - (envelope * torch.sin(angle)) @ out_of_phase.flatten(1)
        return covariance.view(-1, self.outputs, self.outputs)


def start(layout: Layout, x: Values, y: Values, seed: int) -> tuple[Tensor, Tensor]:
    """Start of the parameters [K], and their bounds [K, 2], for times x [N] and targets y [N, D].

    Components start at harmonics of the oscillation that the outputs share, with the amplitudes
    and phases of a regression on its phase. Without such an oscillation they start at the
    strongest frequencies, with random phases.
    """
    random = np.random.default_rng(seed)
    count = layout.components - 1
    oscillation = dominant_oscillation(x, y)
    shape = (layout.components, layout.outputs, layout.rank)
    amplitude = np.zeros(shape, dtype=np.complex128)
    amplitude += _LEAST * (random.normal(size=shape) + 1j * random.normal(size=shape))
    if oscillation is not None:
        # Harmonics that the sampling can show. More components start at them again, but wider.
        shown = max(1, int(periodogram(x, y)[0][-1] / oscillation.frequency))
        again, order = np.divmod(np.arange(count), shown)
        omega = (order + 1) * oscillation.frequency
        width = np.maximum((order + 1) * oscillation.bandwidth, 2 * _LEAST_WIDTH) * _WIDER**again
        harmonics = _harmonics(oscillation.values, y, min(count, shown)) / math.sqrt(2)
        amplitude[1 : 1 + len(harmonics), :, 0] += harmonics
    else:
        omega, width = _peaks(x, y, count), np.full(count, 2 * _LEAST_WIDTH)
        amplitude[1:, :, 0] *= 0.5 / (_LEAST * max(1, count))
    amplitude[0] *= _REST / _LEAST
    first = omega[0] if len(omega) else 2 * math.pi
    frequencies = np.log(np.concatenate([[first], omega]))
    widths = np.log(np.concatenate([[first / 2], width]))
    real, imaginary = amplitude.real.reshape(-1), amplitude.imag.reshape(-1)
    noise = np.full(layout.outputs, math.log(0.1))
    theta = np.concatenate([frequencies, widths, real, imaginary, noise])
    free = math.log(_FREE)
    bounds = [(f - free, f + free) for f in frequencies]
    bounds += [(math.log(_LEAST_WIDTH / 4), math.log(100 * first))] * layout.components
    bounds += [(-5.0, 5.0)] * (2 * len(real))
    bounds += [(math.log(1e-5), math.log(2.0))] * layout.outputs
    return torch.tensor(theta), torch.tensor(bounds)


def _harmonics(phase: NDArray[np.complex128], y: Values, count: int) -> NDArray[np.complex128]:
    """a [count, D] with y ≈ Re Σ_k a_k e^{jkφ}, by ridge regression over the observed rows.

    phase: e^{jφ} [N].
    """
    turns = np.cumprod(np.broadcast_to(phase[:, None], (len(phase), count)), axis=1)
    waves = np.concatenate([turns.real, -turns.imag], axis=1)
    amplitudes = np.zeros((count, y.shape[1]), dtype=complex)
    for output, column in enumerate(y.T):
        seen = ~np.isnan(column)
        gram = waves[seen].T @ waves[seen] + np.eye(2 * count)
        solved = np.linalg.solve(gram, waves[seen].T @ column[seen])
        amplitudes[:, output] = solved[:count] + 1j * solved[count:]
    return amplitudes


def _peaks(x: Values, y: Values, count: int) -> Values:
    """Frequencies [count] that divide the spectrum's power into even shares."""
    omega, power = periodogram(x, y)
    levels = (np.arange(count) + 0.5) / max(1, count)
    return np.asarray(omega[np.searchsorted(power.cumsum(), levels).clip(max=len(omega) - 1)])
