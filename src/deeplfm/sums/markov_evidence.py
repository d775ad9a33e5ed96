"""The evidence of series under a Markov state: the filter, and what its innovations add up to.

    z(t + Δ) = Φ z(t) + noise Q,   y_d = h_dᵀ z + noise,   z = (x_1…x_K, y_1…y_K, w_1…w_M)
    oscillators: Φ = e^{-λΔ} Rot(ωΔ), Q = 1 - e^{-2λΔ}, Var z = 1;   w: a dense block, as given
    log det = Σ log v,   gram_cc' = Σ e_c e_c' / v    over all observed entries

C columns of targets share one filter: data, and functions whose weights are unknown.
"""

from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from deeplfm.errors import InputError
from deeplfm.sums.candidate import sum_with

MOST_OUTPUTS = 64  # of a series: room that a compiled kernel has for the entries of a row


def check_states(
    decay: Tensor,
    turn: Tensor,
    transition: Tensor,
    diffusion: Tensor,
    start: Tensor,
    loadings: Tensor,
    noise: Tensor,
    targets: Tensor,
    step: Tensor,
    observed: Tensor,
    *_: Any,
) -> None:
    """The number of states, and that every step is one of those given."""
    states = 2 * decay.shape[1] + transition.shape[1]
    if loadings.shape[1] != states:
        raise InputError(
            f"loadings of a state with {decay.shape[1]} oscillators and {transition.shape[1]} "
            f"others must be [D, {states}]; got {list(loadings.shape)}. Pass one per state."
        )
    if step.dtype != torch.int32 or observed.dtype != torch.bool:
        raise InputError(
            f"step must be int32 and observed bool; got {step.dtype} and {observed.dtype}. "
            "Convert them with .to(…)."
        )
    if step.device != decay.device or observed.device != decay.device:
        raise InputError(
            f"step and observed must be on {decay.device}; got {step.device} and "
            f"{observed.device}. Convert them with .to(…)."
        )
    if decay.device.type == "cpu" and step.numel():
        low, high = int(step.min()), int(step.max())
        if low < 0 or high >= len(decay):
            raise InputError(
                f"step must number the {len(decay)} steps that are given, from 0; got {low} to "
                f"{high}. Take the inverse of torch.unique."
            )


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
    from deeplfm.sums.markov_smooth import Filter

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


def fits_c(*arguments: Tensor) -> bool:
    """Whether the compiled kernel has room for as many outputs."""
    return len(arguments[5]) <= MOST_OUTPUTS


markov_evidence.add("c", _by_c, fits=fits_c, dtype=torch.float64)
