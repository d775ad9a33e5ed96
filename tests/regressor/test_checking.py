"""A fit that checks itself: what it holds out, says, warns of and changes, and what it does not."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import deeplfm as dlfm
from deeplfm.data import dataset
from deeplfm.data.stored import Stored, store
from deeplfm.errors import FitWarning
from deeplfm.evaluation.check import MODEL
from deeplfm.models.markov_model import MarkovModel
from deeplfm.regressor.markov_fitting import fit_markov
from deeplfm.regressor.markov_rehearsal import REHEARSAL, Passes, Rehearsal, Rehearsed
from deeplfm.training.evidence import CHECKPOINT, EvidenceTrainer

Values = Any
ROWS = 140


def louder(outputs: int = 1) -> tuple[Values, Values]:
    """A wave that is much noisier in its last rows: intervals of one width cannot hold there."""
    rng = np.random.default_rng(0)
    t = np.arange(float(ROWS))
    noise = np.where(t < ROWS - 12, 0.1, 3.0) * rng.standard_normal(ROWS)
    y = np.sin(2 * np.pi * t / 20) + noise
    return t, y if outputs == 1 else np.stack([y, np.cos(2 * np.pi * t / 20)], 1)


def estimator(steps: int = 8, **settings: Any) -> dlfm.DeepLFMRegressor:
    recipe, training = dlfm.MarkovDLFM(modes=3), dlfm.Training(steps=steps, checkpoint_every=2)
    return dlfm.DeepLFMRegressor(recipe, training, progress=False, **settings)


def fourier(**settings: Any) -> dlfm.DeepLFMRegressor:
    recipe, training = dlfm.FourierDLFM(num_features=6), dlfm.Training(steps=6)
    return dlfm.DeepLFMRegressor(recipe, training, progress=False, **settings)


@pytest.fixture(scope="module")
def fitted() -> dlfm.DeepLFMRegressor:
    return estimator(20).fit(*louder())


def alone(model: dlfm.DeepLFMRegressor) -> dlfm.DeepLFMRegressor:
    """The same model without what its check changes."""
    from dataclasses import replace

    bare = replace(model.fitted_, check=None)
    other = dlfm.DeepLFMRegressor(model.model, model.training, progress=False)
    other.n_features_in_ = 1
    return other.with_fitted(bare, flat=model._flat)


def test_a_series_is_scored_beside_its_rivals(fitted: dlfm.DeepLFMRegressor) -> None:
    frame = fitted.check_.to_frame()
    assert set(frame.kind) == {"inside", "end"}
    assert {MODEL, "linear interpolation", "last value", "autoregression"} <= set(frame.name)
    own = frame[frame.name == MODEL]
    assert own[["nmse", "mnll", "crps", "coverage"]].notna().all(axis=None)
    assert "90 % intervals cover" in fitted.check_.verdict


def test_noise_at_the_end_is_warned_of_in_one_sentence_and_widens_forecasts() -> None:
    with pytest.warns(FitWarning, match=r"^This fit may mislead: .* the last rows\. See check_"):
        model = estimator(20).fit(*louder())
    assert not model.check_.passed
    assert model.check_.spread.beyond > 1.2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        t = np.arange(float(ROWS))
        quiet = np.sin(2 * np.pi * t / 20) + 0.2 * np.random.default_rng(1).standard_normal(ROWS)
        assert estimator(20).fit(t, quiet).check_.passed


def test_the_spread_reaches_all_that_is_predicted(fitted: dlfm.DeepLFMRegressor) -> None:
    plain, asked = alone(fitted), np.array([10.5, 70.0, 138.0, 150.0, 180.0])
    factor = fitted.fitted_.factor_at(asked)
    assert factor is not None
    assert factor[0] != factor[-1]
    mean, std = fitted.predict(asked, return_std=True)
    own_mean, own_std = plain.predict(asked, return_std=True)
    np.testing.assert_allclose(mean, own_mean, rtol=1e-12)
    np.testing.assert_allclose(std, factor * own_std)
    p, own = fitted.predictive(asked, 4), plain.predictive(asked, 4)
    np.testing.assert_allclose(p.std[:, 0], factor * own.std[:, 0])
    for side, own_side in zip(p.interval(0.9), own.interval(0.9), strict=True):
        np.testing.assert_allclose(side - p.mean, factor[:, None] * (own_side - own.mean))
    np.testing.assert_allclose(p.samples - p.mean, factor[:, None] * (own.samples - own.mean))
    np.testing.assert_allclose(fitted.draw(4)(asked), p.samples, rtol=1e-6, atol=1e-9)
    summary = fitted.fitted_.summary(asked, levels=(0.05,))
    np.testing.assert_allclose(summary.quantiles[0.05], p.quantile(0.05))


def test_the_end_moves_with_new_rows(fitted: dlfm.DeepLFMRegressor, tmp_path: Path) -> None:
    fitted.save(tmp_path)
    model = dlfm.load(tmp_path)
    before = model.fitted_.factor_at(np.array([160.0]))
    model.update(np.arange(140.0, 200.0), np.zeros(60))
    after = model.fitted_.factor_at(np.array([160.0]))
    assert before is not None
    assert after is not None
    assert before[0] == fitted.check_.spread.beyond != after[0] == fitted.check_.spread.inside


def test_it_is_saved_with_the_model(fitted: dlfm.DeepLFMRegressor, tmp_path: Path) -> None:
    fitted.save(tmp_path)
    again = dlfm.load(tmp_path)
    assert again.check_ == fitted.check_
    assert again.check is True
    asked = np.linspace(-10, 160, 30)
    for one, other in zip(again.predict(asked, True), fitted.predict(asked, True), strict=True):
        np.testing.assert_array_equal(one, other)


def test_without_a_check_it_is_the_plain_fit() -> None:
    t, y = louder()
    model = estimator(check=False).fit(t, y)
    plain = fit_markov(dataset(t, y), dlfm.MarkovDLFM(modes=3), model.training, progress=False)
    assert model.check_.verdict == "Not checked: the check was switched off."
    np.testing.assert_array_equal(model.predict(t), plain.predictive(t).mean[:, 0])
    np.testing.assert_array_equal(model.history_["loss"], plain.histories[0]["loss"])


def test_a_check_takes_no_more_steps(fitted: dlfm.DeepLFMRegressor) -> None:
    history = fitted.history_
    np.testing.assert_array_equal(history["step"], np.arange(1, 21))
    assert fitted.fitted_.steps == 20
    assert (np.diff(history["seconds"]) > 0).all()
    once = estimator(1).fit(*louder())
    assert once.fitted_.steps == len(once.history_["step"]) == 1


@pytest.mark.parametrize("at", [3, 10])  # of 8 steps of the fit, and 5 of its rehearsal
def test_interrupted_before_or_after_the_blocks_it_goes_on_to_the_same(
    at: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    t, y = louder()
    whole = estimator().fit(t, y)
    one_step = EvidenceTrainer._one_step
    done: list[int] = []

    def interrupted(self: EvidenceTrainer) -> None:
        if len(done) == at:
            raise KeyboardInterrupt
        done.append(1)
        one_step(self)

    with monkeypatch.context() as patch:
        patch.setattr(EvidenceTrainer, "_one_step", interrupted)
        stopped = estimator().fit(t, y, checkpoints=tmp_path)
    assert stopped.check_.verdict == "Not checked: the fit was interrupted."
    assert stopped.fitted_.steps == min(at, 8)
    assert (tmp_path / REHEARSAL / CHECKPOINT).exists() == (at > 8)
    resumed = estimator().fit(t, y, checkpoints=tmp_path)
    assert resumed.check_ == whole.check_
    np.testing.assert_array_equal(resumed.predict(t, True), whole.predict(t, True))
    np.testing.assert_array_equal(resumed.history_["loss"], whole.history_["loss"])


def test_held_out_rows_do_not_reach_the_steps_of_a_rehearsal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is a shorter training of the same start, without the blocks; of the last rows, too."""
    seen, rehearse = list[Rehearsal](), Passes.rehearse

    def kept(
        self: Passes, model: MarkovModel, rehearsal: Rehearsal, directions: torch.Tensor | None
    ) -> Rehearsed | None:
        seen.append(rehearsal)
        return rehearse(self, model, rehearsal, directions)

    monkeypatch.setattr(Passes, "rehearse", kept)
    estimator().fit(*louder())
    (rehearsal,) = seen
    hidden = np.isnan(rehearsal.record.targets[:, 0])
    assert hidden[-1]
    assert 4 < hidden.sum() < ROWS / 2
    assert rehearsal.training.steps == 5


