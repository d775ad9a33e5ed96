"""CLOCK: a rhythm that runs faster or slower than usual; all oscillators turn by it.

    dz_k = (-λ_k + jω_k (1 + c(t))) z_k dt + noise,   c constant between two knots

The harmonics of a rhythm change together, and a clock says how. z_k(t) is e^{jω_k A(t)} times a
path of a steady clock, A = ∫ c: noise that is alike in both components does not mind being turned.
"""

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]


@final
@dataclass(frozen=True, eq=False)
class Clock:
    """Knots [W + 1] in time and c [W] between them, of every series; a series without is steady."""

    knots: tuple[Values, ...]
    faster: tuple[Values, ...]

    def ahead(self, times: Values, series: int) -> Values:
        """A at `times` [n], in any order: how far the clock is ahead of a steady one."""
        if series >= len(self.knots) or not len(self.faster[series]):
            return np.zeros(len(times))
        knots, faster = self.knots[series], self.faster[series]
        total = np.concatenate([[0.0], np.cumsum(faster * np.diff(knots))])
        window = self._window(times, series)
        return np.asarray(total[window] + faster[window] * (times - knots[window]))

    def of_steps(self, times: Values, series: int) -> Values:
        """The mean of c on the step that leads to each of ascending `times` [n]; the first has 0.

        Steps of one length inside of one window have exactly the same: their moves are computed
        once.
        """
        if series >= len(self.knots) or not len(self.faster[series]):
            return np.zeros(len(times))
        window = self._window(times, series)
        found = self.faster[series][window]
        before = np.concatenate([times[:1], times[:-1]])
        inside = (before >= self.knots[series][window]) | (window == 0)
        steps = times - before
        crossing = ~inside & (steps > 0)
        if crossing.any():
            ahead = self.ahead(times[crossing], series) - self.ahead(before[crossing], series)
            found = found.copy()
            found[crossing] = ahead / steps[crossing]
        return np.where(steps > 0, found, 0.0)

    def _window(self, times: Values, series: int) -> NDArray[np.int64]:
        """The window (knot, next knot] of every time; the outer ones reach to infinity."""
        found = np.searchsorted(self.knots[series], times, side="left") - 1
        return np.clip(found, 0, len(self.faster[series]) - 1)
