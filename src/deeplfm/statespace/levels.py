"""Slow parts of a series: levels that return, levels that wander, trends that bend.

    level:            dz = -λ z dt + √(2λ) dβ,  Var z = 1
    random walk:      dz = √rate dβ,            z = 0 at the first time
    integrated walk:  dz = s dt,  ds = √rate dβ,  z = s = 0 at the first time

What a walk starts from is not in its state: it is an unknown constant, or a line.
"""

from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from deeplfm.shapes import as_tensors, check_positive, check_shape
from deeplfm.statespace.blocks import Block, Moves, checked_steps


@final
class Level(Block):
    """M independent Ornstein-Uhlenbeck states of variance 1, stationary; `decay` is λ [M]."""

    def __init__(self, decay: Float[Tensor, " M"]) -> None:
        self.decay = _rates("decay", decay)

    @property
    def size(self) -> int:
        return len(self.decay)

    def moves(self, steps: Float[Tensor, " T"]) -> Moves:
        exponent = checked_steps(steps)[:, None] * self.decay
        return Moves(
            torch.diag_embed(torch.exp(-exponent)),
            torch.diag_embed(-torch.expm1(-2 * exponent)),  # 1 - e^{-2λΔ}, exact for tiny steps
        )

    def start(self) -> Float[Tensor, "M M"]:
        return torch.eye(self.size, dtype=torch.float64, device=self.decay.device)


@final
class RandomWalk(Block):
    """M independent random walks whose variance grows by `rate` [M] per unit of time, from 0."""

    def __init__(self, rate: Float[Tensor, " M"]) -> None:
        self.rate = _rates("rate", rate)

    @property
    def size(self) -> int:
        return len(self.rate)

    def moves(self, steps: Float[Tensor, " T"]) -> Moves:
        steps = checked_steps(steps)
        same = torch.eye(self.size, dtype=torch.float64, device=self.rate.device)
        return Moves(same.expand(len(steps), -1, -1), torch.diag_embed(steps[:, None] * self.rate))

    def start(self) -> Float[Tensor, "M M"]:
        return self.rate.new_zeros(self.size, self.size)


@final
class IntegratedWalk(Block):
    """Local linear trends, whose slopes are random walks of variance `rate` [K] per unit of time.

    The states are value and slope of each in turn, M = 2K; `values` [K, M] reads the values.
    """

    def __init__(self, rate: Float[Tensor, " K"]) -> None:
        self.rate = _rates("rate", rate)

    @property
    def size(self) -> int:
        return 2 * len(self.rate)

    @property
    def values(self) -> Float[Tensor, "K M"]:
        """The readouts of the trends."""
        return torch.eye(self.size, dtype=torch.float64, device=self.rate.device)[::2]

    def moves(self, steps: Float[Tensor, " T"]) -> Moves:
        steps = checked_steps(steps)
        none, one = torch.zeros_like(steps), torch.ones_like(steps)
        transition = _two_by_two(one, steps, none, one)
        cross = steps**2 / 2
        diffusion = _two_by_two(steps**3 / 3, cross, cross, steps)
        trends = torch.eye(len(self.rate), dtype=torch.float64, device=self.rate.device)
        rates = torch.diag(self.rate)
        return Moves(_kronecker(trends, transition), _kronecker(rates, diffusion))

    def start(self) -> Float[Tensor, "M M"]:
        return self.rate.new_zeros(self.size, self.size)


def _rates(name: str, value: Tensor) -> Tensor:
    """`value` [M] in float64, above 0."""
    as_tensors({name: value})
    check_shape(name, value, ("M",), "Pass one number per state.")
    check_positive(name, value, "")
    return value.double()


def _two_by_two(a: Tensor, b: Tensor, c: Tensor, d: Tensor) -> Tensor:
    return torch.stack([torch.stack([a, b], dim=-1), torch.stack([c, d], dim=-1)], dim=-2)


def _kronecker(outer: Tensor, inner: Tensor) -> Tensor:
    """[T, K·m, K·m] of [K, K] and [T, m, m]."""
    product = torch.einsum("kl,tij->tkilj", outer, inner)
    size = len(outer) * inner.shape[-1]
    return product.reshape(len(inner), size, size)
