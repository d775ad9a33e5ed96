"""How many steps to train, by the density of observations held out in blocks.

Blocks are contiguous in time, at their own place for every output: points between observed
neighbours would say nothing about a gap. Several inputs have no order; rows are held out then.
"""

import torch
from torch import Tensor

from deeplfm.objectives import Batch, multi_sample
from deeplfm.training.loop import Trainer
from deeplfm.training.progress import Report

_BLOCKS = 3  # per output
_LOOKS = 20  # evaluations over the training
_PATIENCE = 5  # of them without improvement
_SAMPLES = 50


def split(data: Batch, share: float, generator: torch.Generator) -> tuple[Batch, Batch]:
    """The data without the blocks, and the blocks alone; rows stay, the masks differ."""
    hidden = torch.zeros_like(data.observed)
    for output in range(data.y.shape[1]):
        rows = data.observed[:, output].nonzero()[:, 0].cpu()
        if data.x.shape[1] == 1:
            rows = rows[data.x[rows.to(data.x.device), 0].argsort().cpu()]
            size = max(1, round(share * len(rows) / _BLOCKS))
            starts = torch.rand(_BLOCKS, generator=generator) + torch.arange(_BLOCKS)
            firsts = (starts / _BLOCKS * max(0, len(rows) - size)).long()
            chosen = torch.cat([rows[first : first + size] for first in firsts.tolist()])
        else:
            chosen = rows[
                torch.randperm(len(rows), generator=generator)[: round(share * len(rows))]
            ]
        hidden[chosen.to(hidden.device), output] = True
    kept, test = data.observed & ~hidden, data.observed & hidden
    return data._replace(observed=kept), data._replace(observed=test)


def best_steps(trainer: Trainer, test: Batch, report: Report | None = None) -> int:
    """Train until the density of `test` has stopped to rise; the step where it was highest."""
    steps = trainer.training.steps
    stride = max(1, steps // _LOOKS)
    best, found, worse = -torch.inf, steps, 0
    while trainer.step < steps and worse < _PATIENCE:
        trainer.run(until=trainer.step + stride, report=report)
        density = trainer.processes.share(lambda: float(_log_density(trainer, test)))
        if density > best:
            best, found, worse = density, trainer.step, 0
        else:
            worse += 1
    return found


def _log_density(trainer: Trainer, test: Batch) -> Tensor:
    """log mean_s p(y | f_s), summed over the held-out observations; the same draws every time."""
    generator = torch.Generator(device=test.x.device).manual_seed(0)
    with torch.no_grad():
        backend = trainer.training.backend
        path = trainer.model.draw(_SAMPLES, generator, backend)
        return multi_sample(trainer.model, test, path, backend).expected_log_likelihood
