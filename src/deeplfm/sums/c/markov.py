"""`sums.markov_evidence` and `sums.markov_smooth` on a CPU, compiled (`markov.h`)."""

import math
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from deeplfm.sums.c.jobs import Markov
from deeplfm.sums.c.library import call, number

_GROUPS = 8  # of series, each with sums of its own: the same bits whatever the threads
_GIVEN = ("decay", "turn", "transition", "diffusion", "start", "loadings", "noise", "targets")
_SUMMED = ("decay", "turn", "transition", "diffusion", "start", "loadings")


def markov_evidence(*arguments: Tensor) -> tuple[Float[Tensor, "B"], Float[Tensor, "B C C"]]:
    """log det and gram; float64."""
    log_det, gram = _Evidence.apply(*(part.contiguous() for part in arguments))
    return log_det, gram


def markov_smooth(
    *arguments: Tensor,
) -> tuple[
    Float[Tensor, "B N E C"],
    Float[Tensor, "B N E"],
    Float[Tensor, "B N D C"],
    Float[Tensor, "B C C"],
]:
    """Means, variances, weights and gram; float64."""
    *model, readout = (part.detach().contiguous() for part in arguments)
    job = _job(model)
    targets = model[7]
    series, rows, _, columns = targets.shape
    job.readouts = len(readout)
    log_det, gram, kept = _results(job, targets, keep=True)
    mean = targets.new_empty(series, rows, len(readout), columns)
    variance = targets.new_empty(series, rows, len(readout))
    weights = torch.empty_like(targets)
    job.fill(log_det=log_det, gram=gram, kept=kept, readout=readout)
    job.fill(mean=mean, variance=variance, weights=weights)
    call("markov_evidence", job, job.elements)
    call("markov_smooth", job, job.elements)
    return mean, variance, weights, gram


class _Evidence(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *tensors: Tensor) -> tuple[Tensor, Tensor]:
        job = _job(tensors)
        learns = any(ctx.needs_input_grad)
        log_det, gram, kept = _results(job, tensors[7], keep=learns)
        job.fill(log_det=log_det, gram=gram, kept=kept)
        call("markov_evidence", job, job.elements)
        if learns:
            ctx.save_for_backward(*tensors, kept)
        return log_det, gram

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, by_log_det: Tensor, by_gram: Tensor) -> tuple[Tensor | None, ...]:
        *tensors, kept = ctx.saved_tensors
        job = _job(tensors)
        named = dict(zip(_GIVEN, tensors, strict=False))
        by = {name: named[name].new_zeros(job.groups, *named[name].shape) for name in _SUMMED}
        targets = named["targets"]
        by_noise = targets.new_zeros(targets.shape[:3])
        by_targets = torch.zeros_like(targets) if ctx.needs_input_grad[7] else None
        by_log_det, by_gram = by_log_det.contiguous(), by_gram.contiguous()
        job.fill(kept=kept, by_log_det=by_log_det, by_gram=by_gram)
        job.fill(**{f"by_{name}": part for name, part in by.items()})
        job.fill(by_noise=by_noise, by_targets=by_targets)
        call("markov_gradient", job, job.elements)
        shape = named["noise"].shape
        summed = [axis for axis in (0, 1) if shape[axis] == 1]
        noise = by_noise.sum(summed, keepdim=True) if summed else by_noise
        return *(part.sum(0) for part in by.values()), noise, by_targets, None, None


def _job(tensors: Any) -> Markov:
    decay, transition, noise, targets = (tensors[place] for place in (0, 2, 6, 7))
    series, rows, outputs, columns = targets.shape
    segment = max(1, round(math.sqrt(rows)))
    job = Markov(series, rows, outputs, columns, len(decay), decay.shape[1], transition.shape[1])
    job.segment, job.groups = segment, min(_GROUPS, series)
    job.noise_rows = outputs if noise.shape[1] > 1 else 0
    job.noise_series = outputs * noise.shape[1] if noise.shape[0] > 1 else 0
    job.fill(**dict(zip((*_GIVEN, "step", "observed"), tensors, strict=True)))
    return job


def _results(job: Markov, like: Tensor, *, keep: bool) -> tuple[Tensor, Tensor, Tensor | None]:
    """Room for log det, gram, and the checkpoints between which rows are filtered again."""
    segments = math.ceil(job.rows / job.segment)
    size = number("markov_checkpoint", job)
    kept = like.new_empty(job.series, segments, size) if keep else None
    return like.new_empty(job.series), like.new_empty(job.series, job.columns, job.columns), kept
