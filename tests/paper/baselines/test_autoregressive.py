"""Autoregressive ridge against naive loops: horizons, spreads of rollouts, bridges, the loss."""

import numpy as np
import pytest
from numpy.typing import NDArray

from deeplfm.paper.baselines.autoregressive import AutoregressiveRidge
from deeplfm.paper.baselines.ridge import BLOCKS, PENALTIES

Values = NDArray[np.float64]
LAGS = 3


def series() -> tuple[Values, Values]:
    """A noisy oscillation in two channels; gaps in each, and one at the end of the second."""
    t = np.arange(130.0)
    y = np.stack([np.sin(0.4 * t), 5 + 3 * np.cos(0.4 * t)], 1)
    y += 0.3 * np.random.default_rng(0).normal(size=y.shape) * [1.0, 3.0]
    y[30:37, 0] = y[44:48, 1] = np.nan
    y[-8:, 1] = np.nan
    return t, y


def scaled(y: Values) -> Values:
    return np.asarray((y - np.nanmean(y, 0)) / np.nanstd(y, 0))


def design(y: Values, output: int) -> tuple[list[int], Values, Values]:
    """Rows whose lags and target were observed: their places, their lags, their targets."""
    places, rows = [], []
    for t in range(LAGS, len(y)):
        row = [y[t - lag, c] for c in range(y.shape[1]) for lag in range(1, LAGS + 1)]
        if not np.isnan([*row, y[t, output]]).any():
            places.append(t)
            rows.append(row)
    return places, np.array(rows), y[places, output]


def ridge(rows: Values, target: Values, penalty: float) -> Values:
    """The textbook's normal equations, the mean taken off first so that it is not shrunk."""
    middle, level = rows.mean(0), target.mean()
    gram = (rows - middle).T @ (rows - middle) + penalty * np.eye(rows.shape[1])
    slope = np.linalg.solve(gram, (rows - middle).T @ (target - level))
    return np.array([level - middle @ slope, *slope])


def without_block(rows: Values, target: Values, penalty: float, k: int) -> Values:
    kept = [n for n in range(len(rows)) if n * BLOCKS // len(rows) != k]
    return ridge(rows[kept], target[kept], penalty)


def held_out_square(rows: Values, target: Values, penalty: float) -> float:
    squares = []
    for n in range(len(rows)):
        b = without_block(rows, target, penalty, n * BLOCKS // len(rows))
        squares.append((target[n] - b[0] - rows[n] @ b[1:]) ** 2)
    return float(np.mean(squares))


def next_value(window: list[Values], b: Values) -> Values:
    """One step of the recursion with coefficients [p + 1, D], from the rows before."""
    row = [window[-lag][c] for c in range(b.shape[1]) for lag in range(1, LAGS + 1)]
    return np.asarray(b[0] + np.array(row) @ b[1:])


def naive_spread(y: Values, penalties: list[float]) -> Values:
    """Rollouts from every row of every block, with the regressions that did not see the block."""
    places = [design(y, d)[0] for d in range(2)]
    errors: dict[tuple[int, int], list[float]] = {}
    for k in range(BLOCKS):
        b = np.stack([without_block(*design(y, d)[1:], penalties[d], k) for d in range(2)], 1)
        inside = [t for p in places for n, t in enumerate(p) if n * BLOCKS // len(p) == k]
        for start in range(min(inside), max(inside) + 1):
            window = [*y[start - LAGS : start]]
            if np.isnan(window).any():
                continue
            for t in range(start, max(inside) + 1):
                window.append(next_value(window, b))
                for d in range(2):
                    if not np.isnan(y[t, d]):
                        errors.setdefault((t - start, d), []).append(window[-1][d] - y[t, d])
    longest = max(h for h in range(200) if (h, 0) in errors and (h, 1) in errors)
    assert (longest + 1, 0) in errors  # one channel alone reaches farther: that does not count
    root = [
        [np.sqrt(np.mean(np.square(errors[h, d]))) for d in range(2)] for h in range(longest + 1)
    ]
    return np.array([np.max(root[: h + 1], axis=0) for h in range(longest + 1)])


@pytest.fixture(scope="module")
def model() -> AutoregressiveRidge:
    t, y = series()
    fitted = AutoregressiveRidge(lags=LAGS)
    fitted.fit(t, y)
    return fitted


@pytest.fixture(scope="module")
def penalties() -> list[float]:
    z = scaled(series()[1])
    return [
        min(PENALTIES, key=lambda penalty: held_out_square(*design(z, d)[1:], penalty))
        for d in range(2)
    ]


def test_the_loss_is_the_mean_held_out_square(
    model: AutoregressiveRidge, penalties: list[float]
) -> None:
    z = scaled(series()[1])
    squares = [held_out_square(*design(z, d)[1:], penalties[d]) for d in range(2)]
    assert model.history_["loss"] == pytest.approx([np.mean(squares)], rel=1e-6)


def test_the_spread_at_a_horizon_is_that_of_naive_rollouts(
    model: AutoregressiveRidge, penalties: list[float]
) -> None:
    _, y = series()
    spread = naive_spread(scaled(y), penalties)
    assert (np.diff(spread, axis=0) > 0).any(0).all()  # so that a horizon off by one is seen
    np.testing.assert_allclose(model.fitted_.state["std"].numpy(), spread, rtol=1e-6)


def test_rows_are_as_far_ahead_as_their_last_observation_is_behind(
    model: AutoregressiveRidge, penalties: list[float]
) -> None:
    t, y = series()
    spread = naive_spread(scaled(y), penalties)
    ahead = np.append(t, t[-1] + np.arange(1, 41))
    _, std = model.predict(ahead, return_std=True)
    for k in range(LAGS, len(ahead)):
        for d in range(2):
            behind = max(s for s in range(min(k, len(y))) if not np.isnan(y[s, d]))
            horizon = min(k - behind, len(spread))
            expected = np.nanstd(y[:, d]) * spread[horizon - 1, d]
            assert std[k, d] == pytest.approx(expected, rel=1e-6), (k, d)


def test_gaps_are_walked_through_by_predictions(model: AutoregressiveRidge) -> None:
    t, y = series()
    z = scaled(y)
    b = model.fitted_.state["coefficients"].numpy()
    window = [*z[:LAGS]]
    means = []
    for k in range(LAGS, len(t)):
        mean = next_value(window, b)
        means.append(mean)
        window.append(np.where(np.isnan(z[k]), mean, z[k]))
    expected = np.nanmean(y, 0) + np.nanstd(y, 0) * np.array(means)
    np.testing.assert_allclose(model.predict(t[LAGS:]), expected, rtol=1e-9)


def test_gaps_in_the_first_rows_are_bridged_by_straight_lines() -> None:
    t, y = series()
    y[0, 0] = y[1, 1] = np.nan  # nothing before the one, a row on each side of the other
    model = AutoregressiveRidge(lags=LAGS)
    model.fit(t, y)
    z = scaled(y)
    z[0, 0], z[1, 1] = z[1, 0], (z[0, 1] + z[2, 1]) / 2
    mean = next_value([*z[:LAGS]], model.fitted_.state["coefficients"].numpy())
    expected = np.nanmean(y, 0) + np.nanstd(y, 0) * mean
    np.testing.assert_allclose(model.predict(t[LAGS : LAGS + 1])[0], expected, rtol=1e-9)
