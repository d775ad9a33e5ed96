"""Paths of impulses instead of random numbers: their sum of products is the exact covariance.

A path is linear in its random numbers. Let sample s have a one where the s-th number is asked for,
and zeros elsewhere; then Σ_s f_s(t) f_s(t') is what the covariance of a draw would be.
"""

from typing import Any

import numpy as np
import pytest

from deeplfm.statespace.block_paths import BlockPaths
from deeplfm.statespace.oscillator_paths import OscillatorPaths


def draw_impulses(monkeypatch: pytest.MonkeyPatch, limit: int) -> dict[Any, int]:
    """From here on paths draw impulses; returns the numbers that were asked for."""
    asked: dict[Any, int] = {}

    def impulses(kind: str, states: range, label: int, level: int, index: np.ndarray) -> np.ndarray:
        values = np.zeros((len(states), limit, len(index)))
        for row, state in enumerate(states):
            for column, cell in enumerate(index.tolist()):
                sample = asked.setdefault((kind, state, label, level, cell), len(asked))
                values[row, sample, column] = 1
        return values

    def of_oscillators(
        self: OscillatorPaths, modes: slice, label: int, level: int, index: np.ndarray
    ) -> np.ndarray:
        states = range(modes.start, min(modes.stop, len(self.decay)))
        pairs = [impulses(kind, states, label, level, index) for kind in "xy"]
        return np.stack(pairs)

    def of_blocks(self: BlockPaths, label: int, level: int, index: np.ndarray) -> np.ndarray:
        key = f"block {self.ladder.states.tolist()}"
        return impulses(key, range(len(self.bits)), label, level, index)

    monkeypatch.setattr(OscillatorPaths, "_normals", of_oscillators)
    monkeypatch.setattr(BlockPaths, "_normals", of_blocks)
    return asked
