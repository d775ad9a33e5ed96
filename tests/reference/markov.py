"""Series of a Markov state as one dense Gaussian: covariances of all entries, and their Cholesky.

    oscillators: cov(f_d(t+τ), f_e(t)) = Σ_k Re(ā_dk a_ek e^{(-λ_k + jω_k)τ}), τ ≥ 0
    dense block: S → Φ S Φᵀ + Q along the rows, cov(w(t_i), w(t_j)) = Φ_i … Φ_{j+1} S_j, i ≥ j

`dense` is in float64, and autograd goes through it; `precise` is the same in mpmath.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from mpmath import mp
from torch import Tensor


class Series(NamedTuple):
    """The arguments of `sums.markov_evidence`, by name; a batch of series."""

    decay: Tensor
    turn: Tensor
    transition: Tensor
    diffusion: Tensor
    start: Tensor
    loadings: Tensor
    noise: Tensor
    targets: Tensor
    step: Tensor
    observed: Tensor


class Answer(NamedTuple):
    """What the two sums return, of one series; `condition` is that of the entries' covariance."""

    log_det: Any
    gram: Any
    mean: Any
    variance: Any
    weights: Any
    condition: float


def covariances(of: Series, b: int, functions: Tensor) -> Tensor:
    """[N, E, N, E] of functions [E, s] of the state, at all rows of one series."""
    oscillators, rows = of.decay.shape[1], of.step.shape[1]
    steps = of.step[b].long()
    used = torch.arange(rows) > 0  # the first step of a series is not
    exponent = torch.complex(-of.decay[steps], of.turn[steps]) * used[:, None]
    passed = exponent.cumsum(0)
    later = torch.arange(rows)[:, None] >= torch.arange(rows)
    # Only τ ≥ 0: the exponential of the others may overflow, and its gradient with it.
    tau = torch.where(later[..., None], passed[:, None] - passed, 0)
    a = torch.complex(functions[:, :oscillators], functions[:, oscillators : 2 * oscillators])
    total = torch.einsum("dk,ek,ijk->idje", a.conj(), a, tau.exp()).real
    total = total + dense_block(of, steps, functions[:, 2 * oscillators :])
    return torch.where(later[:, None, :, None], total, total.permute(2, 3, 0, 1))


def dense_block(of: Series, steps: Tensor, functions: Tensor) -> Tensor:
    """The part of the dense block, for rows i ≥ j; zero elsewhere."""
    spread = [(of.start + of.start.mT) / 2]
    for step in steps[1:]:
        phi, added = of.transition[step], of.diffusion[step]
        spread.append(phi @ spread[-1] @ phi.mT + (added + added.mT) / 2)
    lines = []
    nothing = functions.new_zeros(len(functions), len(functions))
    for i in range(len(steps)):
        back, line = functions, []
        for j in range(i, -1, -1):
            line.append(back @ spread[j] @ functions.mT)
            back = back @ of.transition[steps[j]]
        lines.append(torch.stack([*reversed(line), *[nothing] * (len(steps) - 1 - i)]))
    return torch.stack(lines).permute(0, 2, 1, 3)


def dense(of: Series, b: int = 0, readout: Tensor | None = None) -> Answer:
    """The answer for one series by a Cholesky factor of the covariance of its entries."""
    outputs, columns = of.loadings.shape[0], of.targets.shape[-1]
    rows = of.step.shape[1]
    functions = of.loadings if readout is None else torch.cat((of.loadings, readout))
    covariance = covariances(of, b, functions)
    seen = of.observed[b].reshape(-1)
    noise = of.noise.expand(len(of.targets), rows, outputs)[b].reshape(-1)[seen]
    among = covariance[:, :outputs, :, :outputs].reshape(rows * outputs, rows * outputs)
    K = among[seen][:, seen] + torch.diag(noise)
    y = of.targets[b].reshape(-1, columns)[seen]
    factor = torch.linalg.cholesky((K + K.mT) / 2)
    whitened = torch.linalg.solve_triangular(factor, y, upper=False)
    log_det, gram = 2 * factor.diagonal().log().sum(), whitened.mT @ whitened
    weights = y.new_zeros(rows * outputs, columns)
    weights[seen] = torch.linalg.solve_triangular(factor.mT, whitened, upper=True)
    at = range(outputs, len(functions))
    across = covariance[:, outputs:, :, :outputs].reshape(rows * len(at), rows * outputs)[:, seen]
    carried = torch.linalg.solve_triangular(factor, across.mT, upper=False)
    own = covariance[:, outputs:, :, outputs:].reshape(rows * len(at), -1).diagonal()
    variance = (own - carried.square().sum(0)).reshape(rows, len(at))
    mean = (carried.mT @ whitened).reshape(rows, len(at), columns)
    condition = float(torch.linalg.cond(K.detach())) if len(K) else 1.0
    return Answer(log_det, gram, mean, variance, weights.reshape(rows, outputs, -1), condition)


