"""Records of two outputs and the small Markov models that tests fit to them."""

from typing import Any

import numpy as np
import torch

import deeplfm as dlfm
from deeplfm.models.markov_model import MarkovModel
from deeplfm.statespace import Record
from deeplfm.statespace.record import Known

KINDS: dict[str, dict[str, Any]] = {
    "bank": {"modes": 2},
    "levels and slopes": {"modes": 0, "trend": "local"},
    "one ODE": {"greens_function": dlfm.FirstOrder(1.0), "num_forces": 2},
    "an ODE per output": {
        "greens_function": [dlfm.SecondOrder(damping=0.5, frequency=2.0), dlfm.FirstOrder(1.0)],
        "force": dlfm.Matern(1.5),
        "memory": "zero",
    },
    "heavy tails": {"modes": 2, "likelihood": dlfm.StudentT(0.05)},
}


def small_record(
    lengths: tuple[int, ...] = (30,), *, trend: bool = False, known: bool = False, seed: int = 0
) -> Record:
    """Two waves with noise at uneven times, a fifth of the entries missing."""
    rng = np.random.default_rng(seed)
    series = np.repeat(np.arange(len(lengths)), lengths)
    times = np.concatenate([np.sort(rng.uniform(0, 10, n)) for n in lengths])
    targets = np.stack([np.sin(2 * times), np.cos(2 * times) + np.sin(0.7 * times)], 1)
    targets += 0.2 * rng.normal(size=targets.shape)
    targets[rng.uniform(size=targets.shape) < 0.2] = np.nan
    inputs = Known(times, series, rng.normal(size=(len(times), 2))) if known else None
    return Record(times, series, targets, trend, inputs)


def small_model(record: Record, **recipe: Any) -> MarkovModel:
    """A model off its start, so that no parameter is where gradients vanish by symmetry."""
    model = dlfm.MarkovDLFM(**recipe).build(record, torch.Generator().manual_seed(0))
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for raw in model.raw():
            raw.value.add_(0.2 * torch.randn(raw.value.shape, generator=generator).double())
    return model
