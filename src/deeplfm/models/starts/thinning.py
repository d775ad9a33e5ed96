"""Whether rows that a start leaves out hide the rhythm: the aliases of thinned series.

a wave faster than π / step of the rows that a start looks at, in stretches of all rows
"""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from deeplfm.models.starts.base import ROWS, Values
from deeplfm.models.starts.spectrum import periodogram

_STRETCH, _STRETCHES = 1000, 6  # rows, and stretches of them, that are looked at
_HIDDEN, _CHANCE = 0.1, 8.0  # of the variance; of what the best of many waves has of noise


def hidden_period(
    count: int, rows: Callable[[NDArray[np.int64]], tuple[Values, Values]]
) -> float | None:
    """The period of what `ROWS` of `count` rows of a series cannot show; None: they can.

    `rows` gives inputs [n] and targets [n, D] of some rows, by their places in the order of time.
    """
    if count <= ROWS:
        return None
    starts = np.linspace(0, count - min(count, _STRETCH), _STRETCHES).astype(np.int64)
    periods = []
    for start in starts.tolist():
        x, y = rows(start + np.arange(min(count, _STRETCH)))
        span = float(np.ptp(x))
        if span > 0:
            fastest = math.pi * (len(x) - 1) / span * ROWS / count
            found = [_fast_wave(x, column, fastest) for column in y.T]
            periods.append(min((one for one in found if one is not None), default=None))
    hidden = [period for period in periods if period is not None]
    return float(np.median(hidden)) if 2 * len(hidden) > len(periods) else None


def _fast_wave(x: Values, y: Values, fastest: float) -> float | None:
    """The period of the strongest wave above a frequency, where it explains a share of `y` [n]."""
    seen = ~np.isnan(y)
    x, y = x[seen], y[seen]
    count = len(y)
    if count < 20 or not np.ptp(y) > 0 or not np.ptp(x) > 0:
        return None
    y = (y - y.mean()) / np.ptp(y)
    omega, power = periodogram(x, y[:, None])
    above = np.where(omega > fastest, power, 0.0)
    if not above.any():
        return None
    best = float(omega[above.argmax()])
    waves = np.stack([np.cos(best * (x - x[0])), np.sin(best * (x - x[0])), np.ones(count)], axis=1)
    left = y - waves @ np.linalg.lstsq(waves, y, rcond=None)[0]
    share = 1 - float(left @ left) / float(y @ y)
    least = max(_HIDDEN, _CHANCE * math.log(count) / count)
    return 2 * math.pi / best if share > least else None
