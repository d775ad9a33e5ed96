"""The clock of a rhythm: found where it changes, absent where it does not, and in predictions."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import deeplfm as dlfm
from deeplfm.data import dataset
from deeplfm.regressor.markov import FittedMarkov
from deeplfm.regressor.markov_fitting import fit_markov
from deeplfm.training.clock import ClockPosterior, fit_clock

ROWS, PERIOD = 400, 10


def rhythm(change: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A pulse whose rate swings by `change` over 200 rows; times, values and the rate itself."""
    t = np.arange(ROWS, dtype=float)
    faster = change * np.sin(2 * np.pi * t / 200)
    phase = 2 * np.pi * np.cumsum(1 + faster) / PERIOD
    noise = np.random.default_rng(seed).standard_normal(ROWS)
    return t, np.exp(2 * np.cos(phase)) / 3 + 0.05 * noise, faster


def fitted(change: float) -> FittedMarkov:
    t, y, _ = rhythm(change)
    model = dlfm.DeepLFMRegressor(dlfm.MarkovDLFM(modes=8), dlfm.Training(steps=80), progress=False)
    found = model.fit(t, y).fitted_
    assert isinstance(found, FittedMarkov)
    return found


@pytest.fixture(scope="module")
def swinging() -> FittedMarkov:
    return fitted(0.03)


def test_a_rate_that_swings_is_followed(swinging: FittedMarkov) -> None:
    clock = fit_clock(swinging.model, swinging.record)
    assert clock is not None
    mean = clock.mean()
    middle = (mean.knots[0][1:] + mean.knots[0][:-1]) / 2
    truth = np.interp(middle, np.arange(ROWS), rhythm(0.03)[2])
    # All of c moves with the mean frequency: what is followed is how it changes.
    assert np.corrcoef(mean.faster[0], truth)[0, 1] > 0.9


def test_a_steady_rate_needs_no_clock() -> None:
    steady = fitted(0.0)
    assert fit_clock(steady.model, steady.record) is None


def test_a_record_without_modes_or_rows_has_none(swinging: FittedMarkov) -> None:
    few = dlfm.DeepLFMRegressor(dlfm.MarkovDLFM(modes=2), dlfm.Training(steps=2), progress=False)
    short = few.fit(np.arange(12.0), np.sin(np.arange(12.0))).fitted_
    assert fit_clock(short.model, short.record) is None
    level = dlfm.DeepLFMRegressor(dlfm.MarkovDLFM(modes=0), dlfm.Training(steps=2), progress=False)
    walk = level.fit(np.arange(90.0), np.sin(np.arange(90.0) / 9)).fitted_
    assert fit_clock(walk.model, walk.record) is None


def test_draws_have_the_moments_of_the_posterior() -> None:
    """Forward, then backward by chance: as an exact sum over all paths of a small grid says."""
    rng = np.random.default_rng(0)
    evidence = -0.5 * ((np.linspace(-0.1, 0.1, 161) - rng.normal(0, 0.02, (5, 1))) / 0.01) ** 2
    clock = ClockPosterior((evidence,), (np.arange(6.0),), 0.01)
    mean = clock.mean().faster[0]
    drawn = np.stack([one.faster[0][5:10] for one in clock.draw(400, 0)])
    # Both beliefs are Gaussian: c has a precision of at least 1/.01² from its own stretch.
    assert np.abs(drawn.mean(0) - mean).max() < 5 * 0.01 / np.sqrt(400)
    precision = np.eye(5) * 1e4 + np.diag([1 / 0.03**2, 0, 0, 0, 0])
    for w in range(4):
        precision[w : w + 2, w : w + 2] += np.array([[1, -1], [-1, 1]]) * 1e4
    covariance = np.linalg.inv(precision)
    centre = evidence.argmax(1)
    exact = covariance @ (1e4 * np.linspace(-0.1, 0.1, 161)[centre])
    np.testing.assert_allclose(mean, exact, atol=0.002)  # the grid has steps of .00125
    spread = drawn.std(0) / np.sqrt(np.diag(covariance))
    assert (np.abs(spread - 1) < 5 / np.sqrt(2 * 400)).all()
    again = clock.draw(3, 0)
    assert (again[2].faster[0] == clock.draw(5, 0)[2].faster[0]).all()


def test_forecasts_follow_the_rate_of_now(swinging: FittedMarkov) -> None:
    """Draws are the functions that the moments are of, also by a clock."""
    assert swinging._members._clock is not None
    p = swinging.predictive(np.arange(390.0, 420.0), num_samples=400)
    samples = p.samples
    sure = np.sqrt(samples.var(0) / 400)
    # 400 functions share 16 draws of physics and clock, as the mean does.
    assert (np.abs(samples.mean(0) - p.mean) < 6 * sure + 1e-6).all()
    f = swinging.draw(2, seed=3)
    both, one = f(np.array([100.5, 410.0])), f(np.array([410.0]))
    np.testing.assert_allclose(both[:, 1:], one, rtol=0, atol=1e-8)


def test_training_goes_on_with_the_same_clock(tmp_path: Path) -> None:
    """A checkpoint after the clock was found holds it."""
    t, y, _ = rhythm(0.03)
    recipe, training = dlfm.MarkovDLFM(modes=4), dlfm.Training(steps=10, checkpoint_every=2)

    class StopError(Exception):
        pass

    def whole(folder: Path, stop: int | None) -> torch.Tensor:
        def report(step: int, _: float) -> None:
            if step == stop:
                raise StopError

        place: dict[str, Any] = {"checkpoints": folder, "report": report}
        return fit_markov(dataset(t, y), recipe, training, seed=0, **place).posterior.mean

    wanted = whole(tmp_path / "a", None)
    with pytest.raises(StopError):
        whole(tmp_path / "b", 9)
    assert torch.equal(whole(tmp_path / "b", None), wanted)


def test_series_of_a_panel_have_clocks_of_their_own() -> None:
    """One swings, one is steady, one is too short to have any."""
    t, fast, rate = rhythm(0.03)
    steady = rhythm(0.0, seed=1)[1]
    short = slice(0, 20)
    times = np.concatenate([t, t, t[short]])
    series = np.repeat(["swings", "steady", "short"], [ROWS, ROWS, 20])
    model = dlfm.DeepLFMRegressor(dlfm.MarkovDLFM(modes=8), dlfm.Training(steps=60), progress=False)
    model.fit(times, np.concatenate([fast, steady, steady[short]]), series=series)
    clock = fit_clock(model.fitted_.model, model.fitted_.record)
    assert clock is not None
    labels = model.fitted_.data.panel.labels
    own = dict(zip(labels, zip(clock.mean().knots, clock.mean().faster, strict=True), strict=True))
    assert len(own["short"][1]) == 0
    knots, faster = own["swings"]
    truth = np.interp((knots[1:] + knots[:-1]) / 2, t, rate)
    assert np.corrcoef(faster, truth)[0, 1] > 0.9
    assert own["steady"][1].std() < faster.std() / 3
