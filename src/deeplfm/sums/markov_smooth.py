"""The smoother of a Markov state: functions of it given all rows, before and after.

    mean z'(m + P r),   variance z'P z - (P z)'R(P z),   weights u = K^{-1} y of the entries

The model and its arguments are those of `markov_evidence`. r and R say what later rows add
(Bryson and Frazier), m and P what those up to it did: nothing is inverted. No gradients.
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from deeplfm.sums.candidate import sum_with
from deeplfm.sums.markov_filter import Entry, Filter, check_states, enough_rows, fits_c, fits_triton


@sum_with(check_states)
def markov_smooth(
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
    readout: Float[Tensor, "E s"],
) -> tuple[
    Float[Tensor, "B N E C"],
    Float[Tensor, "B N E"],
    Float[Tensor, "B N D C"],
    Float[Tensor, "B C C"],
]:
    """Mean and variance of E functions zᵀ(state) at every row, weights of the entries, and gram.

    The weights are K⁻¹ y: with them the mean at any time is a sum of covariances. The gram is that
    of `markov_evidence`: the filter has passed over all of it.
    """
    with torch.no_grad():
        series, columns = targets.shape[0], targets.shape[3]
        passed = Filter(decay, turn, transition, diffusion, start, loadings, series, columns)
        return _passes(passed, noise, targets, step, observed, readout)


def _passes(
    passed: Filter,
    noise: Tensor,
    targets: Tensor,
    step: Tensor,
    observed: Tensor,
    readout: Tensor,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Forward with the filter, then backward."""
    series, rows, outputs, columns = targets.shape
    loadings = passed.loadings
    noise = noise.expand(series, rows, -1)
    seen: list[tuple[Tensor, Tensor, list[Entry]]] = []
    gram = loadings.new_zeros(series, columns, columns)
    for row in range(rows):
        if row:
            passed.predict(step[:, row])
        entries = list(passed.observe(noise[:, row], targets[:, row], observed[:, row]))
        seen.append((passed.mean, passed.covariance, entries))
        for entry in entries:
            gram += entry.error[:, :, None] * entry.error[:, None] / entry.variance
    mean = loadings.new_zeros(series, rows, len(readout), columns)
    variance = loadings.new_zeros(series, rows, len(readout))
    weights = torch.zeros_like(targets)
    later = loadings.new_zeros(series, columns, loadings.shape[1])
    precision = loadings.new_zeros(series, loadings.shape[1], loadings.shape[1])
    for row in reversed(range(rows)):
        filtered, covariance, entries = seen[row]
        # Before this row's entries are taken in: with the prediction instead of what is filtered, a
        # variance as small as the noise would be the difference of two large numbers.
        spread = readout @ covariance
        mean[:, row] = readout @ filtered.mT + spread @ later.mT
        after = torch.einsum("bes,es->be", spread, readout)
        after = after - torch.einsum("bes,bst,bet->be", spread, precision, spread)
        variance[:, row] = after.clamp(min=0)
        present = [d for d in range(outputs) if observed[:, row, d].any()]
        for d, entry in reversed(list(zip(present, entries, strict=True))):
            u = (entry.error - torch.einsum("bs,bcs->bc", entry.gain, later)) / entry.variance[:, 0]
            later = later + u[:, :, None] * entry.loading * entry.observed[:, None, None]
            h = entry.loading.expand(series, -1) * entry.observed[:, None]
            keep = torch.eye(len(entry.loading), dtype=h.dtype, device=h.device)
            keep = keep - h[:, :, None] * entry.gain[:, None] / entry.variance
            precision = keep @ precision @ keep.mT + h[:, :, None] * h[:, None] / entry.variance
            weights[:, row, d] = u * entry.observed[:, None]
        if row:
            phi = passed.transition[step[:, row].long()]
            later, precision = later @ phi, phi.mT @ precision @ phi
    return mean, variance, weights, gram


def _by_c(*arguments: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    from deeplfm.sums.c.markov import markov_smooth as compiled

    return compiled(*arguments)


markov_smooth.add("c", _by_c, fits=fits_c, dtype=torch.float64)


def _by_triton(*arguments: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    from deeplfm.sums.triton.markov import markov_smooth as side_by_side

    return side_by_side(*arguments)


markov_smooth.add("triton", _by_triton, fits=fits_triton, worth=enough_rows, dtype=torch.float64)
