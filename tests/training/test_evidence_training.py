"""Learning by evidence: it rises, resumes bit for bit, and windows speak for the whole."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import deeplfm as dlfm
from deeplfm.models.markov_model import MarkovModel
from deeplfm.statespace import Record
from deeplfm.training import evidence
from deeplfm.training.checkpoints import Checkpoints
from deeplfm.training.evidence import EvidenceTrainer
from deeplfm.training.laplace import flat_parameters
from deeplfm.training.robust import noise_scale
from markov_records import KINDS, small_record

EVERY = dlfm.Training(steps=8, checkpoint_every=1)


def trainer(kind: str, folder: Path | None = None, **record: Any) -> EvidenceTrainer:
    data = small_record((30, 12), known=kind == "one ODE", **record)
    model = dlfm.MarkovDLFM(**KINDS[kind]).build(data, torch.Generator().manual_seed(0))
    kept = None if folder is None else Checkpoints(folder)
    return EvidenceTrainer(model, data, EVERY, seed=3, checkpoints=kept)


def parameters(model: MarkovModel) -> list[float]:
    return [float(one) for one in flat_parameters(model)]


@pytest.fixture
def in_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evidence, "_WHOLE", 20)
    monkeypatch.setattr(evidence, "WINDOW", 10)


@pytest.mark.parametrize("kind", list(KINDS))
def test_the_objective_rises(kind: str) -> None:
    one = trainer(kind)
    one.run(8)
    loss = one.history()["loss"]
    assert len(loss) == 8
    assert loss[-1] < loss[0]


@pytest.mark.parametrize("stop", [1, 5])
@pytest.mark.parametrize("kind", ["bank", "heavy tails", "one ODE"])
def test_a_resumed_fit_is_the_same_bit_for_bit(kind: str, stop: int, tmp_path: Path) -> None:
    _check_resumed(kind, stop, tmp_path)


@pytest.mark.usefixtures("in_windows")
@pytest.mark.parametrize("kind", ["bank", "heavy tails", "one ODE"])
def test_a_resumed_fit_in_windows_is_the_same_bit_for_bit(kind: str, tmp_path: Path) -> None:
    _check_resumed(kind, 5, tmp_path)


def _check_resumed(kind: str, stop: int, folder: Path) -> None:
    through = trainer(kind)
    through.run(8)
    first = trainer(kind, folder)
    first.run(stop)
    second = trainer(kind, folder)
    second.resume()
    assert second.step == stop
    second.run(8)
    assert parameters(second.model) == parameters(through.model)
    for name in ("step", "loss", "log_evidence", "log_prior"):
        assert second.history()[name].tolist() == through.history()[name].tolist()
    assert (np.diff(second.history()["seconds"]) > 0).all()


def test_resuming_without_a_checkpoint_begins(tmp_path: Path) -> None:
    one = trainer("bank", tmp_path / "none")
    one.save()  # nothing to keep yet
    one.resume()
    assert one.step == 0
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("place", [3, 0.3, 0.6, 0.99])
def test_a_changed_checkpoint_is_refused(place: float, tmp_path: Path) -> None:
    one = trainer("bank", tmp_path)
    one.run(2)
    (path,) = tmp_path.iterdir()
    content = bytearray(path.read_bytes())
    content[int(place if place > 1 else place * len(content))] ^= 8
    path.write_bytes(content)
    with pytest.raises(dlfm.InputError, match=r"as it was written|a safetensors file"):
        trainer("bank", tmp_path).resume()


def test_a_cut_checkpoint_and_one_of_another_model_are_refused(tmp_path: Path) -> None:
    one = trainer("bank", tmp_path)
    one.run(2)
    with pytest.raises(dlfm.InputError, match="checkpoint must be of the same model"):
        trainer("levels and slopes", tmp_path).resume()
    (path,) = tmp_path.iterdir()
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(dlfm.InputError, match=r"as it was written|a safetensors file"):
        trainer("bank", tmp_path).resume()


@pytest.mark.usefixtures("in_windows")
def test_windows_speak_for_the_whole() -> None:
    """Independent noise: per entry, windows differ by what one unknown mean costs each."""
    rng = np.random.default_rng(0)
    lengths = (150, 50)
    series = np.repeat([0, 1], lengths)
    targets = rng.normal(size=(200, 1))
    targets[rng.uniform(size=200) < 0.3] = np.nan
    record = Record(np.arange(200.0), series, targets)
    recipe = dlfm.MarkovDLFM(modes=0, level=False, likelihood=dlfm.Gaussian(1.0))
    model = recipe.build(record, torch.Generator())
    one = EvidenceTrainer(model, record, EVERY, seed=0)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        found = [float(one.objective(record.windows(2, 25, generator))[0]) for _ in range(80)]
        whole = float(model.evidence(record, record.whole()))
    count = int((~np.isnan(targets)).sum())
    seen = 0.7 * 25
    mean_costs = (0.5 * math.log(seen) + 0.5 * math.log(2 * math.pi) + 0.5) / seen
    error = 5 * float(np.std(found)) / math.sqrt(len(found)) / count
    assert abs(np.mean(found) - whole) / count < mean_costs + error


def test_heavy_tails_give_outliers_more_noise_and_gaussian_noise_none() -> None:
    record = small_record()
    row = int(np.flatnonzero(~np.isnan(record.targets[:, 0]))[9])
    models = {
        kind: dlfm.MarkovDLFM(**KINDS[kind]).build(record, torch.Generator())
        for kind in ("bank", "heavy tails")
    }
    record.targets[row, 0] = 30.0
    cut = record.whole()
    assert noise_scale(models["bank"], record, cut) is None
    scale = noise_scale(models["heavy tails"], record, cut)
    assert scale is not None
    assert scale[0, row, 0] == scale.max()
    assert scale.median() < 2
    assert bool((scale[~cut.observed] == 1).all())
