"""Fit, predict, save, load, resume: one seed is one result, in the user's units."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import stats

import deeplfm as dlfm
from deeplfm.data import Dataset, cardiac, dataset
from deeplfm.evaluation import StudentTComponents
from deeplfm.layers import FourierLayer
from deeplfm.layers.frequencies import Treatment
from deeplfm.likelihoods import AdditiveNoise
from deeplfm.models import Recipe
from deeplfm.regressor.base import Fitted
from deeplfm.regressor.fitting import fit
from deeplfm.regressor.saving import load, save
from deeplfm.training.schedule import Combination

RECIPE = dlfm.FourierDLFM(num_features=12, hidden_dim=2)
INDUCING = dlfm.InducingDLFM(num_inducing=12, num_basis=8, hidden_dim=2)
both = pytest.mark.parametrize("recipe", [RECIPE, INDUCING], ids=["fourier", "inducing"])
TRAINING = dlfm.Training(steps=12, num_samples=2, checkpoint_every=5)


def gappy() -> Dataset:
    series = cardiac(120)
    return dataset(1000 + 60 * series.times, 5 + 20 * series.training())


def prediction(model: Fitted) -> np.ndarray:
    return model.predictive(np.linspace(1000, 1100, 7), num_samples=6).samples


def test_a_short_fit_explains_the_data_in_its_own_units() -> None:
    series = cardiac(400)
    x, y = 1000 + 60 * series.times, 5 + 20 * series.training()
    model = fit(dataset(x, y), dlfm.FourierDLFM(num_features=60), dlfm.Training(steps=60))
    p = model.predictive(x)
    hidden = series.tests["imputation"]
    for output in (0, 2):
        error = (5 + 20 * series.values - p.mean)[hidden[:, output], output]
        assert np.mean(error**2) < 0.3 * 20**2
    assert p.names == ("y0", "y1", "y2")
    assert set(model.histories[0]) == {
        "step", "loss", "expected_log_likelihood", "kl", "seconds", "backend"
    }  # fmt: skip


@both
@pytest.mark.parametrize("restarts", [1, 3])
@pytest.mark.parametrize("combine", ["best", "mixture"])
def test_saved_and_loaded_it_predicts_the_same(
    tmp_path: Path, restarts: int, combine: Combination, recipe: Recipe
) -> None:
    training = replace(TRAINING, restarts=restarts, combine=combine)
    model = fit(gappy(), recipe, training, seed=4)
    assert len(model.members) == (2 if combine == "mixture" and restarts == 3 else 1)
    save(model, tmp_path / "run")
    again = load(tmp_path / "run")
    assert np.array_equal(prediction(model), prediction(again))
    x = np.linspace(1000, 1100, 7)
    assert np.array_equal(model.draw(5, seed=1)(x), again.draw(5, seed=1)(x))
    assert again.training == training
    assert np.array_equal(model.histories[0]["loss"], again.histories[0]["loss"])
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == [
        "data.safetensors", "manifest.json", "model.json", "model.safetensors"
    ]  # fmt: skip


@pytest.mark.parametrize("likelihood", [dlfm.Gaussian(), dlfm.StudentT(degrees=5.0)], ids=str)
def test_members_of_a_mixture_keep_their_own_noise(likelihood: AdditiveNoise) -> None:
    """7 samples of two members, the first 3 with little noise: in the user's units, by hand."""
    training = replace(TRAINING, steps=2, restarts=3, combine="mixture")
    model = fit(gappy(), replace(RECIPE, likelihood=likelihood), training)
    variances = (0.01, 4.0)
    for member, variance in zip(model.members, variances, strict=True):
        member.likelihood.start_noise(torch.full((3,), variance))
    p = model.predictive(gappy().x[:9], num_samples=7)
    scale = np.nanstd(gappy().y, axis=0) * np.sqrt(np.repeat(variances, [3, 4]))[:, None, None]
    family = stats.norm() if isinstance(likelihood, dlfm.Gaussian) else stats.t(5.0)
    y = 5 + 20 * cardiac(120).values[:9]
    density = (family.pdf((y - p.samples) / scale) / scale).mean(0)
    np.testing.assert_allclose(p.log_density(y), np.log(density), rtol=1e-5)
    spread = np.sqrt(p.samples.var(0) + family.var() * (scale**2).mean(0))
    np.testing.assert_allclose(p.std, np.broadcast_to(spread, p.std.shape), rtol=1e-5)
    (noise,) = model.noise().values()
    np.testing.assert_allclose(noise, scale[[0, -1], 0].mean(0), rtol=1e-5)


