"""Ridge regressions against naive loops and numpy's least squares."""

import numpy as np
import pytest
from numpy.typing import NDArray

import deeplfm as dlfm
from deeplfm.paper.baselines.autoregressive import AutoregressiveRidge
from deeplfm.paper.baselines.lag_ridge import LagRidge
from deeplfm.paper.baselines.ridge import BLOCKS, Regression, positions

Values = NDArray[np.float64]


def series(count: int = 160) -> tuple[Values, Values]:
    """Two channels that follow one another, and a third that is noise; with gaps."""
    random = np.random.default_rng(0)
    source = np.convolve(random.normal(size=count + 20), np.hanning(9), "valid")[: count + 4]
    y = np.stack([source[:count], 2 * source[4 : count + 4] + 1, random.normal(size=count)], 1)
    y += 0.05 * random.normal(size=y.shape)
    y[60:75, 0] = y[110:120, 1] = np.nan
    return np.arange(count) / 50 + 0.5, y


def naive_row(y: Values, t: int, output: int, lags: int) -> Values:
    others = [c for c in range(y.shape[1]) if c != output]
    return np.array([y[t + lag, c] for c in others for lag in range(-lags, lags + 1)])


def least_squares(rows: Values, target: Values, penalty: float) -> Values:
    """Ridge as ordinary least squares with rows √λ I added; the mean is not shrunk."""
    width = rows.shape[1]
    extra = np.concatenate([np.zeros((width, 1)), np.sqrt(penalty) * np.eye(width)], 1)
    design = np.concatenate([np.concatenate([np.ones((len(rows), 1)), rows], 1), extra])
    found = np.linalg.lstsq(design, np.concatenate([target, np.zeros(width)]), rcond=None)
    return np.asarray(found[0])


def held_out_square(rows: Values, target: Values, penalty: float) -> float:
    """The mean square error of blocks of rows, each predicted from the others."""
    blocks = np.arange(len(rows)) * BLOCKS // len(rows)
    errors: list[float] = []
    for k in range(BLOCKS):
        b = least_squares(rows[blocks != k], target[blocks != k], penalty)
        errors.extend(target[blocks == k] - b[0] - rows[blocks == k] @ b[1:])
    return float(np.mean(np.square(errors)))


def test_a_gap_is_filled_as_a_naive_loop_would() -> None:
    t, y = series()
    lags = 3
    model = LagRidge(lags=lags).fit(t, y)
    scaled = (y - np.nanmean(y, 0)) / np.nanstd(y, 0)
    inner = range(lags, len(y) - lags)
    rows = {s: naive_row(scaled, s, 0, lags) for s in inner}
    train = [s for s in inner if not np.isnan([*rows[s], scaled[s, 0]]).any()]
    penalty = float(model.fitted_.state["penalties"][0])
    design, target = np.stack([rows[s] for s in train]), scaled[train, 0]
    b = least_squares(design, target, penalty)
    gap = list(range(60, 75))
    exact = np.array([b[0] + rows[s] @ b[1:] for s in gap])
    p = model.predictive(t[gap])
    units = np.nanmean(y[:, 0]) + np.nanstd(y[:, 0]) * exact
    np.testing.assert_allclose(p.mean[:, 0], units, rtol=1e-6)
    held_out = np.nanstd(y[:, 0]) * np.sqrt(held_out_square(design, target, penalty))
    np.testing.assert_allclose(p.std[:, 0], held_out, rtol=1e-6)


def test_lags_that_were_not_observed_are_left_out() -> None:
    """At the first row half of the window is missing: the regression has the other half."""
    t, y = series()
    model = LagRidge(lags=3).fit(t, y)
    penalty = float(model.fitted_.state["penalties"][0])
    scaled = (y - np.nanmean(y, 0)) / np.nanstd(y, 0)
    rows = {s: naive_row(scaled, s, 0, 3) for s in range(3, len(y) - 3)}
    train = [s for s in rows if not np.isnan([*rows[s], scaled[s, 0]]).any()]
    half = np.array([3, 4, 5, 6, 10, 11, 12, 13])  # lags 0 to 3 of two channels
    design, target = np.stack([rows[s][half] for s in train]), scaled[train, 0]
    b = least_squares(design, target, penalty)
    first = np.concatenate([scaled[:4, 1], scaled[:4, 2]])
    exact = np.nanmean(y[:, 0]) + np.nanstd(y[:, 0]) * (b[0] + first @ b[1:])
    mean, std = model.predict(t[:1], return_std=True)
    assert mean[0, 0] == pytest.approx(exact, rel=1e-6)
    held_out = np.nanstd(y[:, 0]) * np.sqrt(held_out_square(design, target, penalty))
    assert std[0, 0] == pytest.approx(held_out, rel=1e-6)