def test_a_check_changes_nothing_of_the_fit() -> None:
    t, y = louder()
    checked, plain = estimator().fit(t, y), estimator(check=False).fit(t, y)
    # The spread of a mixture is widened about its mean, which rounding may move.
    np.testing.assert_allclose(checked.predict(t), plain.predict(t), rtol=0, atol=1e-12)
    np.testing.assert_array_equal(checked.history_["loss"], plain.history_["loss"])


def test_what_is_not_checked_says_so() -> None:
    t, y = louder()
    few = estimator().fit(t[:30], y[:30])
    assert few.check_.verdict.startswith("Not checked: 30 rows are too few")
    panel = estimator().fit(np.tile(t[:70], 2), y, series=np.repeat([0, 1], 70))
    assert "a panel of several" in panel.check_.verdict
    for model in (few, panel):
        assert model.check_.spread.is_plain


def test_known_inputs_stay_known_in_blocks() -> None:
    t, _ = louder()
    pulse = (t % 40 < 20).astype(float)
    y = 5 * pulse + 0.1 * np.random.default_rng(0).standard_normal(ROWS)
    model = estimator(30).fit(t, y, known=pulse)
    frame = model.check_.to_frame()
    assert float(frame[(frame.name == MODEL) & (frame.kind == "end")].nmse.iloc[0]) < 0.4


