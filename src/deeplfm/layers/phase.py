"""PHASE LAYER: a function of the phase of a rhythm for every output, as waves that fit a turn.

    g_d(θ) = α_d Σ_k c_k (w_dk cos kθ + w'_dk sin kθ),   w ~ N(0, 1),   c_k² ∝ e^{-(kℓ)²/2}

It is the Fourier layer of a hidden function that comes back to itself after a turn: a Gaussian
process of the phase, squared exponential of lengthscale ℓ and variance α². It is linear in w, so
the filter integrates them out beside the state. α and ℓ are about what is usual, e^N(0,1) times.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

HARMONICS = 8  # waves per turn, at most: shapes with more of them are left to the oscillators
_AMPLITUDE, _LENGTHSCALE = 0.3, 0.5  # usual α of standardised outputs, and ℓ in radians


class PhaseLayer(nn.Module):
    """Functions of the phase, one for every output."""

    def __init__(self, num_outputs: int) -> None:
        super().__init__()
        self.log_amplitude = nn.Parameter(torch.zeros(num_outputs, dtype=torch.float64))
        self.log_lengthscale = nn.Parameter(torch.zeros((), dtype=torch.float64))

    @property
    def amplitude(self) -> Float[Tensor, " D"]:
        """α, the standard deviation of each function before data come."""
        return _AMPLITUDE * self.log_amplitude.exp()

    @property
    def count(self) -> int:
        """How many weights there are, of all outputs."""
        return 2 * HARMONICS * len(self.log_amplitude)

    def forward(
        self, phase: Float[Tensor, "B N"], variance: Float[Tensor, "B N"]
    ) -> Float[Tensor, "B N D W"]:
        """The functions that weights multiply; their expectations where the phase is uncertain."""
        k = torch.arange(1, HARMONICS + 1, dtype=phase.dtype)
        lengthscale = _LENGTHSCALE * self.log_lengthscale.exp()
        size = torch.exp(-((k * lengthscale) ** 2) / 4)
        size = size / size.square().sum().sqrt()
        left = size * torch.exp(-variance[..., None] * k**2 / 2)
        angle = k * phase[..., None]
        waves = torch.cat((left * angle.cos(), left * angle.sin()), -1)
        return torch.einsum("bnw,de->bndew", waves, torch.diag(self.amplitude)).flatten(3)

    def extra_repr(self) -> str:
        return f"{HARMONICS} waves per turn, {len(self.log_amplitude)} outputs"
