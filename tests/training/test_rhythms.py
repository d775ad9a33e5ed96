"""Oscillators or smooth processes: which of them a series gets, and what comes of it."""

from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

import deeplfm as dlfm
from deeplfm.regressor.markov import FittedMarkov
from deeplfm.statespace import Record
from deeplfm.training.laplace import fit_posterior, set_flat
from deeplfm.training.rhythms import FEW, may_be_simpler
from markov_records import small_record

Values = NDArray[np.float64]


def smooth_draw(seed: int, points: int = 150) -> tuple[Values, Values]:
    """A draw of a squared exponential process, mixed into two outputs, and noise."""
    random = np.random.default_rng(seed)
    t = np.arange(points, dtype=np.float64)
    gram = np.exp(-((t[:, None] - t) ** 2) / (2 * 8.0**2)) + 1e-9 * np.eye(points)
    f = np.linalg.cholesky(gram) @ random.standard_normal((points, 2))
    y = f @ np.array([[1.0, 0.6], [0.0, 0.8]]) + 0.15 * random.standard_normal((points, 2))
    return t, y


def fitted(t: Values, y: Values, **recipe: object) -> dlfm.DeepLFMRegressor:
    model = dlfm.MarkovDLFM(**recipe)  # type: ignore[arg-type]
    return dlfm.DeepLFMRegressor(model, dlfm.Training(steps=60), check=False, progress=False).fit(
        t, y
    )


def own(model: dlfm.DeepLFMRegressor) -> FittedMarkov:
    assert isinstance(model.fitted_, FittedMarkov)
    return model.fitted_


@pytest.fixture(scope="module")
def smooth() -> tuple[Values, Values, dlfm.DeepLFMRegressor]:
    t, y = smooth_draw(3)
    seen = y.copy()
    seen[60:75] = np.nan
    return t, y, fitted(t, seen)


def test_the_evidence_of_a_posterior_is_the_integral_over_its_parameters() -> None:
    random, count = np.random.default_rng(0), 100
    y = random.standard_normal((count, 1))
    record = Record(np.linspace(0, 1, count), np.zeros(count, dtype=np.int64), y, level=False)
    model = dlfm.MarkovDLFM(modes=0, level=False).skeleton(record, 0, 0)
    (raw,) = model.raw()
    cut = record.whole()

    def log_density(value: float) -> float:
        set_flat(model, torch.tensor([value], dtype=torch.float64))
        with torch.no_grad():
            return float(model.evidence(record, cut) + model.log_prior())

    best = float(minimize_scalar(lambda v: -log_density(v), bounds=(-6, 6), method="bounded").x)
    grid = np.linspace(best - 1, best + 1, 81)  # ten standard deviations and more
    values = np.array([log_density(v) for v in grid])
    mass = np.trapezoid(np.exp(values - values.max()), grid)
    exact = values.max() + np.log(mass) - np.log(raw.spread * np.sqrt(2 * np.pi))
    set_flat(model, torch.tensor([best], dtype=torch.float64))
    found = fit_posterior(model, record, seed=0).log_evidence
    # Of n normal values the Laplace approximation of their log variance errs by 1/(3n).
    assert found == pytest.approx(exact, abs=2 / (3 * count))


def test_a_series_without_a_rhythm_gets_smooth_processes(
    smooth: tuple[Values, Values, dlfm.DeepLFMRegressor],
) -> None:
    t, y, model = smooth
    found = own(model)
    assert found.model.smooth is not None
    assert found.model.bank is None
    assert found.depth is not None
    assert "nothing oscillates" in found.depth.sentence
    assert (np.diff(model.history_["loss"]) <= 0).all()
    p = model.predictive(t[60:75])
    low, high = p.interval(0.9)
    # A long fit by oscillators covers 60 to 70 % of such gaps; at 90 % fewer than 20 of 30 values
    # that hang together are rare.
    assert ((y[60:75] > low) & (y[60:75] < high)).sum() >= 20


def test_an_oscillation_keeps_its_oscillators() -> None:
    t = np.linspace(0, 20, 200)
    y = np.sin(3 * t) + 0.1 * np.random.default_rng(0).standard_normal(200)
    found = own(fitted(t, y))
    assert found.model.bank is not None
    assert found.model.smooth is None


def test_one_rhythm_gets_few_oscillators() -> None:
    random = np.random.default_rng(1)
    t = np.arange(160.0)
    wave = np.zeros(160, dtype=complex)  # an oscillator of period 11 that forgets in 25 rows
    for k in range(1, 160):
        kick = 0.28 * (random.standard_normal() + 1j * random.standard_normal())
        wave[k] = np.exp(-1 / 25 + 2j * np.pi / 11) * wave[k - 1] + kick
    model = fitted(t, wave.real + 0.05 * random.standard_normal(160))
    bank = own(model).model.bank
    assert bank is not None
    assert len(bank.log_decay) == FEW
    (period,) = (2 * np.pi / abs(own(model).physics(0)[0].frequency[k])
                 for k in own(model).physics(0)[0].active[:1])  # fmt: skip
    assert period == pytest.approx(11, rel=0.15)


def test_forces_are_the_smooth_parts_and_add_up(
    smooth: tuple[Values, Values, dlfm.DeepLFMRegressor],
) -> None:
    t, _, model = smooth
    forces = model.latent_forces(t)
    assert forces.names == ("smooth part of y0", "smooth part of y1")
    # With a level and a mean beside them they are what moves the outputs.
    level = model.predict(t) - forces.mean
    assert (level.std(0) < 0.5 * forces.mean.std(0)).all()


def test_a_saved_one_predicts_the_same(
    smooth: tuple[Values, Values, dlfm.DeepLFMRegressor], tmp_path: Path
) -> None:
    t, y, model = smooth
    model.save(tmp_path / "run")
    again = dlfm.load(tmp_path / "run")
    assert np.array_equal(again.predict(t), model.predict(t))
    later = dlfm.load(tmp_path / "run").update(t[-1] + np.arange(1.0, 4), y[:3])
    assert np.isfinite(later.predict(t)).all()


def test_what_somebody_said_is_not_asked() -> None:
    record = small_record()
    assert may_be_simpler(dlfm.MarkovDLFM(), record)
    for said in (
        dlfm.MarkovDLFM(modes=4),
        dlfm.MarkovDLFM(periods=(1.0,)),
        dlfm.MarkovDLFM(greens_function=dlfm.FirstOrder(1.0)),
        dlfm.MarkovDLFM(likelihood=dlfm.StudentT()),
    ):
        assert not may_be_simpler(said, record)


def test_outputs_without_a_common_row_can_start() -> None:
    t, y = smooth_draw(4, 120)
    y[:60, 0], y[60:, 1] = np.nan, np.nan
    model = fitted(t, y)
    assert np.isfinite(model.predict(t)).all()


def test_its_check_is_of_smooth_processes_too() -> None:
    t, y = smooth_draw(5)
    model = dlfm.DeepLFMRegressor(training=dlfm.Training(steps=40), progress=False).fit(t, y)
    assert own(model).model.smooth is not None
    assert model.check_.is_done
    assert all(row.nmse < 5 for row in model.check_.rows if row.name == "this model")
