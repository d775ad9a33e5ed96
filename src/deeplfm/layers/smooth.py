"""A Markov layer without a rhythm: smooth processes that outputs share.

    p_q' + γ_q p_q = γ_q u_q,   u_q a Matérn-5/2 force of lengthscale ℓ_q,   Var p_q made 1
    f_d = Σ_q b_dq p_q

Few numbers say all of it, so it is what a short series without oscillations needs: a bank of
oscillators would find peaks of chance in its spectrum. Every raw number is N(0, 1) at first.
"""

from typing import final

import torch
from jaxtyping import Float
from torch import Tensor, nn

from deeplfm.forces import Matern
from deeplfm.greens_functions import FixedDynamics, Linear
from deeplfm.statespace import Block, DrivenODE

_SPREAD = 1.5  # standard deviation of log γ and of log ℓ about their centres
_FORCE = Matern(2.5)


@final
class SmoothProcesses(nn.Module):
    """Q processes in D outputs; `length` is that of the record, a tenth of which is usual."""

    usual: Tensor

    def __init__(self, count: int, num_outputs: int, length: float) -> None:
        super().__init__()
        self.register_buffer("usual", torch.tensor(length / 10, dtype=torch.float64))
        self.log_lengthscale = nn.Parameter(torch.zeros(count, dtype=torch.float64))
        self.log_decay = nn.Parameter(torch.zeros(count, dtype=torch.float64))
        self.mixing = nn.Parameter(torch.zeros(num_outputs, count, dtype=torch.float64))

    def start(self, covariance: Float[Tensor, "D D"]) -> None:
        """Begin with what outputs have in common: the strongest patterns of their covariance."""
        values, vectors = torch.linalg.eigh(covariance)
        count = self.mixing.shape[1]
        strongest = vectors[:, -count:] * values[-count:].clamp(min=0).sqrt()
        with torch.no_grad():
            self.mixing.copy_(strongest.flip(1))

    def natural(self) -> dict[str, Tensor]:
        """The raw numbers: the evidence sees them as they are."""
        return dict(self.named_parameters())

    def parts(self, natural: dict[str, Tensor]) -> tuple[list[Block], Float[Tensor, "D M"]]:
        """The block of the processes, and the loadings of every output on its states."""
        lengthscale = self.usual * torch.exp(_SPREAD * natural["log_lengthscale"])
        decay = torch.exp(_SPREAD * natural["log_decay"]) / self.usual
        relaxes = FixedDynamics((Linear(decay[:, None]),), normalised=True, stable=True)
        own = torch.eye(len(decay), dtype=torch.float64)
        block = DrivenODE(relaxes, own, lengthscale, force=_FORCE)
        readout = block.outputs
        variance = torch.einsum("qm,mn,qn->q", readout, block.start(), readout)
        return [block], natural["mixing"] @ (readout * variance.rsqrt()[:, None])

    def extra_repr(self) -> str:
        return f"{self.mixing.shape[1]} processes, {len(self.mixing)} outputs"
