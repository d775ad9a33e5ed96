"""The evidence of series under a Markov state: the filter, and what its innovations add up to.

    z(t + Δ) = Φ z(t) + noise Q,   y_d = h_dᵀ z + noise,   z = (x_1…x_K, y_1…y_K, w_1…w_M)
    oscillators: Φ = e^{-λΔ} Rot(ωΔ), Q = 1 - e^{-2λΔ}, Var z = 1;   w: a dense block, as given
    log det = Σ log v,   gram_cc' = Σ e_c e_c' / v    over all observed entries

C columns of targets share one filter: data, and functions whose weights are unknown.
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from deeplfm.sums.candidate import sum_with
from deeplfm.sums.markov_filter import Filter, check_states, enough_rows, fits_c, fits_triton


@sum_with(check_states)
def markov_evidence(
    decay: Float[Tensor, "T K"],
    turn: Float[Tensor, "T K"],
    transition: Float[Tensor, "T M M"],
    diffusion: Float[Tensor, "T M M"],
    start: Float[Tensor, "M M"],
    loadings: Float[Tensor, "D s"],
    noise: Float[Tensor, "#B #N D"],
    targets: Float[Tensor, "B N D C"],
    step: Int[Tensor, "B N"],
    observed: Bool[Tensor, "B N D"],
) -> tuple[Float[Tensor, "B"], Float[Tensor, "B C C"]]:
    """log det and gram of B series; `step` says which of T steps leads to each row.

    decay and turn are λΔ and ωΔ. The first step of a series is not used: it starts at rest, the
    oscillators stationary and w with the covariance `start`.
    """
    series, rows, _, columns = targets.shape
    filtered = Filter(decay, turn, transition, diffusion, start, loadings, series, columns)
    noise = noise.expand(series, rows, -1)
    log_det = decay.new_zeros(series)
    gram = decay.new_zeros(series, columns, columns)
    for row in range(rows):
        if row:
            filtered.predict(step[:, row])
        for entry in filtered.observe(noise[:, row], targets[:, row], observed[:, row]):
            log_det = log_det + entry.log_variance
            gram = gram + entry.error[:, :, None] * entry.error[:, None] / entry.variance
    return log_det, gram


def _by_c(*arguments: Tensor) -> tuple[Tensor, Tensor]:
    from deeplfm.sums.c.markov import markov_evidence as compiled

    return compiled(*arguments)


markov_evidence.add("c", _by_c, fits=fits_c, dtype=torch.float64)


def _by_triton(*arguments: Tensor) -> tuple[Tensor, Tensor]:
    from deeplfm.sums.triton.markov import markov_evidence as side_by_side

    return side_by_side(*arguments)


markov_evidence.add("triton", _by_triton, fits=fits_triton, worth=enough_rows, dtype=torch.float64)
