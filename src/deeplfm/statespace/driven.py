"""ODEs with forces of their own, as one Markov state: the classical latent force model, exact.

    u_q: a Markov force of unit variance;   f_d = Σ_q S_dq ∫ G_d(t - τ) u_q(τ) dτ
    z = (states of every force, states of every ODE),   dz = F z dt + L dβ

Forces and outputs are both linear in z. The force's chain feeds the ODE's chain (`chains`); steps
of any length are exact (`triangular`).
"""

from collections.abc import Sequence
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from deeplfm.errors import InputError
from deeplfm.forces import ForceKernel, MarkovForce, Matern
from deeplfm.greens_functions import Dynamics
from deeplfm.shapes import Memory, as_tensors, check_choice, check_positive, check_shape
from deeplfm.statespace.blocks import Block, Moves, checked_steps
from deeplfm.statespace.chains import Wiring, output_odes

_SMOOTHEST = Matern(2.5)


@final
class DrivenODE(Block):
    """D outputs, each a stable ODE driven by Q forces that all share.

    `greens_functions` is one with parameters () or [D, 1], or a list of one per output;
    `sensitivities` [D, Q] are S, `lengthscale` [Q] that of each force. At the first time the forces
    are stationary; the ODEs are too, with infinite memory, or at rest, with zero memory.
    """

    def __init__(
        self,
        greens_functions: Dynamics | Sequence[Dynamics],
        sensitivities: Float[Tensor, "D Q"],
        lengthscale: Float[Tensor, " Q"],
        *,
        force: ForceKernel = _SMOOTHEST,
        memory: Memory = "infinite",
    ) -> None:
        check_choice("memory", memory, Memory)
        as_tensors({"sensitivities": sensitivities.sum()})
        check_shape("sensitivities", sensitivities, ("D", "Q"), "One row per output.")
        outputs, forces = sensitivities.shape
        check_shape("lengthscale", lengthscale, (forces,), "One per force, as in sensitivities.")
        check_positive("lengthscale", lengthscale, "")
        state = force.markov_state(lengthscale.double())
        if state is None:
            raise InputError(
                f"the force of a Markov state must be Markov, such as Matern(2.5); got {force!r}. "
                "Choose another force, or a Fourier or inducing layer."
            )
        self.memory: Memory = memory
        self.density: Float[Tensor, " Q"] = state.density
        wiring = Wiring(state.density)
        starts = [_add_force(wiring, state, q) for q in range(forces)]
        self._num_force_states = wiring.size
        weights = sensitivities.double()
        heard = [list(enumerate(state.readout, start)) for start in starts]
        answers = []
        for d, ode in enumerate(output_odes(greens_functions, outputs)):
            feeds = [
                (index, weights[d, q] * weight) for q in range(forces) for index, weight in heard[q]
            ]
            answers.append((wiring.chain(ode.factors, feeds), ode.gain))
        # Readouts [D, M] and [Q, M], and the direction of each white noise [M, Q].
        self.outputs = torch.stack([wiring.readout(feeds) * gain for feeds, gain in answers])
        self.forces = torch.stack([wiring.readout(feeds) for feeds in heard])
        directions = [wiring.readout(list(enumerate(state.noise, start))) for start in starts]
        self.noise = torch.stack(directions, dim=1)
        self.system = wiring.system(self.noise * torch.sqrt(self.density))

    @property
    def size(self) -> int:
        return self.system.size

    @property
    def feedback(self) -> Float[Tensor, "M M"]:
        """F."""
        return self.system.feedback

    def moves(self, steps: Float[Tensor, " T"]) -> Moves:
        return Moves(*self.system.moves(checked_steps(steps)))

    def early_moves(self, steps: Float[Tensor, " T"]) -> Moves:
        if self.memory == "infinite":
            return self.moves(steps)
        moves = self.moves(steps)
        same = torch.eye(self.size).to(moves.transition).expand_as(moves.transition)
        return Moves(same, torch.zeros_like(moves.diffusion))

    def start(self) -> Float[Tensor, "M M"]:
        covariance = self.system.stationary()
        if self.memory == "infinite":
            return covariance
        force = torch.arange(self.size, device=covariance.device) < self._num_force_states
        return torch.where(force[:, None] & force, covariance, torch.zeros_like(covariance))


def _add_force(wiring: Wiring, state: MarkovForce, q: int) -> int:
    """The states of one force; the number of the first."""
    feedback = state.feedback[q]
    if bool(feedback.detach().triu(1).any()):
        raise InputError(
            "the Markov state of a force must have a lower triangular feedback; got "
            f"{feedback.tolist()}. Write it as a chain of real poles."
        )
    states = [wiring.single(-feedback[i, i]) for i in range(len(feedback))]
    for i, row in enumerate(states):
        for j, column in enumerate(states[:i]):
            wiring.feed(row, column, feedback[i, j])
    return states[0]