@pytest.mark.parametrize("treatment", ["fixed_noise", "resampled"])
def test_other_recipes_are_saved_too(tmp_path: Path, treatment: Treatment) -> None:
    recipe = replace(
        RECIPE,
        greens_function=[
            dlfm.SecondOrder(0.01, 0.1, bounds={"damping": (1e-3, 1.0)}),
            dlfm.FirstOrder(0.02, learn=False),
        ],
        likelihood=dlfm.StudentT(0.02, degrees=5.0),
        frequencies=treatment,
        num_features=4,
    )
    model = fit(gappy(), recipe, replace(TRAINING, steps=3))
    save(model, tmp_path)
    again = load(tmp_path)
    assert np.array_equal(prediction(model), prediction(again))
    components = again.predictive([1000.0]).components
    assert isinstance(components, StudentTComponents)
    assert components.degrees == 5.0


@both
@pytest.mark.parametrize("restarts", [1, 4])
def test_killed_and_resumed_it_ends_the_same(tmp_path: Path, restarts: int, recipe: Recipe) -> None:
    training = replace(TRAINING, restarts=restarts, combine="mixture")
    whole = fit(gappy(), recipe, training, seed=1)

    class KilledError(Exception):
        pass

    def kill(step: int, loss: float) -> None:
        if step >= 10:
            raise KilledError

    with pytest.raises(KilledError):
        fit(gappy(), recipe, training, seed=1, checkpoints=tmp_path, report=kill)
    assert (tmp_path / "race.safetensors").exists()
    resumed = fit(gappy(), recipe, training, seed=1, checkpoints=tmp_path)
    assert np.array_equal(prediction(whole), prediction(resumed))


@pytest.mark.parametrize("restarts", [1, 2])
def test_an_interrupt_returns_what_there_is(restarts: int) -> None:
    """With restarts too, where the second has not begun yet."""

    def interrupt(step: int, loss: float) -> None:
        raise KeyboardInterrupt

    model = fit(gappy(), RECIPE, replace(TRAINING, steps=60, restarts=restarts), report=interrupt)
    assert model.steps == 1
    assert np.isfinite(prediction(model)).all()


@both
def test_the_same_seed_twice_is_bit_identical(recipe: Recipe) -> None:
    one, two, other = (fit(gappy(), recipe, TRAINING, seed=seed) for seed in (3, 3, 4))
    assert np.array_equal(prediction(one), prediction(two))
    assert not np.array_equal(prediction(one), prediction(other))


@both
def test_a_draw_is_one_function_wherever_it_is_evaluated(
    monkeypatch: pytest.MonkeyPatch, recipe: Recipe
) -> None:
    model = fit(gappy(), recipe, TRAINING)
    x = np.linspace(990, 1200, 40)
    f = model.draw(3, seed=2)
    whole = f(x)
    monkeypatch.setattr("deeplfm.regressor.fitted._CHUNK", 1)
    close = 1e-3 * 20  # 1e-3 in the model's units
    np.testing.assert_allclose(f(x), whole, rtol=0, atol=close)
    np.testing.assert_allclose(f(x[::-1])[:, ::-1], whole, rtol=0, atol=close)


def test_forces_of_both_layers() -> None:
    model = fit(gappy(), RECIPE, TRAINING)
    x = np.linspace(1000, 1100, 9)
    first, second = (model.latent_forces(x, layer=k, num_samples=4) for k in (0, 1))
    assert first.mean.shape == (9, 2)  # two hidden outputs, one force, one input
    assert second.mean.shape == (9, 9)  # three outputs, one force, three inputs
    assert second.names[-1] == "y2, force 0 along x0"
    with pytest.raises(dlfm.InputError, match="layer must be 0 to 1; got 2"):
        model.latent_forces(x, layer=2)
    inducing = fit(gappy(), INDUCING, TRAINING)
    first, second = (inducing.latent_forces(x, layer=k, num_samples=4) for k in (0, 1))
    assert first.names == ("force 0",)
    assert first.mean.shape == (9, 1)
    assert second.names == ("force 0", "force 1", "force 2")  # one per output


