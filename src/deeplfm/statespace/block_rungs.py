"""Halving a bridge of a small linear SDE: what each length of step needs, computed once.

    mid = Φ z + G δ + C n,   δ = z_end - Φ(2h) z,   G = QΦᵀ Q(2h)⁺,   CCᵀ = Q - GΦQ   (Φ, Q over h)
    left half: (z, Gδ + Cn);   right half: (mid, δ - Φ(Gδ + Cn))

δ is carried, never a difference of states: positions that were rounded do not become velocities.
Matrices are divided by standard deviations first, so steps may be as small as they like.
"""

from typing import NamedTuple, Protocol, final, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from deeplfm.statespace.dyadic import MOST_LEVELS, NEGLIGIBLE

BEFORE = 20  # doublings of the scale before the origin, where a stationary part starts
_STATIONARY = 1e-8  # change of a covariance, relative to it, that is rounding
# Eigenvalues of a correlation below this are not divided by: rounding would come back 1e10 times
# larger. States that share a noise (x_1 - x_2 smoother than both) have such over short steps.
_SINGULAR = 1e-10


@runtime_checkable
class Block(Protocol):
    """A linear SDE of M states: what it does over steps, and its covariance at the origin."""

    @property
    def size(self) -> int:
        """M, the number of states."""

    def transition(self, steps: Float[Tensor, "T"]) -> Float[Tensor, "T M M"]:
        """Φ over each step: the states at its end, given those at its begin."""

    def diffusion(self, steps: Float[Tensor, "T"]) -> Float[Tensor, "T M M"]:
        """Q over each step: the covariance of what noise adds."""

    def start(self) -> Float[Tensor, "M M"]:
        """Covariance at the origin."""


class Rung(NamedTuple):
    """Matrices of a step h: transition, root of its noise; gain and root of the middle of 2h."""

    transition: Float[np.ndarray, "M M"]
    diffusion: Float[np.ndarray, "M M"]
    root: Float[np.ndarray, "M M"]
    gain: Float[np.ndarray, "M M"]
    middle: Float[np.ndarray, "M M"]


def _scaled(covariance: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Standard deviations, eigenvalues of the correlation (0 where rounding) and its vectors."""
    deviation = np.sqrt(np.maximum(np.diagonal(covariance), 0))
    safe = np.where(deviation > 0, deviation, 1)
    correlation = covariance / safe[:, None] / safe
    values, vectors = np.linalg.eigh((correlation + correlation.T) / 2)
    return safe, np.where(values > _SINGULAR * len(values), values, 0), vectors


def square_root(covariance: Float[np.ndarray, "M M"]) -> Float[np.ndarray, "M M"]:
    """A matrix whose product with its transpose is the covariance, singular or not."""
    deviation, values, vectors = _scaled(covariance)
    root: np.ndarray = deviation[:, None] * vectors * np.sqrt(values)
    return root


def divide(
    left: Float[np.ndarray, "*T M M"], covariance: Float[np.ndarray, "M M"]
) -> tuple[Float[np.ndarray, "*T M M"], Float[np.ndarray, "M M"]]:
    """left · covariance⁺, and the projection onto what the covariance does not reach."""
    deviation, values, vectors = _scaled(covariance)
    inverse = np.where(values > 0, 1 / np.where(values > 0, values, 1), 0)
    whitened = ((left / deviation) @ vectors * inverse) @ vectors.T / deviation
    null = (vectors * (values == 0)) @ vectors.T
    return whitened, deviation[:, None] * null / deviation


def rung(transition: np.ndarray, diffusion: np.ndarray) -> Rung:
    """The matrices of a step, from its Φ and Q."""
    twice = transition @ diffusion @ transition.T + diffusion
    gain, missed = divide(diffusion @ transition.T, twice)
    keep = np.eye(len(transition)) - gain @ transition
    covariance = keep @ diffusion @ keep.T + gain @ diffusion @ gain.T
    # What no noise of this step reaches is shared evenly, so that paths stay continuous.
    gain = gain + missed / 2
    return Rung(transition, diffusion, square_root(diffusion), gain, square_root(covariance))


def part(matrices: Float[np.ndarray, "*T M M"], states: Int[np.ndarray, "m"]) -> np.ndarray:
    """Rows and columns of some states."""
    return matrices[..., states[:, None], states]


def as_steps(
    block: Block, steps: Float[np.ndarray, "T"]
) -> tuple[Float[np.ndarray, "T M M"], Float[np.ndarray, "T M M"]]:
    """Φ and Q of a block over steps."""
    with torch.no_grad():
        given = torch.from_numpy(np.ascontiguousarray(steps))
        return block.transition(given).numpy(), block.diffusion(given).numpy()


@final
class Ladder:
    """All rungs of some states of a block, from the scale down to where noise is negligible."""

    def __init__(self, block: Block, states: Int[np.ndarray, "M"], scale: float) -> None:
        self.states = states
        ladder = as_steps(block, np.ldexp(scale, -np.arange(MOST_LEVELS + 1)))
        transition, diffusion = (part(matrices, states) for matrices in ladder)
        start = part(block.start().detach().cpu().numpy(), states)
        self.start = square_root(start)
        reference = np.diagonal(start) + np.diagonal(diffusion[0])
        spread = np.diagonal(diffusion, axis1=1, axis2=2)
        drawn = (spread > NEGLIGIBLE * reference).any(1)
        self.lowest = -int(np.flatnonzero(drawn).max(initial=0))
        self._rungs = {
            -power: rung(transition[power], diffusion[power]) for power in range(-self.lowest + 1)
        }
        self.stationary = self._is_stationary(start)

    def __getitem__(self, power: int) -> Rung:
        """The rung of scale · 2^power; above the scale by doubling, which loses nothing."""
        for higher in range(max(self._rungs) + 1, power + 1):
            phi, noise = self._rungs[higher - 1].transition, self._rungs[higher - 1].diffusion
            self._rungs[higher] = rung(phi @ phi, phi @ noise @ phi.T + noise)
        return self._rungs[power]

    def _is_stationary(self, start: np.ndarray) -> bool:
        size = np.sqrt(np.diagonal(start))
        for power in range(BEFORE + 1):  # in turn: a process that grows must not overflow
            phi, noise = self[power].transition, self[power].diffusion
            change = phi @ start @ phi.T + noise - start
            if (np.abs(change) > _STATIONARY * size[:, None] * size).any():
                return False
        return True


def independent_parts(block: Block, scale: float) -> list[Int[np.ndarray, "M"]]:
    """Sets of states that nothing connects: neither transition nor noise nor start."""
    transition, diffusion = as_steps(block, np.ldexp(scale, -np.arange(0, MOST_LEVELS, 4)))
    linked = (transition != 0).any(0) | (diffusion != 0).any(0)
    linked = linked | (block.start().detach().cpu().numpy() != 0) | np.eye(block.size, dtype=bool)
    linked = linked | linked.T
    for _ in range(block.size):  # each round doubles the number of links that are followed
        linked = linked @ linked
    labels = linked.argmax(1)
    return [np.flatnonzero(labels == label) for label in np.unique(labels)]