def test_the_loss_is_the_mean_held_out_square() -> None:
    t, y = series()
    model = LagRidge(lags=2).fit(t, y)
    scaled = (y - np.nanmean(y, 0)) / np.nanstd(y, 0)
    squares = []
    for output, penalty in enumerate(model.fitted_.state["penalties"].tolist()):
        rows = {s: naive_row(scaled, s, output, 2) for s in range(2, len(y) - 2)}
        train = [s for s in rows if not np.isnan([*rows[s], scaled[s, output]]).any()]
        design = np.stack([rows[s] for s in train])
        squares.append(held_out_square(design, scaled[train, output], penalty))
    assert model.history_["loss"] == pytest.approx([np.mean(squares)], rel=1e-6)


def test_the_penalty_has_the_least_held_out_error() -> None:
    random = np.random.default_rng(0)
    columns, noise = random.normal(size=(60, 30)), random.normal(size=60)
    penalty, error = Regression.of(columns, columns[:, 0] + noise).best_penalty()
    every = np.arange(30)
    regression = Regression.of(columns, columns[:, 0] + noise)
    assert 1 < penalty < 1e4  # 30 columns of noise need some shrinking
    assert error < regression.held_out_error(1e-4, every)
    assert error < regression.held_out_error(1e4, every)


def test_an_oscillation_is_carried_on() -> None:
    """A sum of two sinusoids obeys a linear recursion exactly."""
    t = np.arange(230.0)
    truth = np.stack([np.sin(0.5 * t), np.cos(0.5 * t) + np.sin(1.3 * t)], 1)
    y = truth + 0.02 * np.random.default_rng(0).normal(size=truth.shape)
    y[100:110, 1] = np.nan
    model = AutoregressiveRidge(lags=12).fit(t[:200], y[:200])
    mean, std = model.predict(t[200:], return_std=True)
    assert (np.abs(mean - truth[200:]) < 5 * std).all()
    assert np.sqrt(((mean - truth[200:]) ** 2).mean()) < 0.1 < truth.std()
    assert (np.diff(std, axis=0) >= 0).all()  # the farther, the less sure
    assert (std[-1] > std[0]).all()


def test_iteration_is_a_naive_loop() -> None:
    t, y = series()
    lags = 4
    model = AutoregressiveRidge(lags=lags).fit(t, y)
    b = model.fitted_.state["coefficients"].numpy()
    scaled = (y - np.nanmean(y, 0)) / np.nanstd(y, 0)
    past = [*scaled[-lags:]]
    ahead = t[-1] + 0.02 * np.arange(1, 6)
    found = (model.predict(ahead) - np.nanmean(y, 0)) / np.nanstd(y, 0)
    for step in range(5):
        row = [past[-lag][c] for c in range(3) for lag in range(1, lags + 1)]
        past.append(b[0] + np.array(row) @ b[1:])
        np.testing.assert_allclose(found[step], past[-1], rtol=1e-9)
    rows = np.array(
        [[scaled[s - lag, c] for c in range(3) for lag in range(1, 5)] for s in range(4, len(y))]
    )
    seen = ~np.isnan(rows).any(1) & ~np.isnan(scaled[4:, 2])
    errors = [
        np.abs(least_squares(rows[seen], scaled[4:][seen, 2], 10.0**k) - b[:, 2]).max()
        for k in np.arange(-4, 4.5, 0.5)
    ]
    assert min(errors) < 1e-6  # one of the penalties


