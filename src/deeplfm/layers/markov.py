"""Markov layers: the parameters behind a `System`, each with a standard normal prior.

    λ_k = least_k + λ0_k e^{s ξ},   ω_k = ω0_k + δ_k ξ
    a_dk = Σ_q b_dq c_qk + τ e_dk    (a, c, e complex)

Every raw number ξ is N(0, 1) before data come: sizes and centres say what is usual. Loadings a are
what modes share (few patterns b over the outputs, times c) plus what is their own, with a width τ
that is learnt. So seven channels of one mixture and three that differ both come out right.
"""

from functools import partial
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor, nn

from deeplfm.statespace import Block, IntegratedWalk, RandomWalk

DECAY_SPREAD = 1.2  # standard deviation of log λ about its centre
_AMPLITUDE = 0.3  # prior standard deviation of a loading, outputs being standardised
_WIDTH = 0.15  # that of what is not shared, before it is learnt
_FIRST_LEVEL = 0.3  # where levels start, in units of what is usual
_PATTERNS = 4  # that loadings share, at most


@final
class OscillatorBank(nn.Module):
    """K oscillators that D outputs share.

    Where λ and ω are centred, how far ω may be from there, and the least λ are set with the start,
    [K] each.
    """

    least_decay: Tensor
    decay_centre: Tensor
    frequency_centre: Tensor
    reach: Tensor

    def __init__(self, count: int, num_outputs: int) -> None:
        super().__init__()
        patterns = min(num_outputs - 1, _PATTERNS)
        for name in ("least_decay", "decay_centre", "frequency_centre", "reach"):
            self.register_buffer(name, torch.ones(count, dtype=torch.float64))
        zeros = partial(torch.zeros, dtype=torch.float64)
        self.log_decay = nn.Parameter(zeros(count))
        self.shift = nn.Parameter(zeros(count))
        self.own = nn.Parameter(zeros(num_outputs, count, 2))
        self.mixing = nn.Parameter(zeros(num_outputs, patterns))
        self.shared = nn.Parameter(zeros(patterns, count, 2))
        self.log_width = nn.Parameter(zeros(()))

    def natural(self) -> dict[str, Tensor]:
        """log λ, ω in units of its reach, and the loadings."""
        return {"log_decay": self.log_decay, "shift": self.shift, "loadings": self._loadings()}

    def parts(self, natural: dict[str, Tensor]) -> tuple[Tensor, Tensor, Tensor]:
        """λ, ω and the loadings [D, 2K] of natural parameters."""
        decay = self.decay_centre * torch.exp(DECAY_SPREAD * natural["log_decay"])
        decay = self.least_decay + decay
        frequency = self.frequency_centre + self.reach * natural["shift"]
        loadings = natural["loadings"]
        return decay, frequency, torch.cat((loadings[..., 0], loadings[..., 1]), 1)

    def _loadings(self) -> Float[Tensor, "D K 2"]:
        if not self.mixing.shape[1]:
            return _AMPLITUDE * self.own
        shared = torch.einsum("dq,qkz->dkz", self.mixing, self.shared)
        width = _WIDTH * torch.exp(self.log_width)
        return _AMPLITUDE * shared + width * self.own

    def start(self, loadings: Float[Tensor, "D K 2"]) -> None:
        """Begin at these loadings: the strongest patterns of them as what is shared."""
        patterns = self.mixing.shape[1]
        with torch.no_grad():
            if not patterns:
                self.own.copy_(loadings / _AMPLITUDE)
                return
            left, sizes, right = torch.linalg.svd(loadings.flatten(1), full_matrices=False)
            # Both factors of a pattern have the same size: that is the cheapest for their priors.
            count = torch.tensor(right.shape[1] / len(loadings)).sqrt()
            size = (sizes[:patterns] / _AMPLITUDE / count).sqrt()
            found = len(size)  # one mode has two patterns at most
            self.mixing[:, :found] = left[:, :found] * size
            self.shared[:found] = (right[:found] * (size * count)[:, None]).view(found, -1, 2)
            rest = loadings - _AMPLITUDE * torch.einsum("dq,qkz->dkz", self.mixing, self.shared)
            self.own.copy_(rest / _WIDTH)

    def turns(self) -> list[tuple[nn.Parameter, Tensor]]:
        """How a shift of phase moves `own` and `shared`: nothing observed tells of it."""
        return [
            (part, torch.stack((-part[..., 1], part[..., 0]), -1).detach())
            for part in (self.own, self.shared)
        ]

    def extra_repr(self) -> str:
        return f"{len(self.log_decay)} oscillators, {len(self.own)} outputs"


@final
class Levels(nn.Module):
    """A level of every output that wanders, and with a slope_size a slope that does.

    size, slope_size: prior standard deviation of what each wanders over a unit of time.
    """

    size: Tensor
    slope_size: Tensor | None

    def __init__(self, num_outputs: int, size: float, slope_size: float | None = None) -> None:
        super().__init__()
        ones = torch.ones(num_outputs, dtype=torch.float64)
        self.register_buffer("size", torch.tensor(size, dtype=torch.float64))
        self.register_buffer("slope_size", None)
        self.level = nn.Parameter(_FIRST_LEVEL * ones)
        if slope_size is not None:
            self.slope_size = torch.tensor(slope_size, dtype=torch.float64)
            self.slope = nn.Parameter(_FIRST_LEVEL * ones)

    def natural(self) -> dict[str, Tensor]:
        """The sizes, in units of what is usual."""
        return dict(self.named_parameters())

    def parts(self, natural: dict[str, Tensor]) -> tuple[list[Block], Tensor]:
        """Blocks of unit rate, and loadings [D, M]."""
        level = natural["level"]
        ones = torch.ones_like(level)
        blocks: list[Block] = [RandomWalk(ones)]
        loadings = torch.diag(self.size * level)
        if self.slope_size is not None:
            walk = IntegratedWalk(ones)
            blocks.append(walk)
            slope = self.slope_size * natural["slope"]
            loadings = torch.cat((loadings, slope[:, None] * walk.values), 1)
        return blocks, loadings