def test_a_long_record_is_scored_by_the_rows_beside_its_blocks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from deeplfm.regressor import markov_rehearsal

    t, y = louder()
    whole = estimator().fit(t, y).check_.to_frame()
    monkeypatch.setattr(markov_rehearsal, "_WHOLE", 100)
    monkeypatch.setattr(markov_rehearsal, "_CONTEXT", 12)
    part = estimator().fit(t, y).check_.to_frame()
    own = whole.name == MODEL
    np.testing.assert_allclose(part[own].nmse, whole[own].nmse, rtol=0.5)
    assert (part[own].nmse != whole[own].nmse).any()


def test_layers_are_checked_by_a_shorter_fit_and_stay_what_they_are() -> None:
    t, y = louder()
    checked, plain = fourier().fit(t, y), fourier(check=False).fit(t, y)
    np.testing.assert_allclose(checked.predict(t), plain.predict(t), rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(checked.history_["loss"], plain.history_["loss"])
    assert set(checked.check_.to_frame().kind) == {"inside", "end"}
    factor = checked.fitted_.factor_at(t)
    times = np.ones(ROWS) if factor is None else factor
    np.testing.assert_allclose(checked.predict(t, True)[1], times * plain.predict(t, True)[1])
    np.testing.assert_allclose(checked.draw(9)(t), checked.predictive(t, 9).samples)


def test_tables_hold_out_rows_at_random() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 3))
    y = X[:, 0] + 0.1 * rng.standard_normal(80)
    check = fourier().fit(X, y).check_
    assert {row.kind for row in check.rows} == {"rows"}
    assert {row.name for row in check.rows} == {MODEL, "mean", "ridge on the inputs"}


def test_a_table_on_disk_is_not_checked_but_a_series_there_is(tmp_path: Path) -> None:
    t, y = louder()
    data = dataset(t, y)
    for _ in store(iter([data]), tmp_path / "rows.npy"):
        pass
    stored = Stored(tmp_path / "rows.npy", data.input_names, data.output_names)
    layered = fourier().set_params(training__batch_size=20).fit_stored(stored)
    assert "read from disk" in layered.check_.verdict
    assert estimator().fit_stored(stored).check_.is_done
