"""PHASE SITES: Gaussian sites on the phase of a rhythm, as entries beside those of the outputs.

    u = r sin(θ - φ) ≈ c_φ·v,   site on θ: precision Λ, target θ*   →   entry along c_φ: r²/Λ wide

The way in which a phase turns differs from row to row, loadings do not: so there are readouts along
many ways, and each row has an entry along the nearest of them. All else is linear (`sites.py`).
"""

import math
from dataclasses import dataclass, replace
from typing import final

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from deeplfm.statespace.record import Record
from deeplfm.statespace.system import Observations, System
from deeplfm.statespace.timeline import Timeline, Values

_WAYS = 32  # over half a turn: the nearest is off by 1/20 rad at most


@final
@dataclass(frozen=True, eq=False)
class PhaseSites:
    """Entries [n, ways] of rows of a record: targets, NaN where there is no site, and variances.

    `directions` are the readouts [2, s] of the position and the velocity of the rhythm.
    """

    directions: Float[Tensor, "2 s"]
    targets: Values
    width: Values

    def joined(self, system: System) -> System:
        """The system with outputs along all ways."""
        angle = torch.arange(_WAYS, dtype=torch.float64) * math.pi / _WAYS
        ways = torch.stack((angle.cos(), angle.sin()), 1) @ self.directions
        noise = torch.cat((system.noise, torch.ones_like(angle)))
        return replace(system, loadings=torch.cat((system.loadings, ways)), noise=noise)

    def beside(self, rows: Observations, line: Timeline) -> Observations:
        """Rows of the record with the sites; it may have further rows, which have none."""
        later = np.full((len(line.row) - len(self.targets), _WAYS), np.nan)
        target = line.table(np.concatenate([self.targets, later]), np.nan)
        width = line.table(np.concatenate([self.width, np.ones_like(later)]), 1.0)
        scale = torch.ones_like(rows.targets) if rows.scale is None else rows.scale
        none = rows.design.new_zeros(*rows.design.shape[:2], _WAYS, rows.design.shape[3])
        return replace(
            rows,
            targets=torch.cat((rows.targets, torch.tensor(np.nan_to_num(target))), -1),
            observed=torch.cat((rows.observed, torch.tensor(~np.isnan(target))), -1),
            design=torch.cat((rows.design, none), 2),
            scale=torch.cat((scale, torch.tensor(width)), -1),
        )


def no_sites(record: Record, directions: Float[Tensor, "2 s"]) -> PhaseSites:
    """Nothing is said about the phase."""
    shape = len(record.times), _WAYS
    return PhaseSites(directions, np.full(shape, np.nan), np.ones(shape))


def sites_of(
    record: Record,
    directions: Float[Tensor, "2 s"],
    position: Float[Tensor, "B N 2"],
    ahead: Float[Tensor, "B N"],
    precision: Float[Tensor, "B N"],
) -> PhaseSites:
    """Sites on the phase where their precision is above 0, about the position of a rhythm.

    ahead: by how much the target of each is ahead of the phase of the position.
    """
    radius = position.square().sum(-1).sqrt()
    across = torch.atan2(position[..., 1], position[..., 0]) + math.pi / 2
    number = torch.round(across * (_WAYS / math.pi)).long()
    way, sign = number % _WAYS, 1.0 - 2.0 * ((number // _WAYS) % 2)
    angle = way * (math.pi / _WAYS)
    there = position[..., 0] * angle.cos() + position[..., 1] * angle.sin()
    empty = (*way.shape, _WAYS)
    seen = precision > 0
    target = torch.where(seen, there + sign * radius * ahead, torch.nan)
    width = torch.where(seen, radius.square() / torch.where(seen, precision, 1.0), 1.0)
    placed = [
        torch.full(empty, fill, dtype=position.dtype).scatter(-1, way[..., None], part[..., None])
        for fill, part in ((torch.nan, target), (1.0, width))
    ]
    line = record.timeline
    return PhaseSites(directions, *(line.rows(part.numpy()) for part in placed))
