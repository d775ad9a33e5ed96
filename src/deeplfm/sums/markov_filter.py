"""The filter of a Markov state, entry by entry, and what its two sums refuse.

    P → Φ P Φᵀ + Q,   g = P h,  v = hᵀg + noise,  e = y - hᵀm,  m += g e/v,  P -= g gᵀ/v

The model is that of `markov_evidence`; `markov_smooth` goes back over the same entries.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple, final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from deeplfm.errors import InputError
from deeplfm.sums.constants import MOST_COLUMNS, MOST_DENSE, MOST_OSCILLATORS

MOST_OUTPUTS = 64  # of a series: room that a compiled kernel has for the entries of a row
# An H200 takes as long for a thousand rows with gradients as a core of a CPU for some three to five
# thousand, but has a thousand of them at once; without gradients a long series is cut into windows.
_SERIES, _ROWS = 5, 100_000


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


def fits_c(*arguments: Tensor) -> bool:
    """Whether the compiled kernel has room for as many outputs, and anything to do at all."""
    loadings, targets = arguments[5], arguments[7]
    return len(loadings) <= MOST_OUTPUTS and loadings.numel() > 0 and targets.numel() > 0


def fits_triton(*arguments: Tensor) -> bool:
    """Whether the registers of a program hold the state and, for gradients, all columns."""
    decay, transition, loadings, targets = (arguments[place] for place in (0, 2, 5, 7))
    if decay.shape[1] > MOST_OSCILLATORS or transition.shape[1] > MOST_DENSE:
        return False
    if _learns(arguments) and targets.shape[3] > MOST_COLUMNS:
        return False
    return loadings.numel() > 0 and targets.numel() > 0


def enough_rows(*arguments: Tensor) -> bool:
    """Whether a device gains by them: rows follow each other, only series and windows do not."""
    series, rows = arguments[7].shape[:2]
    if _learns(arguments):  # a series in one piece takes it as long as some of the CPU's threads
        return series >= _SERIES * torch.get_num_threads()
    return series * rows >= _ROWS


def _learns(arguments: tuple[Tensor, ...]) -> bool:
    return torch.is_grad_enabled() and any(part.requires_grad for part in arguments[:8])


class Entry(NamedTuple):
    """What one output of a row told the filter, for B series; nothing where it was missing."""

    loading: Float[Tensor, "s"]
    gain: Float[Tensor, "B s"]
    variance: Float[Tensor, "B 1 1"]
    log_variance: Float[Tensor, "B"]
    error: Float[Tensor, "B C"]
    observed: Float[Tensor, "B"]


@final
class Filter:
    """Mean [B, C, s] and covariance [B, s, s] of the state, moved along the rows."""

    def __init__(
        self,
        decay: Tensor,
        turn: Tensor,
        transition: Tensor,
        diffusion: Tensor,
        start: Tensor,
        loadings: Tensor,
        series: int,
        columns: int,
    ) -> None:
        oscillators, dense = decay.shape[1], len(start)
        cosine, sine = (-decay).exp() * turn.cos(), (-decay).exp() * turn.sin()
        spread = -torch.expm1(-2 * decay)
        corner = (0, 2 * oscillators)  # of the dense block
        blocks = torch.cat(
            (
                torch.cat((torch.diag_embed(cosine), torch.diag_embed(-sine)), 2),
                torch.cat((torch.diag_embed(sine), torch.diag_embed(cosine)), 2),
            ),
            1,
        )
        pad = torch.nn.functional.pad
        self.transition = pad(blocks, (0, dense, 0, dense)) + pad(transition, corner[::-1] * 2)
        noise = torch.diag_embed(torch.cat((spread, spread), 1))
        self.diffusion = pad(noise, (0, dense, 0, dense)) + pad(diffusion, corner[::-1] * 2)
        ones = torch.cat((decay.new_ones(2 * oscillators), decay.new_zeros(dense)))
        first = torch.diag(ones) + pad((start + start.mT) / 2, corner[::-1] * 2)
        self.loadings = loadings
        self.covariance = first.expand(series, -1, -1)
        self.mean = decay.new_zeros(series, columns, len(first))

    def predict(self, step: Int[Tensor, "B"]) -> None:
        """To the next row, by the given steps."""
        phi = self.transition[step.long()]
        self.mean = self.mean @ phi.mT
        moved = phi @ self.covariance @ phi.mT + self.diffusion[step.long()]
        self.covariance = (moved + moved.mT) / 2

    def observe(
        self,
        noise: Float[Tensor, "B D"],
        targets: Float[Tensor, "B D C"],
        observed: Bool[Tensor, "B D"],
    ) -> Iterator[Entry]:
        """Use the entries of a row, one after the other."""
        for d, loading in enumerate(self.loadings):
            if not observed[:, d].any():
                continue
            seen = observed[:, d].to(loading.dtype)
            gain = (self.covariance @ loading) * seen[:, None]
            # A missing entry has v = 1 and no error: it adds nothing anywhere.
            variance = torch.where(observed[:, d], (gain @ loading).clamp(min=0) + noise[:, d], 1.0)
            # The target of a missing entry may be NaN.
            error = torch.where(observed[:, d, None], targets[:, d] - self.mean @ loading, 0.0)
            at = variance[:, None, None]
            scaled = gain / variance.sqrt()[:, None]
            self.mean = self.mean + error[:, :, None] * gain[:, None] / at
            self.covariance = self.covariance - scaled[:, :, None] * scaled[:, None]
            yield Entry(loading, gain, at, variance.log(), error, seen)
