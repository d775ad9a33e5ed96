"""Exact steps of a linear system whose poles stand on its diagonal.

    dz = F z dt + L dβ,   Φ(h) = e^{Fh},   Q(h) = ∫_0^h e^{Fs} L Lᵀ e^{Fᵀs} ds
    Φ(2h) = Φ(h)²,   Q(2h) = Q(h) + Φ(h) Q(h) Φ(h)ᵀ

F is block lower triangular. A short step is a series, and Gauss–Legendre for Q, whose terms are
squares; longer ones double it. Blocks on the diagonal of Φ are closed forms at every length.
"""

import math
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from deeplfm.responses.quadrature import gauss_legendre

_SHORT = 0.25  # fastest rate times the longest step that a series is used for
_TERMS = 12  # of that series after the first that is not zero: 0.25^12/12! is below rounding
_LONG = 64.0  # time constants after which nothing is left: 64^9 e^{-64}, squared, is 1e-23


@final
@dataclass(frozen=True, eq=False)
class TriangularSystem:
    """A system of M states and R white noises; its poles are real ones, and pairs of two states.

    A real pole is a state i with F_ii = -rate. A pair is two states i, i + 1, a position and its
    velocity over ω, with ω² = damping² - discriminant:  F = [[0, ω], [-ω, -2 damping]].
    """

    feedback: Float[Tensor, "M M"]
    noise: Float[Tensor, "M R"]
    singles: tuple[int, ...]
    rate: Float[Tensor, " K1"]
    pairs: tuple[int, ...]
    damping: Float[Tensor, " K2"]
    discriminant: Float[Tensor, " K2"]
    frequency: Float[Tensor, " K2"]

    @property
    def size(self) -> int:
        """M, the number of states."""
        return len(self.feedback)

    def transitions(self, steps: Float[Tensor, " T"]) -> Float[Tensor, "T M M"]:
        """Φ over each step."""
        return _doubled(self, steps, with_noise=False)[0]

    def moves(
        self, steps: Float[Tensor, " T"]
    ) -> tuple[Float[Tensor, "T M M"], Float[Tensor, "T M M"]]:
        """Φ and Q over each step."""
        transition, diffusion = _doubled(self, steps, with_noise=True)
        return transition, (diffusion + diffusion.mT) / 2

    def stationary(self) -> Float[Tensor, "M M"]:
        """The covariance that the noise gives the states in the end: Q of a step long enough."""
        step = self.feedback.new_tensor([_LONG / self._slowest()])
        return self.moves(step)[1][0]

    def fastest(self) -> float:
        """The largest of its rates, which says how short a step must be for a series."""
        rates = torch.cat([self.rate, self.frequency + 2 * self.damping])
        return float(rates.detach().max()) if len(rates) else 0.0

    def _slowest(self) -> float:
        with torch.no_grad():
            root = self.discriminant.clamp(min=0).sqrt()
            near = self.frequency**2 / (self.damping + root)
            pairs = torch.where(self.discriminant > 0, near, self.damping)
            return float(torch.cat([self.rate, pairs]).min())

    def diagonal(self, steps: Float[Tensor, " T"]) -> Float[Tensor, "T M M"]:
        """The blocks on the diagonal of Φ in closed form, zero elsewhere."""
        found = steps.new_zeros(len(steps), self.size, self.size)
        if self.singles:
            index = torch.tensor(self.singles, device=steps.device)
            every = torch.arange(len(steps), device=steps.device)[:, None]
            values = torch.exp(-steps[:, None] * self.rate)
            found = found.index_put((every, index, index), values)
        if self.pairs:
            index = torch.tensor(self.pairs, device=steps.device)[:, None] + torch.arange(
                2, device=steps.device
            )
            every = torch.arange(len(steps), device=steps.device)[:, None, None, None]
            values = pair_exponential(steps, self.damping, self.discriminant, self.frequency)
            found = found.index_put((every, index[:, :, None], index[:, None, :]), values)
        return found

    def off_diagonal(self) -> Float[Tensor, "M M"]:
        """1 where no block of the diagonal is."""
        mask = torch.ones_like(self.feedback)
        for first in self.singles:
            mask[first, first] = 0
        for first in self.pairs:
            mask[first : first + 2, first : first + 2] = 0
        return mask.detach()


