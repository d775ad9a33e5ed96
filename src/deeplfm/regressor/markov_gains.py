"""Gains of known inputs: weights that no prior knows, drawn with the physics.

y_d = Σ_c gain_dc (G_d * c) + …,   gain | physics ~ generalised least squares
"""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from deeplfm.data import Scaling
from deeplfm.models.markov_model import MarkovModel
from deeplfm.statespace import Record
from deeplfm.training.robust import noise_scale
from deeplfm.training.threads import side_by_side

Values = NDArray[np.float64]


def drawn_gains(
    members: Sequence[MarkovModel],
    record: Record,
    scaling: Scaling,
    names: tuple[Sequence[str], Sequence[str]],
    seed: int,
) -> dict[str, Values]:
    """Draws [S] of every gain, in the user's units; `names` are those of outputs and of inputs."""
    outputs, inputs = names
    pairs = [(output, name) for output in outputs for name in inputs]
    drawn = drawn_weights(members, record, seed)[:, -len(pairs) :]
    drawn = drawn * np.repeat(scaling.target_std, len(inputs))
    return {f"{d}: gain of {name}": drawn[:, k] for k, (d, name) in enumerate(pairs)}


def drawn_weights(members: Sequence[MarkovModel], record: Record, seed: int) -> Values:
    """Draws [S, P] of the weights of one series that no prior knows: one for each model."""
    cut = record.whole()

    def one(numbered: tuple[int, MarkovModel]) -> Values:
        number, member = numbered
        with torch.no_grad():
            scale = noise_scale(member, record, cut)
            found = member.system().weights(member.observations(record, cut, scale=scale))
        noise = np.random.default_rng((seed % 2**64, number)).standard_normal(
            found.estimate.shape[1]
        )
        size, ways = np.linalg.eigh(found.covariance[0].numpy())
        return np.asarray(
            found.estimate[0].numpy() + ways @ (np.sqrt(np.maximum(size, 0)) * (ways.T @ noise))
        )

    return np.stack(side_by_side(one, list(enumerate(members))))
