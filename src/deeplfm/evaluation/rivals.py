"""Plain rivals of a model: what anybody could do without one. They cost nothing.

    linear interpolation (after the last row: the last value) · mean · the season before
    ridge on the other outputs · autoregression · ridge on the inputs of a table

Each gives values [N, D] at all rows from those that are left, NaN where it has nothing to say.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]
Rival = Callable[[Values, Values], Values | None]

_NEAR = 0.05  # share of a step that times may lie beside a grid: they are often rounded
_LIKE = 0.3  # autocorrelation from which a period counts as one
_LAGS, _BESIDE = 20, 2  # of an autoregression; rows on either side in a ridge on other outputs
_RIDGE = 1.0  # penalty of standardised columns, in rows
_SEASONS = 3  # that a record must hold of its period, at least


def of_series(times: Values, values: Values) -> dict[str, Values]:
    """Predict all entries of a series by every rival that can.

    Args:
        times: [N], in any order.
        values: targets, NaN where they are hidden or were not observed.

    Shapes:
        values: [N, D]; what comes back by name is [N, D], NaN where a rival says nothing.

    Example:
        >>> found = of_series(np.arange(4.0), np.array([[0.0], [np.nan], [2.0], [np.nan]]))
        >>> found["linear interpolation"].ravel().tolist()
        [0.0, 1.0, 2.0, 2.0]
    """
    order = np.argsort(times, kind="stable")
    sorted_times, sorted_values = times[order], values[order]
    candidates: dict[str, Rival] = {
        "linear interpolation": interpolation,
        "mean": mean,
        "season before": season_before,
        "ridge on the other outputs": ridge_on_others,
        "autoregression": autoregression,
    }
    found = {}
    for name, rival in candidates.items():
        predicted = rival(sorted_times, sorted_values)
        if predicted is not None:
            back = np.empty_like(predicted)
            back[order] = predicted
            found[name] = back
    return found


def of_table(inputs: Values, values: Values) -> dict[str, Values]:
    """Predict targets [N, D] of a table, NaN where hidden: their mean, and from inputs [N, P]."""
    found = {"mean": np.broadcast_to(np.nanmean(values, axis=0), values.shape).copy()}
    ridge = np.empty_like(values)
    for d, column in enumerate(values.T):
        seen = ~np.isnan(column)
        ridge[:, d] = _ridge(inputs[seen], column[seen])(inputs)
    return found | {"ridge on the inputs": ridge}


def interpolation(times: Values, values: Values) -> Values:
    """Lines between neighbours in time [N]; beyond them the nearest value. All [N, D]."""
    found = np.empty_like(values)
    for d, column in enumerate(values.T):
        seen = ~np.isnan(column)
        found[:, d] = np.interp(times, times[seen], column[seen])
    return found


def mean(times: Values, values: Values) -> Values:
    """The mean of every output, at all times [N]."""
    return np.broadcast_to(np.nanmean(values, axis=0), values.shape).copy()


def season_before(times: Values, values: Values) -> Values | None:
    """The mean of what was a whole number of periods away, both before and after.

    The nearest season on either side that was observed counts; the period of each output is the
    first high peak of its autocorrelation. Without one the output has no prediction.
    """
    grid = on_grid(times)
    if grid is None:
        return None
    found = np.full_like(values, np.nan)
    for d, column in enumerate(values.T):
        line = np.full(int(grid[-1]) + 1, np.nan)
        line[grid] = column
        period = period_of(line)
        if period:
            found[:, d] = _seasonal(line, period)[grid]
    return None if np.isnan(found).all() else found


def ridge_on_others(times: Values, values: Values) -> Values | None:
    """Every output from the others at the same row, and at rows beside it on either side."""
    count, outputs = values.shape
    if outputs == 1:
        return None
    filled = interpolation(times, values)
    reach = np.arange(-_BESIDE, _BESIDE + 1)
    places = np.clip(np.arange(count)[:, None] + reach, 0, count - 1)
    found = np.full_like(values, np.nan)
    for d, column in enumerate(values.T):
        others = np.delete(np.arange(outputs), d)
        columns = filled[places][:, :, others].reshape(count, -1)
        rows = ~np.isnan(column) & ~np.isnan(values[:, others]).all(1)
        asked = ~np.isnan(values[:, others]).all(1)
        if rows.sum() > 2 * columns.shape[1]:
            found[asked, d] = _ridge(columns[rows], column[rows])(columns[asked])
    return None if np.isnan(found).all() else found


def autoregression(times: Values, values: Values) -> Values | None:
    """Every output from its own past, step by step; in a gap also from its future, blended."""
    grid = on_grid(times)
    if grid is None:
        return None
    found = np.full_like(values, np.nan)
    for d, column in enumerate(values.T):
        line = np.full(int(grid[-1]) + 1, np.nan)
        line[grid] = column
        ahead, back = _rolled(line), _rolled(line[::-1])
        if ahead is not None and back is not None:
            found[:, d] = _blended(line, ahead, back[::-1])[grid]
    return None if np.isnan(found).all() else found


def on_grid(times: Values) -> NDArray[np.int64] | None:
    """The place of sorted times on a regular grid; None where they lie on none."""
    steps = np.diff(times)
    if len(steps) == 0 or not (steps > 0).all():
        return None
    usual = float(np.median(steps))
    length = float(times[-1] - times[0])
    places = (times - times[0]) / (length / max(1, round(length / usual)))
    found = np.round(places).astype(np.int64)
    if np.abs(places - found).max() > _NEAR or found[-1] > 20 * len(times):
        return None
    return found if (np.diff(found) > 0).all() else None


def period_of(line: Values) -> int:
    """The period of values on a grid, in steps, from the peak of their autocorrelation; 0: none."""
    seen = ~np.isnan(line)
    if seen.sum() < 4:
        return 0
    x = np.arange(len(line))
    weights = np.polyfit(x[seen], line[seen], 1)
    rest = np.where(seen, line - np.polyval(weights, x), 0.0)
    size = 2 ** int(np.ceil(np.log2(2 * len(line))))
    products, pairs = (
        np.fft.irfft(np.abs(np.fft.rfft(part, size)) ** 2)[: len(line) // _SEASONS + 1]
        for part in (rest, seen.astype(float))
    )
    if len(products) < 4 or products[0] <= 0:
        return 0
    correlation = products / np.maximum(pairs, 1) / (products[0] / pairs[0])
    below = np.flatnonzero(correlation < 0)
    if not len(below) or below[0] + 1 >= len(correlation) - 1:
        return 0
    peak = int(below[0] + np.argmax(correlation[below[0] :]))
    return peak if correlation[peak] > _LIKE and peak < len(correlation) - 1 else 0


def _seasonal(line: Values, period: int) -> Values:
    rows = np.arange(len(line))
    sides = []
    for sign in (-1, 1):
        side = np.full(len(line), np.nan)
        for season in range(1, len(line) // period + 1):
            place = rows + sign * season * period
            there = np.isnan(side) & (place >= 0) & (place < len(line))
            side[there] = line[place[there]]
        sides.append(side)
    both = np.stack(sides)
    known = (~np.isnan(both)).sum(0)
    return np.where(known > 0, np.nansum(both, 0) / np.maximum(known, 1), np.nan)


def _rolled(line: Values) -> Values | None:
    """Predictions of what is missing, each from the 20 values before, predicted ones among them."""
    seen = ~np.isnan(line)
    lags = min(_LAGS, int(seen.sum()) // 10)
    if lags < 1:
        return None
    windows = np.lib.stride_tricks.sliding_window_view(line, lags + 1)
    whole = windows[~np.isnan(windows).any(1)]
    if len(whole) < 2 * lags + 2:
        return None
    predict = _ridge_weights(whole[:, :-1], whole[:, -1])
    filled = line.copy()
    first = np.flatnonzero(seen)[0]
    filled[:first] = line[first]
    for n in np.flatnonzero(~seen & (np.arange(len(line)) > first)):
        past = filled[max(0, n - lags) : n]
        past = np.concatenate([np.full(lags - len(past), past[0]), past])
        filled[n] = predict[0] + past @ predict[1:]
    size = 10 * float(np.nanmax(np.abs(line)) + 1e-300)
    return np.clip(filled, -size, size)  # an unstable one grows without end


def _blended(line: Values, ahead: Values, back: Values) -> Values:
    """In a gap of so many rows, more of whichever end is nearer; beyond the data one of them."""
    seen = np.flatnonzero(~np.isnan(line))
    rows = np.arange(len(line))
    left = seen[np.clip(np.searchsorted(seen, rows, "right") - 1, 0, len(seen) - 1)]
    right = seen[np.clip(np.searchsorted(seen, rows, "left"), 0, len(seen) - 1)]
    share = np.where(right > left, (rows - left) / np.maximum(right - left, 1), 0.5)
    share = np.where(rows > seen[-1], 0.0, np.where(rows < seen[0], 1.0, share))
    return np.asarray((1 - share) * ahead + share * back)


def _ridge(columns: Values, target: Values) -> Callable[[Values], Values]:
    weights = _ridge_weights(columns, target)
    return lambda new: np.asarray(weights[0] + new @ weights[1:])


def _ridge_weights(columns: Values, target: Values) -> Values:
    """A constant, then one weight per column; columns count in units of their spread."""
    centre, size = columns.mean(0), columns.std(0)
    size = np.where(size > 0, size, 1.0)
    x = (columns - centre) / size
    gram = x.T @ x + _RIDGE * np.eye(x.shape[1])
    weights = np.linalg.solve(gram, x.T @ (target - target.mean())) / size
    return np.concatenate([[target.mean() - centre @ weights], weights])