def _doubled(system: TriangularSystem, steps: Tensor, with_noise: bool) -> tuple[Tensor, Tensor]:
    """Φ and Q of steps of all lengths: each starts short, and is doubled until it is itself.

    Steps are put in the order of their doublings, so that those still to double come first.
    """
    with torch.no_grad():
        ratio = (steps * (system.fastest() / _SHORT)).clamp(min=1.0)
        levels = torch.ceil(torch.log2(ratio))
        levels, order = torch.sort(levels, descending=True, stable=True)
        counts = [int((levels >= level).sum()) for level in range(1, int(_largest(levels)) + 1)]
    length = steps[order] * torch.exp2(-levels)
    lengths = [length, *(length[:count] * 2.0**level for level, count in enumerate(counts, 1))]
    first, *diagonals = system.diagonal(torch.cat(lengths)).split([len(steps), *counts])
    keep = system.off_diagonal()
    transition, diffusion = _short(system, length, with_noise)
    transition = transition * keep + first
    finished = []
    for count, diagonal in zip(counts, diagonals, strict=True):
        finished.append((transition[count:], diffusion[count:]))
        transition, diffusion = transition[:count], diffusion[:count]
        if with_noise:
            diffusion = diffusion + transition @ diffusion @ transition.mT
        transition = (transition @ transition) * keep + diagonal
    finished.append((transition, diffusion))
    place = torch.argsort(order)
    transitions, diffusions = zip(*reversed(finished), strict=True)
    return torch.cat(transitions)[place], torch.cat(diffusions)[place]


def _largest(levels: Tensor) -> float:
    return float(levels.max()) if len(levels) else 0.0


def _short(system: TriangularSystem, length: Tensor, with_noise: bool) -> tuple[Tensor, Tensor]:
    """Φ and Q of steps so short that the series of e^{Fh} needs a few terms.

    Q = Σ_j w_j g(s_j) g(s_j)ᵀ with g = e^{Fs} L: a sum of squares, so its diagonal is as exact as
    g, and g is as exact as its first term. Units of 1/fastest keep powers in range.
    """
    size, unit = system.size, system.fastest() or 1.0
    scaled = system.feedback / unit
    powers = torch.stack([torch.eye(size, dtype=scaled.dtype, device=scaled.device), scaled])
    while len(powers) < size + _TERMS:
        powers = torch.cat([powers, powers[1:] @ powers[-1]])
    exponents = torch.arange(len(powers), dtype=scaled.dtype, device=scaled.device)
    powers = (
        powers / scaled.new_tensor([math.factorial(m) for m in range(len(powers))])[:, None, None]
    )
    weights = (length * unit)[:, None] ** exponents
    transition = (weights @ powers.flatten(1)).unflatten(1, (size, size))
    if not with_noise:
        return transition, transition.new_zeros(len(length), 0, 0)
    nodes, shares = (one.to(scaled) for one in gauss_legendre(1))
    at_nodes = torch.einsum(
        "jm,mir->mijr", nodes[:, None] ** exponents, powers @ system.noise
    ) * torch.sqrt(shares[:, None])
    responses = (weights @ at_nodes.flatten(1)).unflatten(1, (size, -1))
    flat = responses * torch.sqrt(length)[:, None, None]
    return transition, flat @ flat.mT


def pair_exponential(
    steps: Float[Tensor, " T"],
    damping: Float[Tensor, " K"],
    discriminant: Float[Tensor, " K"],
    frequency: Float[Tensor, " K"],
) -> Float[Tensor, "T K 2 2"]:
    """e^{Fh} of [[0, ω], [-ω, -2α]]: swinging, creeping and critical, smooth between them.

    e^{Fh} = e^{-αh} (C + S (F + α)),   C = cosh(dh),  S = sinh(dh)/d,  d² = q
    """
    h = steps[:, None]
    x = discriminant * h**2
    swings, creeps = x < -1, x > 1
    # Each form sees harmless numbers where it is not used: its gradient is then a number as well.
    near_critical = torch.where(swings | creeps, torch.zeros_like(x), x)
    even, odd = torch.ones_like(x), torch.ones_like(x)
    for term in range(9, 0, -1):  # |x| ≤ 1: the tenth is below 1/20!
        even = 1 + near_critical * even / ((2 * term - 1) * (2 * term))
        odd = 1 + near_critical * odd / ((2 * term) * (2 * term + 1))
    one = torch.ones_like(x)
    turn = torch.sqrt(torch.where(swings, -discriminant * one, one))
    envelope = torch.exp(-damping * h)
    cosine = torch.where(swings, torch.cos(turn * h), even)
    sine = torch.where(swings, torch.sin(turn * h) / turn, h * odd)
    first = envelope * (cosine + damping * sine)
    cross = envelope * sine
    last = envelope * (cosine - damping * sine)
    # Two real poles: 1 - α/d is -ω²/(d (d + α)), which does not cancel.
    d = torch.sqrt(torch.where(creeps, discriminant * one, one))
    far = damping + d
    slow, quick = torch.exp(-(frequency**2) / far * h), torch.exp(-far * h)
    small = frequency**2 / (d * far)
    first = torch.where(creeps, (slow * (far / d) - quick * small) / 2, first)
    cross = torch.where(creeps, (slow - quick) / (2 * d), cross)
    last = torch.where(creeps, (quick * (far / d) - slow * small) / 2, last)
    swing = frequency * cross
    rows = [torch.stack([first, swing], dim=-1), torch.stack([-swing, last], dim=-1)]
    return torch.stack(rows, dim=-2)
