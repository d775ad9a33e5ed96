"""An ODE as a chain of filters, one per factor of its polynomial, that pass a constant unchanged.

    p + a:            x' = a (input - x)
    (p + α)² - q:     x' = ω v,   v' = ω (input - x) - 2αv,   ω² = α² - q

The last x is the ODE's answer over its gain at 0. States stay of the size of the input whatever the
units of time are, and real poles give a chain without a negative coupling: nothing cancels.
"""

from collections.abc import Sequence
from typing import NamedTuple, final

import numpy as np
import torch
from torch import Tensor

from deeplfm.errors import InputError
from deeplfm.greens_functions import Dynamics, Linear, Quadratic
from deeplfm.greens_functions.factors import Factor
from deeplfm.statespace.triangular import TriangularSystem

Feeds = Sequence[tuple[int, Tensor | float]]  # states, and how much of each an input takes


class OutputODE(NamedTuple):
    """One output's ODE: its factors as numbers, and its answer to a constant 1."""

    factors: tuple[Factor, ...]
    gain: Tensor


@final
class Wiring:
    """A system in the making: states are added, and fed by states that were added before."""

    def __init__(self, like: Tensor) -> None:
        self._like = like
        self._size = 0
        self._entries: list[tuple[int, int, Tensor]] = []
        self._singles: list[tuple[int, Tensor]] = []
        self._pairs: list[tuple[int, Tensor, Tensor, Tensor]] = []

    @property
    def size(self) -> int:
        """The number of states so far."""
        return self._size

    def single(self, rate: Tensor) -> int:
        """A state with a real pole; its number."""
        first = self._size
        self._singles.append((first, rate))
        self._entries.append((first, first, -rate))
        self._size += 1
        return first

    def pair(self, factor: Quadratic) -> int:
        """A position and a velocity; the number of the position."""
        first = self._size
        frequency = torch.sqrt(factor.product)
        self._pairs.append((first, factor.damping, factor.discriminant, frequency))
        self._entries += [
            (first, first + 1, frequency),
            (first + 1, first, -frequency),
            (first + 1, first + 1, -2 * factor.damping),
        ]
        self._size += 2
        return first

    def feed(self, state: int, source: int, rate: Tensor) -> None:
        """`state` grows by rate times `source`, a state before it."""
        self._entries.append((state, source, rate))

    def chain(self, factors: Sequence[Factor], feeds: Feeds) -> Feeds:
        """The filters of an ODE, one after another; what reads its answer."""
        for factor in factors:
            if isinstance(factor, Linear):
                answer = state = self.single(factor.rate)
                speed = factor.rate
            else:
                answer = self.pair(factor)
                state, speed = answer + 1, torch.sqrt(factor.product)
            for source, weight in feeds:
                self.feed(state, source, speed * weight)
            feeds = [(answer, 1.0)]
        return feeds

    def readout(self, feeds: Feeds) -> Tensor:
        """A row [M] that reads those states."""
        row = self._like.new_zeros(self._size)
        if not feeds:
            return row
        index = torch.tensor([state for state, _ in feeds], device=row.device)
        values = [torch.as_tensor(weight).to(row) for _, weight in feeds]
        return row.index_put((index,), torch.stack(values))

    def system(self, noise: Tensor) -> TriangularSystem:
        """The whole, driven by `noise` [M, R]."""
        rows, columns = (
            torch.tensor([entry[i] for entry in self._entries], device=self._like.device)
            for i in (0, 1)
        )
        values = self._stack([value for _, _, value in self._entries])
        square = self._like.new_zeros(self._size, self._size)
        return TriangularSystem(
            feedback=square.index_put((rows, columns), values),
            noise=noise,
            singles=tuple(first for first, _ in self._singles),
            rate=self._stack([rate for _, rate in self._singles]),
            pairs=tuple(first for first, *_ in self._pairs),
            damping=self._stack([damping for _, damping, _, _ in self._pairs]),
            discriminant=self._stack([value for _, _, value, _ in self._pairs]),
            frequency=self._stack([frequency for *_, frequency in self._pairs]),
        )

    def _stack(self, values: list[Tensor]) -> Tensor:
        return torch.stack(values) if values else self._like.new_zeros(0)


def output_odes(
    greens_functions: Dynamics | Sequence[Dynamics], outputs: int | None = None
) -> list[OutputODE]:
    """The ODE of each output: one with parts () or [D, 1], or one per output with () or [1, 1].

    One with parts () is that of all `outputs`, if their number is given.
    """
    if isinstance(greens_functions, Dynamics):
        found = _rows(greens_functions, outputs)
    else:
        found = [row for one in greens_functions for row in _rows(one, 1)]
    if not found or (outputs is not None and len(found) != outputs):
        raise InputError(
            f"Green's functions must be one per output, {outputs} in all; got {len(found)}. "
            "Pass one whose parameters are numbers or [D, 1], or a list."
        )
    return found


def _rows(dynamics: Dynamics, outputs: int | None) -> list[OutputODE]:
    if not dynamics.stable:
        worst = dynamics.poles().detach().real.min().item()
        raise InputError(
            "a Markov state needs a stable ODE (every pole s with Re s > 0); got a pole with "
            f"Re s = {worst:g}. Change its coefficients, or use a Fourier or inducing layer."
        )
    factors = dynamics.factors
    # As torch.broadcast_shapes, which would import half a second of symbolic algebra.
    shape = np.broadcast_shapes(*(tuple(part.shape) for factor in factors for part in factor))
    if shape != () and (len(shape) != 2 or shape[1] != 1):
        raise InputError(
            "parameters of a Green's function over time must be numbers or [D, 1]; got "
            f"{list(shape)}. Pass an ODE of one input."
        )
    rows = (shape[0] if shape else 1) if outputs is None else outputs
    if shape and shape[0] not in (1, rows):
        raise InputError(
            f"parameters of a Green's function of {rows} outputs must be numbers or [{rows}, 1]; "
            f"got {list(shape)}. Pass one per output."
        )
    columns = [
        type(factor)(*(part.double().expand(rows, 1)[:, 0] for part in factor))
        for factor in factors
    ]
    found = []
    for d in range(rows):
        chain = tuple(type(factor)(*(part[d] for part in factor)) for factor in columns)
        gain = torch.ones((), dtype=torch.float64)
        for factor in chain:
            gain = gain.to(factor.at_zero.device)
            gain = gain if dynamics.normalised else gain / factor.at_zero
        found.append(OutputODE(chain, gain))
    return found
