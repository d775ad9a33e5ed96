"""Sums of waves over one input each, with what an ODE that was at rest leaves of its start.

    Σ_p Σ_r (cos ω_{pr} x_p - 1) even_{pr} + sin(ω_{pr} x_p) odd_{pr} + transients of input p

On a CPU both are functions of one number and come from one table, where there are many points.
"""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from deeplfm.greens_functions import GreensFunction
from deeplfm.responses.transients import fastest, transients
from deeplfm.sums.backends import by_tables
from deeplfm.sums.torch import wave_grids
from deeplfm.sums.wave_sum import at_side, input_sums


class Waves(NamedTuple):
    """Frequencies of some inputs, and the weights of cos and sin at each side of the origin."""

    omega: Float[Tensor, "S2 G P R"]
    even: Float[Tensor, "C S D P R"]
    odd: Float[Tensor, "C S D P R"]

    def of(self, inputs: slice) -> "Waves":
        """Those of some of the inputs."""
        even, odd = (part[:, :, :, inputs] for part in (self.even, self.odd))
        return Waves(self.omega[:, :, inputs], even, odd)

    def after(self) -> "Waves":
        """Without those of before the origin."""
        return self._replace(even=self.even[:1], odd=self.odd[:1])


def waves_from_rest(
    x: Float[Tensor, "S3 N P"],
    waves: Waves,
    g: GreensFunction | None,
    inputs: slice = slice(None),
) -> Float[Tensor, "S N D"]:
    """The sums at `x`, along some of the inputs of the ODE; without one there is no transient."""
    if len(waves.even) == 2 and x.device.type == "cpu" and not bool((x.detach() < 0).any()):
        waves = waves.after()
    if len(waves.omega) == 1 and len(x) > 1 and by_tables(x):
        rate = None if g is None else fastest(g, inputs)
        grid = wave_grids.grid_for(x, waves.omega[0], len(waves.even), rate)
        if grid is not None:
            more = None if g is None else _at_nodes(grid, waves, g, inputs)
            return wave_grids.grid_sum(x, waves.omega[0], waves.even, waves.odd, grid, more)
    total = input_sums(x, *waves)
    if g is None:
        return total
    lag, sign = x.abs()[:, :, None], torch.sign(x)[:, :, None]
    rise, others = transients(g, lag, inputs)
    total = total + (rise * at_side(x, waves.even.sum(-1)[:, :, None])).sum(-1)
    for k, motion in enumerate(others, start=1):
        weights = at_side(x, _started(waves, k)[:, :, None])
        total = total - (sign**k * motion * weights).sum(-1)
    return total


def _at_nodes(
    grid: wave_grids.Grid, waves: Waves, g: GreensFunction, inputs: slice
) -> Float[Tensor, "C P K S D"]:
    """The transients of each input at the nodes of a grid."""
    nodes = grid.nodes().mT  # C K P
    sign = torch.tensor([1.0, -1.0], dtype=nodes.dtype)[: len(nodes), None, None]
    rise, others = transients(g, (sign * nodes)[:, :, None], inputs)  # C K G P

    def spread(motion: Tensor, weights: Tensor) -> Tensor:
        return motion.permute(0, 3, 1, 2)[:, :, :, None] * weights.permute(0, 3, 1, 2)[:, :, None]

    total = spread(rise, waves.even.sum(-1))
    for k, motion in enumerate(others, start=1):
        total = total - spread(sign[..., None] ** k * motion, _started(waves, k))
    return total


def _started(waves: Waves, k: int) -> Float[Tensor, "C S D P"]:
    """Σ_r Re of (jω)^k H: the weights of cos and sin take turns."""
    sign, part = (1, -1)[k // 2 % 2], (waves.even, waves.odd)[k % 2]
    weights: Tensor = (sign * waves.omega**k * part).sum(-1)
    return weights
