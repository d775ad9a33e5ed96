"""`sums.markov_evidence` and `sums.markov_smooth` on CUDA, series and windows of them side by side.

A long series is cut into windows that are passed over side by side: once for what each of them does
with the state that it begins with, and again when that state is known (`markov_windows`).
"""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from deeplfm.sums.constants import MOST_COLUMNS
from deeplfm.sums.triton.markov_gradient import gradient_rows
from deeplfm.sums.triton.markov_job import Job, Lanes
from deeplfm.sums.triton.markov_windows import boundaries

_TABLE = 2**26  # entries of a table of rows by steps that is small enough to multiply with


def markov_evidence(
    *arguments: Tensor, windows: int | None = None
) -> tuple[Float[Tensor, "B"], Float[Tensor, "B C C"]]:
    """log det and gram; float64. `windows` of a series, as many as suit by default."""
    tensors = [part.contiguous() for part in arguments]
    if torch.is_grad_enabled() and any(part.requires_grad for part in tensors):
        # Training never waits for the device: its series are short, and stay in one piece.
        log_det, gram = _Evidence.apply(*tensors)
        return log_det, gram
    if tensors[7].shape[3] > MOST_COLUMNS:
        return _of_many_columns(tensors, windows)
    return _sums(Job(tensors), windows)


def markov_smooth(
    *arguments: Tensor, windows: int | None = None
) -> tuple[
    Float[Tensor, "B N E C"],
    Float[Tensor, "B N E"],
    Float[Tensor, "B N D C"],
    Float[Tensor, "B C C"],
]:
    """Means, variances, weights and gram; float64. `windows` of a series as in the evidence."""
    *model, readout = (part.detach().contiguous() for part in arguments)
    every = []
    for columns in model[7].split(MOST_COLUMNS, 3):
        job = Job([*model[:7], columns.contiguous(), *model[8:]], readout)
        parts = [
            _smooth(job.lanes(first, last, windows))
            for first, last in job.some_series(job.kept_per_row)
        ]
        every.append([torch.cat(part) for part in zip(*parts, strict=True)])
    mean, variance, weights, gram = zip(*every, strict=True)
    whole = gram[0] if len(gram) == 1 else _of_many_columns(model, windows)[1]
    return torch.cat(mean, 3), variance[0], torch.cat(weights, 3), whole


def _smooth(lanes: Lanes) -> tuple[Tensor, ...]:
    """Forward and back, as many windows at a time as memory holds."""
    begins, afters = boundaries(lanes)
    grams, found = [], []
    for first, last in lanes.groups():
        part = lanes.part(first, last)
        kept, results = part.room(gains=True), part.results()
        _, _, gram = part.filtered(begins[:, first:last], kept)
        part.smoothed(afters[:, first:last], kept, results)
        grams.append(gram.sum(1))
        found.append(results)
    rows = (lanes.rows(torch.cat(part, 1)) for part in zip(*found, strict=True))
    return *rows, torch.stack(grams).sum(0)[:, : lanes.job.columns, : lanes.job.columns]


def _sums(job: Job, windows: int | None) -> tuple[Tensor, Tensor]:
    lanes = job.lanes(0, job.series, windows)
    _, log_det, gram = lanes.filtered(boundaries(lanes)[0])
    return log_det.sum(1), gram.sum(1)[:, : job.columns, : job.columns]


def _of_many_columns(tensors: list[Tensor], windows: int | None) -> tuple[Tensor, Tensor]:
    """Some columns after the others: their errors are kept, and multiplied at the end."""
    total, scaled = tensors[7].new_zeros(()), []
    for columns in tensors[7].split(MOST_COLUMNS, 3):
        job = Job([*tensors[:7], columns.contiguous(), *tensors[8:]])
        lanes = job.lanes(0, job.series, windows)
        kept = lanes.room(gains=True)
        lanes.filtered(boundaries(lanes)[0], kept)
        total = kept.variances.log().view(job.series, -1).sum(1)
        errors = kept.errors[..., : job.columns] / kept.variances[..., None].sqrt()
        scaled.append(errors.reshape(job.series, -1, job.columns))
    every = torch.cat(scaled, 2)
    return total, every.mT @ every


