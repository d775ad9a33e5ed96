"""The covariance of several outputs of a series, as a mixture of spectral components.

    k_de(τ) = Σ_q Re[(A_q A_qᴴ)_de e^{jω_q τ}] e^{-½ (σ_q τ)²}

A_q [D, R] complex: each component is coregionalised with phases, so that outputs may lag behind
each other (the cross-spectral mixture). With real A_q outputs move together or not at all.
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

_LEAST_WIDTH = 1.0  # of spectral components: coherent over all of [0, 1]
_WIDER = 4.0  # components that stand at a harmonic for the second time
_FREE = 1.5  # how far frequencies may move from their start, as a factor
_REST = 0.2  # amplitudes of what no harmonic explains
_LEAST = 0.03  # amplitudes of components that the data do not show


@final
@dataclass(frozen=True)
class Layout:
    """Q components of rank R for D outputs, and where their numbers are in one vector.

    [log ω: Q] [log σ: Q] [Re A: Q D R] [Im A: Q D R] [log noise: D]; the first component has
    ω = 0 whatever its number is: trends. Without phases Im A is not used.
    """

    components: int
    outputs: int
    rank: int
    phases: bool

    def parts(self, theta: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """ω [Q], σ [Q], Re B and Im B [Q, D, D] of B = A Aᴴ, noise variances [D]."""
        q, shape = self.components, (self.components, self.outputs, self.rank)
        size = math.prod(shape)
        frequency, width, real, imaginary, noise = theta.split([q, q, size, size, self.outputs])
        moving = torch.arange(q, device=theta.device) > 0
        omega = torch.where(moving, frequency.exp(), torch.zeros_like(frequency))
        re, im = real.view(shape), imaginary.view(shape) * float(self.phases)
        together = re @ re.mT + im @ im.mT
        return omega, width.exp(), together, im @ re.mT - re @ im.mT, noise.exp()

    def table(self, theta: Tensor, lags: Tensor) -> Tensor:
        """k_de(τ) [U, D, D] at lags [U], without noise."""
        omega, width, real, imaginary, _ = self.parts(theta)
        fade = torch.exp((lags[:, None] * width).square() / -2)
        turn = lags[:, None] * omega
        found = (fade * torch.cos(turn)) @ real.flatten(1)
        if self.phases:
            found = found - (fade * torch.sin(turn)) @ imaginary.flatten(1)
        return found.view(-1, self.outputs, self.outputs)


def start(layout: Layout, x: Values, y: Values, seed: int) -> tuple[Tensor, Tensor]:
    """Parameters and their bounds [K, 2]: harmonics of the oscillation that outputs share.

    Amplitudes and phases are those of a regression on the phase of that oscillation; without one,
    components start at the strongest frequencies, with random phases.
    """
    random = np.random.default_rng(seed)
    count = layout.components - 1
    found = dominant_oscillation(x, y)
    shape = (layout.components, layout.outputs, layout.rank)
    amplitude = np.zeros(shape, dtype=np.complex128)
    amplitude += _LEAST * (random.normal(size=shape) + 1j * random.normal(size=shape))
    if found is not None:
        # Harmonics that the sampling can show; what is left begins again with them, wider.
        shown = max(1, int(periodogram(x, y)[0][-1] / found.frequency))
        again, order = np.divmod(np.arange(count), shown)
        omega = (order + 1) * found.frequency
        width = np.maximum((order + 1) * found.bandwidth, 2 * _LEAST_WIDTH) * _WIDER**again
        known = _harmonics(found.values, y, min(count, shown)) / math.sqrt(2)
        amplitude[1 : 1 + len(known), :, 0] += known
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
    """a [count, D] with y ≈ Re Σ_k a_k e^{jkφ}: ridge regression over what was observed."""
    turns = np.cumprod(np.broadcast_to(phase[:, None], (len(phase), count)), axis=1)
    waves = np.concatenate([turns.real, -turns.imag], axis=1)
    found = np.zeros((count, y.shape[1]), dtype=complex)
    for output, column in enumerate(y.T):
        seen = ~np.isnan(column)
        gram = waves[seen].T @ waves[seen] + np.eye(2 * count)
        solved = np.linalg.solve(gram, waves[seen].T @ column[seen])
        found[:, output] = solved[:count] + 1j * solved[count:]
    return found


def _peaks(x: Values, y: Values, count: int) -> Values:
    """Frequencies at even shares of the spectrum's power."""
    omega, power = periodogram(x, y)
    levels = (np.arange(count) + 0.5) / max(1, count)
    return np.asarray(omega[np.searchsorted(power.cumsum(), levels).clip(max=len(omega) - 1)])
