"""Fitted models with a second layer: draws, moments, files, new rows, checks, resuming."""

from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

import deeplfm as dlfm
from deeplfm.regressor.markov import FittedMarkov

Values = NDArray[np.float64]


def beats(seed: int = 0, count: int = 300) -> tuple[Values, Values]:
    rng = np.random.default_rng(seed)
    phase = np.cumsum(2 * np.pi / 20 * (1 + 0.06 * np.repeat(rng.standard_normal(count // 20), 20)))
    peak = np.exp(3 * (np.cos(phase) - 1))
    values = np.stack([peak, np.roll(peak, 3)], 1) + 0.02 * rng.standard_normal((count, 2))
    return np.linspace(0, 1, count), values


HIDDEN = slice(140, 160)


def fit(check: bool = False, checkpoints: Path | None = None) -> dlfm.DeepLFMRegressor:
    t, y = beats()
    y = y.copy()
    y[HIDDEN] = np.nan
    recipe = dlfm.MarkovDLFM(num_layers=2, modes=8)
    training = dlfm.Training(steps=80, checkpoint_every=4)
    model = dlfm.DeepLFMRegressor(recipe, training, progress=False, check=check)
    return model.fit(t, y, checkpoints=checkpoints)


@pytest.fixture(scope="module")
def model() -> dlfm.DeepLFMRegressor:
    return fit()


def own(model: dlfm.DeepLFMRegressor) -> FittedMarkov:
    assert isinstance(model.fitted_, FittedMarkov)
    return model.fitted_


def test_depth_is_kept_and_said(model: dlfm.DeepLFMRegressor) -> None:
    found = own(model).depth
    assert found is not None
    assert found.kept
    assert own(model).second is not None
    assert own(model).num_parameters > len(own(model).posterior.mean)


def test_draws_are_functions_of_time(model: dlfm.DeepLFMRegressor) -> None:
    t, _ = beats()
    asked = np.concatenate([t[HIDDEN], [1.01, 0.0371]])
    f = model.draw(6, seed=3)
    whole = f(asked)
    np.testing.assert_allclose(f(asked[::-1])[:, ::-1], whole, rtol=0, atol=1e-9)
    np.testing.assert_allclose(f(asked[4:5]), whole[:, 4:5], rtol=0, atol=1e-9)
    np.testing.assert_allclose(model.draw(6, seed=3)(asked), whole, rtol=0, atol=1e-12)


def test_draws_have_the_moments_of_the_prediction(model: dlfm.DeepLFMRegressor) -> None:
    """Both average over the same sixteen models, so only draws within each are random."""
    t, _ = beats()
    asked = t[130:170:5]
    predicted = model.predictive(asked, num_samples=400)
    samples = predicted.samples
    error = np.abs(samples.mean(0) - predicted.mean) / (predicted.std / np.sqrt(len(samples)))
    assert error.max() < 5
    assert (samples.std(0) < 1.1 * predicted.std).all()


def test_observations_are_drawn_together_about_the_same_mean(model: dlfm.DeepLFMRegressor) -> None:
    t, _ = beats()
    asked = t[130:170:5]
    drawn = own(model).together(asked, 0)
    predicted = model.predictive(asked)
    # 48 draws of 8 models: their means differ from those of 16 models by a share of the spread.
    assert (np.abs(drawn.mean(0) - predicted.mean) < 1.2 * predicted.std).all()


def test_beats_are_followed_where_all_outputs_are_missing(model: dlfm.DeepLFMRegressor) -> None:
    t, y = beats()
    shallow = dlfm.DeepLFMRegressor(
        dlfm.MarkovDLFM(num_layers=1, modes=8), dlfm.Training(steps=80), progress=False, check=False
    )
    left = y.copy()
    left[HIDDEN] = np.nan
    shallow.fit(t, left)
    errors = [((m.predict(t[HIDDEN]) - y[HIDDEN]) ** 2).mean() for m in (model, shallow)]
    assert errors[0] < 0.9 * errors[1]


def test_files_give_the_same_predictions(model: dlfm.DeepLFMRegressor, tmp_path: Path) -> None:
    t, _ = beats()
    model.save(tmp_path / "run")
    again = dlfm.load(tmp_path / "run")
    assert own(again).depth == own(model).depth
    np.testing.assert_array_equal(again.predict(t), model.predict(t))


def test_new_rows_and_other_series_need_no_fit(model: dlfm.DeepLFMRegressor) -> None:
    t, y = beats()
    other = model.condition(t, y)
    errors = [np.abs(m.predict(t[HIDDEN]) - y[HIDDEN]).mean() for m in (other, model)]
    assert errors[0] < errors[1]
    assert own(other).second is own(model).second
    ids = np.repeat(["a", "b"], len(t) // 2)
    several = model.condition(t, y, series=ids)
    np.testing.assert_allclose(several.predict(t, series=ids), y, atol=0.3)


def test_physics_and_forces_are_those_of_the_first_layer(model: dlfm.DeepLFMRegressor) -> None:
    t, _ = beats()
    forces = model.latent_forces(t[:5])
    assert np.isfinite(forces.mean).all()
    assert np.isfinite(forces.samples).all()
    assert own(model).physics(2)[0].numbers()


def test_a_check_judges_both_layers(model: dlfm.DeepLFMRegressor) -> None:
    checked = fit(check=True)
    assert own(checked).second is not None
    assert checked.check_.is_done
    for name, value in own(model).top.state_dict().items():
        assert torch.equal(value, own(checked).top.state_dict()[name])


def test_an_interrupted_second_layer_goes_on_where_it_was(
    model: dlfm.DeepLFMRegressor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from deeplfm.training.evidence import EvidenceTrainer

    plain = EvidenceTrainer._one_step
    steps: list[int] = []
    broken = [True]

    def counted(self: EvidenceTrainer) -> None:
        if broken[0] and self.model.phase is not None and self.step == 5:
            raise SystemExit
        steps.append(self.step)
        plain(self)

    monkeypatch.setattr(EvidenceTrainer, "_one_step", counted)
    with pytest.raises(SystemExit):
        fit(checkpoints=tmp_path)
    steps.clear()
    broken[0] = False
    again = fit(checkpoints=tmp_path)
    assert len(steps) == 32 - 4 + 32  # the rest of the second layer, and what it is compared with
    for name, value in own(model).top.state_dict().items():
        assert torch.equal(value, own(again).top.state_dict()[name])


def test_layers_are_one_or_two() -> None:
    with pytest.raises(dlfm.InputError, match="must be 1 or 2"):
        dlfm.MarkovDLFM(num_layers=3)
