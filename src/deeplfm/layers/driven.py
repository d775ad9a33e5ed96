"""Physics of the user: ODEs, forces that the outputs share, and answers to known inputs.

    f_d = Σ_q S_dq ∫ G_d(t - τ) u_q(τ) dτ,   u_q a Markov force of unit variance and lengthscale ℓ_q

Quantities of the ODEs are learnt as their templates say, each raw number N(0, 1) before data come.
"""

from typing import cast, final

import torch
from jaxtyping import Float
from torch import Tensor, nn

from deeplfm.forces import ForceKernel
from deeplfm.greens_functions import GreensFunction
from deeplfm.shapes import Memory
from deeplfm.statespace import DrivenODE

_LENGTH_SPREAD = 1.5  # standard deviation of log ℓ about its centre
_GAIN = 3.0  # that of S, where 1 gives an output the variance that it has


@final
class DrivenOutputs(nn.Module):
    """D outputs, each an ODE driven by Q forces.

    greens_function: with parameters [D, 1], or one per output with [1, 1], per unit of time.
    lengthscale: where ℓ is centred.
    """

    lengthscale_centre: Tensor
    size: Tensor

    def __init__(
        self,
        greens_function: GreensFunction | list[GreensFunction],
        num_outputs: int,
        num_forces: int,
        lengthscale: float,
        force: ForceKernel,
        memory: Memory,
    ) -> None:
        super().__init__()
        own = [greens_function] if isinstance(greens_function, GreensFunction) else greens_function
        self.greens_functions = nn.ModuleList(own)
        self.force, self.memory = force, memory
        shape = (num_outputs, num_forces)
        self.log_lengthscale = nn.Parameter(torch.zeros(num_forces, dtype=torch.float64))
        self.gain = nn.Parameter(torch.full(shape, 1 / _GAIN, dtype=torch.float64))
        self.register_buffer("lengthscale_centre", torch.tensor(lengthscale, dtype=torch.float64))
        self.register_buffer("size", torch.ones(num_outputs, dtype=torch.float64))
        with torch.no_grad():
            block = self()
            variance = torch.einsum("dm,mn,dn->d", block.outputs, _stationary(block), block.outputs)
            self.size.copy_(num_forces**-0.5 * variance.rsqrt())

    def forward(self) -> DrivenODE:
        """The block of these parameters."""
        return DrivenODE(
            self.dynamics(),
            self.sensitivities(),
            self.lengthscales(),
            force=self.force,
            memory=self.memory,
        )

    def dynamics(self) -> GreensFunction | list[GreensFunction]:
        """The ODE of all outputs, or one of each."""
        found = cast(list[GreensFunction], list(self.greens_functions))  # it forgets what it holds
        return found[0] if len(found) == 1 else found

    def sensitivities(self) -> Float[Tensor, "D Q"]:
        """S, outputs being standardised."""
        return _GAIN * self.size[:, None] * self.gain

    def lengthscales(self) -> Float[Tensor, " Q"]:
        """ℓ, in the user's units of time."""
        return self.lengthscale_centre * torch.exp(_LENGTH_SPREAD * self.log_lengthscale)


def _stationary(block: DrivenODE) -> Tensor:
    """Of the outputs long after the start, whatever their memory is."""
    return block.system.stationary()
