"""Prior paths of a state at the rows of a timeline, one step after the other.

    z(t + Δ) = e^{(-λ + jω)Δ} z(t) + noise,    w(t + Δ) = Φ(Δ) w(t) + noise of covariance Q(Δ)

Quick, but no functions of time: what is drawn at a row depends on all rows before it. `bridges`
draws functions.
"""

import numpy as np
import torch
from jaxtyping import Float

from deeplfm.statespace.system import System
from deeplfm.statespace.timeline import Timeline, Values

_CHUNK = 2**21  # random numbers that are held at a time


def row_paths(
    system: System,
    timeline: Timeline,
    count: int,
    random: np.random.Generator,
    faster: Float[torch.Tensor, "B N"] | None = None,
) -> Float[np.ndarray, "N D S"]:
    """`count` draws of all outputs at the rows of the first series of a timeline, without noise.

    faster: how much faster the clock of the oscillators runs on the step to each row.
    """
    with torch.no_grad():
        decay, turn, phi, diffusion, start, step = (
            part.numpy() for part in system.moves_between(timeline, faster)
        )
    which, (outputs, states) = step[0], system.loadings.shape
    modes = decay.shape[1]
    wave = np.exp(-decay + 1j * turn)  # [T, K]
    fresh = np.sqrt(-np.expm1(-2 * decay))
    roots = _roots(diffusion)
    loadings = system.loadings.detach().numpy()
    found = np.empty((len(which), outputs, count))
    z = w = None
    size = max(1, _CHUNK // max(1, states * count))
    for first in range(0, len(which), size):
        noise = random.standard_normal((min(size, len(which) - first), states, count))
        for k, drawn in enumerate(noise, start=first):
            wind, push = drawn[:modes] + 1j * drawn[modes : 2 * modes], drawn[2 * modes :]
            at = which[k]
            if z is None or w is None:
                z, w = wind, _roots(start[None])[0] @ push
            else:
                z = wave[at][:, None] * z + fresh[at][:, None] * wind
                w = phi[at] @ w + roots[at] @ push
            found[k] = loadings @ np.concatenate([z.real, z.imag, w])
    return found


def _roots(covariances: Values) -> Values:
    """Factors of covariances [T, M, M], some of which may be singular.

    Variances of states may differ by many orders: correlations are what has a root.
    """
    size = np.sqrt(np.maximum(np.diagonal(covariances, axis1=1, axis2=2), 0))
    unit = np.where(size > 0, size, 1.0)
    values, vectors = np.linalg.eigh(covariances / unit[:, :, None] / unit[:, None])
    root = (vectors * np.sqrt(np.maximum(values, 0))[:, None]) @ vectors.transpose(0, 2, 1)
    return np.asarray(size[:, :, None] * root)