def test_the_force_of_the_first_layer_drives_its_output() -> None:
    """Quadrature of the ODE over the reported force gives the hidden function."""
    model = fit(gappy(), replace(RECIPE, num_layers=1), TRAINING, dtype=torch.float64)
    layer = model.members[0].layers[0]
    assert isinstance(layer, FourierLayer)
    scale = model.scaling.input_scale[0]

    def force(tau: torch.Tensor) -> torch.Tensor:
        flat = 1000 + scale * tau.numpy().ravel()
        values = model.latent_forces(flat, num_samples=1).samples[0, :, 1]
        return torch.tensor(values).reshape(tau.shape)

    x = torch.tensor([0.2, 0.7], dtype=torch.float64)
    driven = dlfm.responses.quadrature(layer.greens_function, force, x, "zero")[:, 1, 0]
    got = model.draw(1, seed=0)(1000 + scale * x.numpy())[0, :, 1]
    expected = driven + layer.offset[1]
    scaled = model.scaling.functions(np.stack([expected.detach().numpy()] * 3, axis=1))[:, 1]
    np.testing.assert_allclose(got, scaled, rtol=1e-8)


def test_held_out_blocks_stop_the_training() -> None:
    model = fit(gappy(), RECIPE, replace(TRAINING, steps=40, held_out=0.2))
    assert 2 <= model.steps <= 40
    assert len(model.histories[0]["loss"]) == model.steps


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("saved")
    save(fit(gappy(), RECIPE, replace(TRAINING, steps=1)), folder)
    return folder


@pytest.mark.parametrize(
    "name", ["manifest.json", "model.json", "model.safetensors", "data.safetensors"]
)
def test_any_byte_that_was_changed_is_noticed(saved: Path, name: str, tmp_path: Path) -> None:
    copy = shutil.copytree(saved, tmp_path / "copy")
    whole = (saved / name).read_bytes()
    places = np.random.default_rng(0).choice(len(whole), 40, replace=False)
    for place in [0, len(whole) - 1, *places]:
        content = bytearray(whole)
        content[place] ^= 1
        (copy / name).write_bytes(content)
        with pytest.raises(dlfm.InputError, match=r"Copy the whole folder|must have format"):
            load(copy)


def test_without_its_data_a_model_still_predicts(saved: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(saved, tmp_path / "copy")
    (copy / "data.safetensors").unlink()
    assert load(copy).data is None
    assert np.array_equal(prediction(load(copy)), prediction(load(saved)))


def test_files_that_are_not_ours_are_refused(saved: Path, tmp_path: Path) -> None:
    with pytest.raises(dlfm.InputError, match="must hold a saved model"):
        load(tmp_path)
    settings = tmp_path / "model.json"
    settings.write_text((saved / "model.json").read_text().replace('"format": 4', '"format": 99'))
    with pytest.raises(dlfm.InputError, match=r"must have format 1 to 4; got 99. Use a newer"):
        load(tmp_path)
    settings.write_text("{")
    with pytest.raises(dlfm.InputError, match="must be JSON"):
        load(tmp_path)


@pytest.mark.parametrize("version", ["1", "2"])
def test_files_of_every_format_are_read(version: str) -> None:
    """Written by versions that had them; in float64, so that machines agree to rounding."""
    folder = Path(__file__).parent / "formats" / version
    expected = json.loads((folder / "expected.json").read_text())
    model = load(folder)
    found = model.predictive(expected["x"], num_samples=3).samples
    np.testing.assert_allclose(found, expected["samples"], rtol=1e-9)
    assert dlfm.load(folder).predict(expected["x"]).shape == (4, 2)


def test_the_words_of_an_older_format_are_those_of_today(tmp_path: Path) -> None:
    """It was trained with what was called "native"; saved again, it is of the format of today."""
    old = dlfm.load(Path(__file__).parent / "formats" / "2")
    assert old.training.backend == old.fitted_.training.backend == "c"
    assert old.history_["backend"].tolist() == ["c"] * 3
    old.save(tmp_path / "again")
    assert json.loads((tmp_path / "again" / "model.json").read_text())["format"] == 4
    new = dlfm.load(tmp_path / "again")
    assert new.history_["backend"].tolist() == ["c"] * 3
    assert np.array_equal(new.predict([1.0, 2.0]), old.predict([1.0, 2.0]))


@pytest.mark.usefixtures("without_shape_checks")
def test_bad_input() -> None:
    model = fit(gappy(), RECIPE, replace(TRAINING, steps=1))
    with pytest.raises(dlfm.InputError, match="X must have 1 input columns"):
        model.predictive(np.zeros((3, 2)))
    with pytest.raises(dlfm.InputError, match="X must be finite"):
        model.predictive([np.nan])
    with pytest.raises(dlfm.InputError, match="num_samples must be"):
        model.predictive([1.0], num_samples=0)
