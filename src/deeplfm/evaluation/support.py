"""The values that a target can have.

    REAL_LINE;   Support(low=0, whole=True)  counts;   Support(low=0, high=1)  shares

Whoever knows the support of a target can check it, and knows where its density is zero.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]

_NEXT_TO_AN_END = 1e-6  # a share closer to 0 or 1 than this counts as so close


class Support(NamedTuple):
    """Numbers from `low` to `high`, ends included: all real ones, or only the whole ones."""

    low: float = -math.inf
    high: float = math.inf
    whole: bool = False

    @property
    def inside(self) -> float:
        """One value of the support: it stands where nothing was observed."""
        if math.isinf(self.low):
            return 0.0 if math.isinf(self.high) else float(self.high - 1)
        if self.whole or math.isinf(self.high):
            return float(self.low if self.whole else self.low + 1)
        return (self.low + self.high) / 2

    def contains(self, y: Values) -> NDArray[np.bool_]:
        """Where `y` is in the support; NaN and infinities are not."""
        inside = np.isfinite(y) & (y >= self.low) & (y <= self.high)
        return inside & (y == np.floor(y)) if self.whole else inside

    def in_words(self) -> str:
        """What a target must be, for an error message."""
        kind = "whole numbers" if self.whole else "numbers"
        if math.isinf(self.high):
            return kind if math.isinf(self.low) else f"{kind} of {self.low:g} or more"
        if math.isinf(self.low):
            return f"{kind} of {self.high:g} or less"
        return f"{kind} from {self.low:g} to {self.high:g}"

    def to_line(self, y: Values) -> Values:
        """`y` on the real line: its logarithm from one end, the logit between two.

        Half a count is added to whole numbers, so that none of them is infinite.
        """
        half = 0.5 if self.whole else 0.0
        if math.isinf(self.low) and math.isinf(self.high):
            return y
        if math.isfinite(self.low) and math.isfinite(self.high):
            share = (y - self.low + half) / (self.high - self.low + 2 * half)
            share = np.clip(share, _NEXT_TO_AN_END, 1 - _NEXT_TO_AN_END)
            return np.asarray(np.log(share) - np.log1p(-share))
        distance = y - self.low if math.isfinite(self.low) else self.high - y
        logs = np.log(np.maximum(distance + half, _NEXT_TO_AN_END))
        return np.asarray(logs if math.isfinite(self.low) else -logs)


REAL_LINE = Support()