def test_a_gap_is_predicted_less_surely_the_longer_it_lasts() -> None:
    t, y = series()
    _, std = AutoregressiveRidge(lags=4).fit(t, y).predict(t, return_std=True)
    assert (std[60, 0] <= std[61:75, 0]).all()
    assert std[70, 0] > std[60, 0]
    assert std[76, 0] == std[60, 0]  # observed again: one step ahead
    np.testing.assert_allclose(std[:4], np.nanstd(y, 0) * np.ones((4, 3)))  # no past: the mean


def test_rows_that_nobody_observed_keep_their_place() -> None:
    t, y = series()
    y[85:88] = np.nan
    whole = LagRidge(lags=3).fit(t, y)
    kept = ~np.isnan(y).all(1)
    dropped = LagRidge(lags=3).fit(t[kept], y[kept])
    np.testing.assert_array_equal(whole.predict(t), dropped.predict(t))
    assert positions(t[kept])[-1] == len(t) - 1


def test_times_may_lie_a_twentieth_of_a_step_beside_the_grid() -> None:
    t, y = series()
    beside = np.zeros(len(t))
    beside[5] = 0.02  # a step is 0.02
    for cls in (LagRidge, AutoregressiveRidge):
        model = cls(lags=3).fit(t + 0.04 * beside, y)
        model.predict(t + 0.04 * beside)
        with pytest.raises(dlfm.InputError, match=r"regular grid .* got times up to 0\.06 of"):
            cls(lags=3).fit(t + 0.06 * beside, y)
        with pytest.raises(dlfm.InputError, match=r"grid of the fit; got times up to 0\.06 of"):
            model.predict(t + 0.06 * beside)
        with pytest.raises(dlfm.InputError, match="times must lie on a regular grid"):
            cls(lags=3).fit(np.append(t, t[5]), np.append(y, y[5:6], axis=0))  # one time twice


@pytest.mark.parametrize("cls", [LagRidge, AutoregressiveRidge])
def test_twenty_rows_are_enough_and_nineteen_are_not(
    cls: type[LagRidge] | type[AutoregressiveRidge],
) -> None:
    random = np.random.default_rng(0)
    lost = 2 if cls is LagRidge else 1  # rows without all lags: at both ends, at the beginning
    t, y = np.arange(20.0 + lost), random.normal(size=(20 + lost, 2))
    cls(lags=1).fit(t, y)
    with pytest.raises(dlfm.InputError, match="20 rows of 'y0' with all lags observed; got 19"):
        cls(lags=1).fit(t[1:], y[1:])


def test_errors_say_what_to_do() -> None:
    t, y = series()
    uneven = t + 0.01 * np.sin(np.arange(len(t)))
    for cls in (LagRidge, AutoregressiveRidge):
        with pytest.raises(dlfm.InputError, match="times must lie on a regular grid"):
            cls(lags=3).fit(uneven, y)
        with pytest.raises(dlfm.InputError, match="X must have 1 input; got 2"):
            cls(lags=3).fit(np.stack([t, t], 1), y)
        with pytest.raises(dlfm.InputError, match="20 rows of 'y0' with all lags observed; got 0"):
            cls(lags=100).fit(t, y)
        with pytest.raises(dlfm.InputError, match="X must lie on the grid of the fit"):
            cls(lags=3).fit(t, y).predict(t[:5] + 0.005)
    with pytest.raises(dlfm.InputError, match="needs other channels to regress on"):
        LagRidge(lags=3).fit(t, y[:, 0])
    with pytest.raises(dlfm.InputError, match="inside the fitted series only"):
        LagRidge(lags=3).fit(t, y).predict(t + 1)
    with pytest.raises(dlfm.InputError, match="inside the fitted series only"):
        LagRidge(lags=3).fit(t, y).predict(t[-1:] + 0.02)  # the first time after it
    with pytest.raises(dlfm.InputError, match="what follows; got times before"):
        AutoregressiveRidge(lags=3).fit(t, y).predict(t - 1)
    with pytest.raises(dlfm.InputError, match="got most of them twice"):
        LagRidge(lags=3).fit(np.repeat(t[:80], 2), y)
