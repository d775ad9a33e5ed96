"""Where windows of a long series begin and end, exactly: each is passed over once, then joined.

    end = N(A x + b, C) for a window that begins at a state x;   x is told η and J by its rows
    forward:  P' = C + A (P⁻¹ + J)⁻¹ Aᵀ,   m' = A (P⁻¹ + J)⁻¹ (P⁻¹m + η) + b
    backward: J' = J + Aᵀ (J''⁻¹ + C)⁻¹ A,   η' = η + Aᵀ (I + J''C)⁻¹ (η'' - J''b)

(Särkkä and García-Fernández 2021, for windows of rows.) Small matrices, one after the other: on the
CPU. Nothing that may be singular is inverted.
"""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from deeplfm.sums.constants import MOST_COLUMNS
from deeplfm.sums.triton.markov_job import Job, Lanes


class _Elements(NamedTuple):
    """What windows do with the state that they begin with, [B, W, …] on the CPU."""

    A: Float[Tensor, "B W s s"]
    b: Float[Tensor, "B W C s"]
    C: Float[Tensor, "B W s s"]
    eta: Float[Tensor, "B W C s"]
    J: Float[Tensor, "B W s s"]


def boundaries(lanes: Lanes) -> tuple[Float[Tensor, "B W z"], Float[Tensor, "B W z"]]:
    """The records that windows begin with, and backwards the records after them."""
    if lanes.windows == 1:
        return lanes.begin(), torch.zeros_like(lanes.begin())
    own = _elements(lanes)
    job = lanes.job
    covariance, mean = job.dense_of(job.at_rest().cpu())
    covariance = covariance.expand(len(own.A), -1, -1)
    mean = mean.expand(len(own.A), -1, -1)
    begins = [(covariance, mean)]
    for w in range(lanes.windows - 1):
        covariance, mean = _onwards(own, w, covariance, mean)
        begins.append((covariance, mean))
    information, score = torch.zeros_like(covariance), torch.zeros_like(mean)
    after = [(information, score)]
    for w in range(lanes.windows - 1, 0, -1):
        information, score = _backwards(own, w, information, score)
        after.insert(0, _as_seen(information, score, *begins[w]))
    like = job.loadings
    return tuple(  # type: ignore[return-value]
        torch.stack([job.record_of(*one) for one in part], 1).to(like) for part in (begins, after)
    )


def _elements(lanes: Lanes) -> _Elements:
    """From states that are known: forward for C and b, back for what the rows tell of them."""
    job = Job(lanes.job.with_targets(lanes.job.targets))  # nothing is read out
    every = job.lanes(lanes.first, lanes.last, lanes.windows)
    parts = []
    for first, last in every.groups():
        own = every.part(first, last)
        kept, known = own.room(gains=True), torch.zeros_like(own.begin())
        ends, _, _ = own.filtered(known, kept)
        parts.append((ends.cpu(), own.smoothed(known, kept, own.results()).cpu()))
    ends, back = (torch.cat(part, 1) for part in zip(*parts, strict=True))
    (C, b), (J, eta) = job.dense_of(ends), job.dense_of(back)
    return _Elements(_transitions(lanes), b, C, eta, J)


def _transitions(lanes: Lanes) -> Float[Tensor, "B W s s"]:
    """A: what is left of each state at the end, from means that begin at a unit of it."""
    job, parts = lanes.job, []
    states = 2 * job.oscillators + job.dense
    for first in range(0, states, MOST_COLUMNS):
        count = min(MOST_COLUMNS, states - first)
        none = job.targets.new_zeros(()).expand(*job.targets.shape[:3], count)
        units = Job(job.with_targets(none))
        own = units.lanes(lanes.first, lanes.last, lanes.windows)
        mean = torch.eye(states, dtype=torch.float64)[first : first + count]
        empty = torch.zeros(states, states, dtype=torch.float64)
        begin = units.record_of(empty, mean).to(job.loadings)
        ends, _, _ = own.filtered(begin.expand(*own.begin().shape[:2], -1).contiguous())
        parts.append(units.dense_of(ends.cpu())[1])
    return torch.cat(parts, -2).mT


def _root(matrix: Float[Tensor, "B s s"]) -> Float[Tensor, "B s s"]:
    """L with L Lᵀ = a matrix that may be singular."""
    size, ways = torch.linalg.eigh(matrix)
    root: Tensor = ways * size.clamp(min=0).sqrt()[:, None]
    return root


def _told(
    matrix: Float[Tensor, "B s s"], information: Float[Tensor, "B s s"]
) -> Float[Tensor, "B s s"]:
    """(matrix⁻¹ + information)⁻¹."""
    root = _root(matrix)
    inner = torch.eye(root.shape[-1], dtype=root.dtype) + root.mT @ information @ root
    half: Tensor = torch.linalg.solve_triangular(torch.linalg.cholesky(inner), root.mT, upper=False)
    return half.mT @ half


def _onwards(own: _Elements, w: int, covariance: Tensor, mean: Tensor) -> tuple[Tensor, Tensor]:
    """The record that the next window begins with."""
    A, J = own.A[:, w], own.J[:, w]
    left = _told(covariance, J)
    # P⁻¹m + η told as m + left (η - J m): the covariance itself is not inverted.
    known = mean + (own.eta[:, w] - mean @ J) @ left
    return own.C[:, w] + A @ left @ A.mT, known @ A.mT + own.b[:, w]


def _backwards(own: _Elements, w: int, information: Tensor, score: Tensor) -> tuple[Tensor, Tensor]:
    """What the rows of a window and all after it tell about the state that it begins with."""
    A, b = own.A[:, w], own.b[:, w]
    information, score = _as_seen(information, score, own.C[:, w], b)
    return own.J[:, w] + A.mT @ information @ A, own.eta[:, w] + score @ A


def _as_seen(
    information: Tensor, score: Tensor, covariance: Tensor, mean: Tensor
) -> tuple[Tensor, Tensor]:
    """R and r of Bryson and Frazier beside a mean and a covariance, from what rows tell of x."""
    seen = _told(information, covariance)
    left = score - mean @ information
    # r = (I + J P)⁻¹ (η - J m), and (I + J P)⁻¹ = I - R P.
    return seen, left - (left @ covariance) @ seen
