"""Checkpoints: only those of the same fit go on, and only as they were written."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import deeplfm as dlfm
from deeplfm.data import files
from deeplfm.models import ModelSettings
from deeplfm.training.checkpoints import Checkpoints

MARKOV = dlfm.MarkovDLFM(modes=2, num_layers=1)
FOURIER = dlfm.FourierDLFM(num_features=4, hidden_dim=1)
TRAINING = dlfm.Training(steps=4, num_samples=1, checkpoint_every=2)
both = pytest.mark.parametrize("recipe", [MARKOV, FOURIER], ids=["markov", "fourier"])
T = np.linspace(0, 9, 40)
Y = np.sin(2 * T)


def fitted(
    recipe: ModelSettings,
    folder: Path,
    y: np.ndarray = Y,
    training: dlfm.Training = TRAINING,
    seed: int = 0,
) -> dlfm.DeepLFMRegressor:
    model = dlfm.DeepLFMRegressor(recipe, training, seed, progress=False, check=False)
    return model.fit(T, y, checkpoints=folder)


@both
def test_another_fit_is_refused_and_the_same_goes_on(recipe: ModelSettings, tmp_path: Path) -> None:
    first = fitted(recipe, tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    refused = "must be of the fit that goes on; .* is of one with other"
    with pytest.raises(dlfm.InputError, match=f"{refused} data. Choose another folder"):
        fitted(recipe, tmp_path, y=np.where(T[7] == T, Y + 1e-12, Y))
    with pytest.raises(dlfm.InputError, match=f"{refused} seed. Choose"):
        fitted(recipe, tmp_path, seed=1)
    with pytest.raises(dlfm.InputError, match=f"{refused} settings. Choose"):
        fitted(recipe, tmp_path, training=replace(TRAINING, learning_rate=0.02))
    wider = dlfm.MarkovDLFM(modes=3, num_layers=1) if recipe is MARKOV else dlfm.FourierDLFM()
    with pytest.raises(dlfm.InputError, match=f"{refused} settings. Choose"):
        fitted(wider, tmp_path)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before
    np.testing.assert_array_equal(fitted(recipe, tmp_path).predict(T), first.predict(T))


@both
def test_checkpoints_of_another_version_are_refused(
    recipe: ModelSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("deeplfm.regressor.fingerprints.version", lambda _: "9.9")
        fitted(recipe, tmp_path)
    with pytest.raises(dlfm.InputError, match="with other version"):
        fitted(recipe, tmp_path)
    shutil.rmtree(tmp_path)
    tmp_path.mkdir()
    (tmp_path / "race.json").write_text('{"alive": [0], "step": 2}')
    with pytest.raises(dlfm.InputError, match=r"of this version of deeplfm; .*race\.json is of"):
        fitted(recipe, tmp_path)


@both
def test_a_flipped_bit_is_refused_or_has_no_effect(recipe: ModelSettings, tmp_path: Path) -> None:
    expected = fitted(recipe, tmp_path / "c").predict(T)
    (path,) = (tmp_path / "c").iterdir()
    whole = path.read_bytes()
    refused = 0
    for place in np.random.default_rng(0).choice(8 * len(whole), 12, replace=False).tolist():
        content = bytearray(whole)
        content[place // 8] ^= 1 << place % 8
        path.write_bytes(content)
        try:
            np.testing.assert_array_equal(fitted(recipe, tmp_path / "c").predict(T), expected)
        except dlfm.InputError as error:
            refused += "\n" not in str(error)
    assert refused >= 8


def test_parts_of_a_fit_do_not_take_each_others_place(tmp_path: Path) -> None:
    own = Checkpoints(tmp_path, {"seed": "0"})
    own.of("depth").save("evidence", {"x": torch.ones(1)}, step=2)
    found = own.of("depth").load("evidence")
    assert found is not None
    assert found[1] == {"step": 2}
    shutil.copytree(tmp_path / "depth", tmp_path / "beside")
    with pytest.raises(dlfm.InputError, match="is of one with other parts"):
        own.of("beside").load("evidence")
    assert own.of("rehearsal").load("evidence") is None
    assert own.of("") is own


# A new process has no generator; buffers that came later have values of their own.
_LATER = (".generator", ".prior_std", ".carriers", ".beside")


def test_crafted_checkpoints_are_one_sentence(tmp_path: Path) -> None:
    """With a checksum that holds: starts that are none, numbers that are missing."""
    fitted(FOURIER, tmp_path)
    path = tmp_path / "race.safetensors"
    state = files.load_state(path)
    assert state is not None
    tensors, about = state
    for alive in ([7], [-1], ["0"], [True], None, 3):
        files.save_state(path, tensors, about | {"said": {"alive": alive}})
        with pytest.raises(dlfm.InputError) as told:
            fitted(FOURIER, tmp_path)
        assert "\n" not in str(told.value)
    for name in sorted(tensors)[::7]:
        less = {key: value for key, value in tensors.items() if key != name}
        files.save_state(path, less, about)
        if ".optimiser." in name or name.endswith(_LATER):
            continue  # a frozen parameter has none, nor a new process
        with pytest.raises(dlfm.InputError):
            fitted(FOURIER, tmp_path)


def test_two_fits_do_not_share_a_folder(tmp_path: Path) -> None:
    holds = r"a fit \(process \d+ on .*\) holds it"
    with files.locked(tmp_path, "a fit"), pytest.raises(dlfm.InputError, match=holds):
        fitted(FOURIER, tmp_path)
