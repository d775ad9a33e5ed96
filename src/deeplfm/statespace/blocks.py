"""A block of a Markov state: how it moves over a step of time, and how it starts.

    z(t + Δ) = Φ(Δ) z(t) + noise of covariance Q(Δ),   Var z = P at the first time

A block is a plain object of tensors, made anew from parameters whenever they are evaluated, and
differentiable in them. Everything is float64.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple, final

import torch
from jaxtyping import Float
from torch import Tensor

from deeplfm.errors import InputError
from deeplfm.shapes import as_tensors, check_finite, check_shape


class Moves(NamedTuple):
    """Φ and Q over T steps."""

    transition: Float[Tensor, "T M M"]
    diffusion: Float[Tensor, "T M M"]


class Block(ABC):
    """M states that move together, independent of those of other blocks."""

    @property
    @abstractmethod
    def size(self) -> int:
        """M, the number of states."""

    @abstractmethod
    def moves(self, steps: Float[Tensor, " T"]) -> Moves:
        """Φ and Q over each step of time, 0 or longer."""

    @abstractmethod
    def start(self) -> Float[Tensor, "M M"]:
        """The covariance of the states at the first time."""

    def early_moves(self, steps: Float[Tensor, " T"]) -> Moves:
        """Φ and Q over steps before a series begins: what is at rest until then does not move."""
        return self.moves(steps)

    def transition(self, steps: Float[Tensor, " T"]) -> Float[Tensor, "T M M"]:
        """Φ over each step."""
        return self.moves(steps).transition

    def diffusion(self, steps: Float[Tensor, " T"]) -> Float[Tensor, "T M M"]:
        """Q over each step."""
        return self.moves(steps).diffusion


@final
class _Stacked(Block):
    def __init__(self, blocks: Sequence[Block]) -> None:
        self._blocks = tuple(blocks)

    @property
    def size(self) -> int:
        return sum(block.size for block in self._blocks)

    def moves(self, steps: Float[Tensor, " T"]) -> Moves:
        return _joined([one.moves(steps) for one in self._blocks])

    def early_moves(self, steps: Float[Tensor, " T"]) -> Moves:
        return _joined([one.early_moves(steps) for one in self._blocks])

    def start(self) -> Float[Tensor, "M M"]:
        return _block_diagonal([block.start() for block in self._blocks])


def stack_blocks(blocks: Sequence[Block]) -> Block:
    """Several blocks as one, in their order: the matrices are block-diagonal."""
    if not blocks:
        raise InputError("blocks to stack must be one or more; got none. Pass a Level, say.")
    return _Stacked(blocks)


def _joined(moves: Sequence[Moves]) -> Moves:
    transitions, diffusions = zip(*moves, strict=True)
    return Moves(_block_diagonal(transitions), _block_diagonal(diffusions))


def _block_diagonal(matrices: Sequence[Tensor]) -> Tensor:
    """[..., M, M] of matrices [..., m, m], zero outside them."""
    sizes = [one.shape[-1] for one in matrices]
    total, first = sum(sizes), 0
    rows = []
    for one, size in zip(matrices, sizes, strict=True):
        rows.append(torch.nn.functional.pad(one, (first, total - first - size)))
        first += size
    return torch.cat(rows, dim=-2)


def checked_steps(steps: Tensor) -> Tensor:
    """`steps` [T] in float64, finite and none below 0; or an error."""
    as_tensors({"steps": steps})
    check_shape("steps", steps, ("T",), "Flatten them first.")
    check_finite("steps", steps, "Remove those.")
    if steps.device.type == "cpu" and bool((steps < 0).any()):
        raise InputError(
            f"steps must be 0 or above; got {steps.min().item():g}. Sort the times first."
        )
    return steps.double()
