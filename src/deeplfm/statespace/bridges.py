"""Prior paths of a Markov state as functions of time: what a state is at t depends on t alone.

    z = (x_1…x_K, y_1…y_K, w_1…w_M),   dz = F z dt + L dβ    (the state of `sums.markov_evidence`)

Between the ends of an interval a path is halved, each middle drawn given both ends, until the
spread of a bridge is below 1e-6 of the stationary one; then the bridge's mean is used. Random
numbers belong to middles (`keyed_normals`), so neither other times nor their order matter.
"""

from collections.abc import Callable, Iterator
from typing import final

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from deeplfm.errors import InputError
from deeplfm.statespace.block_paths import BlockPaths
from deeplfm.statespace.block_rungs import Block, Ladder, independent_parts
from deeplfm.statespace.oscillator_paths import OscillatorPaths

_CHUNK = 2**15  # numbers of a chunk: what a core keeps close
_TIMES = 512  # of a chunk, at most: coarse cells are shared inside one


@final
class PriorPaths:
    """S draws of a state of K oscillators and an optional block, each a function of time.

    Args:
        decay, frequency: λ ≥ 0 and ω of the oscillators, per unit of time.
        block: a linear SDE of M more states. Its parts that start stationary have paths on both
            sides of the origin; others are defined from the origin on, and hold before it what
            they start with.
        num_samples: S.
        seed: the same seed gives the same functions.
        origin, scale: the first interval is [origin, origin + scale], others double from there.
            An even grid that starts at the origin is drawn several times faster where its step is
            the scale divided by a power of two, exactly.
        ahead: how far the clock of the oscillators is ahead at some times (`clock.py`).

    >>> import numpy as np, torch
    >>> decay, frequency = torch.tensor([[0.1], [6.0]], dtype=torch.float64)
    >>> paths = PriorPaths(
    ...     decay, frequency, None, num_samples=3, seed=0, origin=0.0, scale=10.0
    ... )
    >>> states = paths(np.array([0.5, -7.0, 1e4]))
    >>> states.shape
    torch.Size([3, 3, 2])
    >>> bool((paths(np.array([1e4])) == states[:, 2:]).all())
    True
    """

    def __init__(
        self,
        decay: Float[Tensor, "K"],
        frequency: Float[Tensor, "K"],
        block: Block | None,
        *,
        num_samples: int,
        seed: int,
        origin: float,
        scale: float,
        ahead: Callable[[np.ndarray], np.ndarray] | None = None,
    ) -> None:
        if decay.shape != frequency.shape or not bool((decay >= 0).all()):
            raise InputError(
                "decay and frequency must be one number each per oscillator, decays not negative; "
                f"got {tuple(decay.shape)} and {tuple(frequency.shape)}, smallest decay "
                f"{float(decay.min()) if decay.numel() else 0:g}. Pass λ and ω of every oscillator."
            )
        if not (scale > 0 and np.isfinite(scale) and np.isfinite(origin) and num_samples > 0):
            raise InputError(
                "scale and num_samples must be positive, origin a number; got "
                f"{scale}, {num_samples} and {origin}. Take the first time and the record's length."
            )
        self.num_samples = num_samples
        self.origin = float(origin)
        self.oscillators = OscillatorPaths(
            decay.detach().cpu().double().numpy(),
            frequency.detach().cpu().double().numpy(),
            num_samples,
            seed,
            float(scale),
        )
        self._ahead, self._frequency = ahead, frequency.detach().cpu().double().numpy()
        self.num_oscillators = len(decay)
        self.num_states = 2 * len(decay)
        self.blocks: list[BlockPaths] = []
        if block is not None:
            self.num_states += block.size
            for states in independent_parts(block, float(scale)):
                ladder = Ladder(block, states, float(scale))
                self.blocks.append(
                    BlockPaths(block, ladder, len(decay), num_samples, seed, float(scale))
                )

    def __call__(self, times: Float[np.ndarray, "N"]) -> Float[Tensor, "S N s"]:
        """The states at `times`, in any order."""
        distinct, row = self._distinct(times)
        states = np.empty((self.num_samples, len(distinct), self.num_states))
        for rows, columns, values in self._chunks(distinct):
            states[:, rows, columns] = values.transpose(1, 2, 0)
        return torch.from_numpy(states[:, row])

    def functions(
        self, times: Float[np.ndarray, "N"], readout: Float[Tensor, "E s"]
    ) -> Float[Tensor, "S N E"]:
        """E linear functions of the state at `times`; the states are never held all at once."""
        if readout.ndim != 2 or readout.shape[1] != self.num_states:
            raise InputError(
                f"readout must be [E, {self.num_states}], one number per state; got "
                f"{tuple(readout.shape)}. Pass the loadings of all states."
            )
        weights = readout.detach().cpu().double().numpy()
        distinct, row = self._distinct(times)
        total = np.zeros((self.num_samples, len(distinct), len(weights)))
        for rows, columns, values in self._chunks(distinct):
            total[:, rows] += np.einsum("ec,csn->sne", weights[:, columns], values, optimize=True)
        return torch.from_numpy(total[:, row])

    def _distinct(self, times: np.ndarray) -> tuple[np.ndarray, Int[np.ndarray, "N"]]:
        """Ascending times without repetitions, and where each of `times` is among them."""
        times = np.asarray(times, dtype=np.float64)
        if times.ndim != 1 or not np.isfinite(times).all():
            raise InputError(
                f"times must be [N], finite numbers; got {times.shape} with "
                f"{np.count_nonzero(~np.isfinite(times))} that are not. Remove those rows."
            )
        distinct, row = np.unique(times, return_inverse=True)
        return distinct, row

    def _chunks(self, times: np.ndarray) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
        """Rows of ascending times, numbers of states, and those states [c, S, n] there."""
        count = min(_TIMES, max(_CHUNK // self.num_samples, 1))
        modes = max(_CHUNK // (count * self.num_samples), 1)
        if len(times) < count:
            modes = max(_CHUNK // (max(len(times), 1) * self.num_samples), 1)
        for low in range(0, len(times), count):
            rows = slice(low, min(low + count, len(times)))
            elapsed = times[rows] - self.origin
            back = times[rows] - elapsed  # what the difference lost (Knuth's two-sum)
            rounding = (times[rows] - (elapsed + back)) + (back - self.origin)
            for first in range(0, self.num_oscillators, modes):
                some = slice(first, min(first + modes, self.num_oscillators))
                numbers, pairs = self.oscillators(elapsed, rounding, some)
                x, y = pairs[0], pairs[1]
                if self._ahead is not None:
                    angle = self._frequency[numbers][:, None] * self._ahead(times[rows])
                    cosine, sine = np.cos(angle)[:, None], np.sin(angle)[:, None]
                    x, y = cosine * x - sine * y, sine * x + cosine * y
                yield rows, numbers, x
                yield rows, self.num_oscillators + numbers, y
            for block in self.blocks:
                yield rows, 2 * self.num_oscillators + block.ladder.states, block(elapsed)