class _Evidence(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *tensors: Tensor) -> tuple[Tensor, Tensor]:
        ctx.save_for_backward(*tensors)
        return _sums(Job(tensors), 1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, by_log_det: Tensor, by_gram: Tensor) -> tuple[Tensor | None, ...]:
        tensors = ctx.saved_tensors
        job, noise = Job(tensors), tensors[6]
        pad = job.CP - job.columns
        by_gram = torch.nn.functional.pad(by_gram, (0, pad, 0, pad))
        parts = [
            _gradients(job, first, last, by_log_det, by_gram, ctx.needs_input_grad[7])
            for first, last in job.some_series(job.size + 2 * job.kept_per_row)
        ]
        shared, entries = (list(zip(*own, strict=True)) for own in zip(*parts, strict=True))
        by_shared = [torch.stack(part).sum(0) for part in shared]
        by_noise, by_targets = (torch.cat(part) for part in entries)
        summed = [axis for axis in (0, 1) if noise.shape[axis] == 1]
        by_noise = by_noise.sum(summed, keepdim=True) if summed else by_noise
        return *by_shared, by_noise, by_targets if ctx.needs_input_grad[7] else None, None, None


def _gradients(
    job: Job, first: int, last: int, by_log_det: Tensor, by_gram: Tensor, targets: bool
) -> tuple[list[Tensor], list[Tensor]]:
    """By the parameters that all rows share, summed; by noise and targets, entry by entry."""
    lanes = job.lanes(first, last, 1)
    kept = lanes.room(gains=True, everything=True)
    lanes.filtered(lanes.begin(), kept)
    like, (series, rows) = job.loadings, (last - first, job.num_rows)
    D, C, K, M = job.outputs, job.columns, job.oscillators, job.dense
    scratch = [like.new_empty(series, D, width) for width in (job.CP, 1, job.states)]
    tiles = [like.new_empty(series, rows, job.KP) for _ in range(3)]
    blocks = [like.new_zeros(series, rows, job.WP, job.WP) for _ in range(2)]
    by_loadings = like.new_zeros(series, D, job.states)
    by_noise = like.new_empty(series, rows, D)
    by_targets = like.new_empty(series, rows if targets else 0, D, C)
    gradient_rows[(series,)](
        *job.tables, job.loadings, lanes.following, lanes.observed, kept.gains, kept.variances,
        kept.errors, kept.records, kept.moved, kept.before,
        by_log_det[first:last].contiguous(), by_gram[first:last].contiguous(), *scratch,
        *tiles, *blocks, by_loadings, by_noise, by_targets,
        rows, D, C,
        SZ=job.size, KP=job.KP, WP=job.WP, CP=job.CP, TARGETS=targets,
        num_warps=job.warps, maxnreg=255,
    )  # fmt: skip
    wide = torch.cat([*tiles, *(part.flatten(2) for part in blocks)], 2)
    by_step = _by_step(job.step[first:last], wide, len(job.decay))
    sizes = [job.KP] * 3 + [job.WP**2] * 2
    same, other, trace, phi, q = by_step.split(sizes, 1)
    cosine, sine, spread = (table[:-1, :K] for table in job.tables[:3])
    same, other, trace = same[:, :K], other[:, :K], trace[:, :K]
    fade = cosine.square() + sine.square()
    by_decay = -(same - 2 * spread * trace) + 2 * fade * trace
    phi, q = (part.view(-1, job.WP, job.WP)[:, :M, :M] for part in (phi, q))
    start = blocks[1][:, 0, :M, :M].sum(0)
    shared = [by_decay, other, phi, q, start, job.plain(by_loadings.sum(0))]
    return shared, [by_noise, by_targets]


def _by_step(step: Tensor, rows: Float[Tensor, "B N n"], count: int) -> Float[Tensor, "T n"]:
    """Sums over the rows that each step leads to, the same bits every time; the first has none."""
    which, values = step[:, 1:].reshape(-1).long(), rows[:, 1:].flatten(0, 1)
    if count * len(which) <= _TABLE:
        table = which == torch.arange(count, device=step.device)[:, None]
        return table.to(values.dtype) @ values
    order = torch.argsort(which, stable=True)
    lengths = torch.zeros(count, dtype=torch.int64, device=step.device)
    lengths.scatter_add_(0, which, torch.ones_like(which))
    return torch.segment_reduce(values[order], "sum", lengths=lengths, unsafe=True, initial=0.0)