def _row_covariance(of: Series, states: Sequence[Any], z: Any, z2: Any, i: int, j: int) -> Any:
    """cov(zᵀ state(t_i), z2ᵀ state(t_j)), i ≥ j, in mpmath."""
    oscillators, size = of.decay.shape[1], len(of.start)
    between = [int(step) for step in of.step[0, j + 1 : i + 1]]
    total = mp.mpf(0)
    for k in range(oscillators):
        decay, turn = (
            mp.fsum(mp.mpf(float(p[s, k])) for s in between) for p in (of.decay, of.turn)
        )
        a, a2 = (mp.mpc(float(one[k]), float(one[oscillators + k])) for one in (z, z2))
        total += mp.re(mp.conj(a) * a2 * mp.exp(mp.mpc(-decay, turn)))
    back = mp.matrix(z[2 * oscillators :].tolist() or [0]).T
    for step in reversed(between):
        back = back * mp.matrix(of.transition[step].tolist()) if size else back
    if size:
        total += (back * states[j] * mp.matrix(z2[2 * oscillators :].tolist()))[0]
    return total


def precise(of: Series, readout: Tensor, digits: int = 50) -> Answer:
    """The same for the first series in so many digits; mean and variance are lists of lists."""
    rows, outputs = of.step.shape[1], len(of.loadings)
    noise = of.noise.expand(len(of.targets), rows, outputs)[0]
    with mp.workdps(digits):
        states = [mp.matrix(of.start.tolist())] if len(of.start) else []
        for step in of.step[0, 1:].tolist() if states else []:
            phi = mp.matrix(of.transition[step].tolist())
            states.append(phi * states[-1] * phi.T + mp.matrix(of.diffusion[step].tolist()))

        def covariance(z: Any, z2: Any, i: int, j: int) -> Any:
            later = (states, z, z2, i, j) if i >= j else (states, z2, z, j, i)
            return _row_covariance(of, *later)

        seen = [(i, d) for i in range(rows) for d in range(outputs) if of.observed[0, i, d]]
        K, h = mp.matrix(len(seen), len(seen)), of.loadings.detach()
        for p, (i, d) in enumerate(seen):
            for q, (j, e) in enumerate(seen[: p + 1]):
                K[p, q] = K[q, p] = covariance(h[d], h[e], i, j)
            K[p, p] += mp.mpf(float(noise[i, d]))
        y = mp.matrix([of.targets[0, i, d].tolist() for i, d in seen])
        factor = mp.cholesky(K)
        inverse = K**-1
        weights = inverse * y
        mean, variance = [], []
        for i in range(rows):
            for z in readout:
                across = mp.matrix([covariance(z, h[e], i, j) for j, e in seen])
                mean.append((across.T * weights).tolist()[0])
                variance.append(covariance(z, z, i, i) - (across.T * inverse * across)[0])
        log_det = 2 * mp.fsum(mp.log(factor[p, p]) for p in range(len(seen)))
        condition = float(mp.mnorm(K, mp.inf) * mp.mnorm(inverse, mp.inf))
        gram = (y.T * weights).tolist()
        return Answer(log_det, gram, mean, variance, weights.tolist(), condition)
