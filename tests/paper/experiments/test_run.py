"""Experiments: the registry names every run, a run is one JSON, tables come from the JSONs."""

import json
import math
import os
from pathlib import Path

import numpy as np
import pytest

import deeplfm as dlfm
from deeplfm.paper.datasets.physio import physio
from deeplfm.paper.experiments import Cell, cells, registry, reproduce_decay, run, smoke, tables
from deeplfm.paper.experiments.run import observations_of, predictions_file

SHARED = Path(__file__).parents[4] / "shared" / "data"
KEYS = {
    "experiment", "model", "dataset", "seed", "config", "versions", "commit", "device",
    "seconds", "peak_memory", "metrics", "learning_curve",
}  # fmt: skip


needs_data = pytest.mark.skipif(
    not SHARED.exists(), reason="needs the data files beside the project"
)


def first(experiment: str, model: str) -> Cell:
    return next(cell for cell in cells(experiment) if cell.model == model)


def models_of(experiment: str) -> list[str]:
    return sorted({cell.model for cell in cells(experiment)})


@pytest.mark.parametrize("model", models_of("toy"))
def test_a_toy_run_is_one_json(tmp_path: Path, model: str) -> None:
    cell = first("toy", model)
    result = run(smoke(cell), tmp_path)
    assert set(result) == KEYS
    file = tmp_path / "toy" / f"{cell.name}.json"
    assert json.loads(file.read_text()) == result
    assert {"rmse_true", "mnll", "nmse", "crps"} <= set(result["metrics"]["extrapolation"])
    before = file.stat().st_mtime_ns
    run(smoke(cell), tmp_path)  # not repeated
    assert file.stat().st_mtime_ns == before
    shown = json.loads(predictions_file(cell, tmp_path).read_text())
    assert np.shape(shown["mean"]) == np.shape(shown["std"]) == (750, 1)


@needs_data
@pytest.mark.parametrize("model", models_of("physio"))
def test_a_physio_run(tmp_path: Path, model: str) -> None:
    cell = first("physio", model)
    result = run(smoke(cell), tmp_path, data=SHARED)
    (task,) = cell.tasks
    assert len(result["metrics"][task]["nmse"]) == 3
    assert all(math.isfinite(value) for value in result["metrics"][task]["mnll"])
    assert set(result["config"]) >= {"estimator"}


@needs_data
@pytest.mark.parametrize("model", models_of("uci"))
def test_a_uci_run(tmp_path: Path, model: str) -> None:
    """Scores are in the units of the data: megawatts, of which trees miss three."""
    result = run(smoke(first("uci", model)), tmp_path, data=SHARED)
    (rmse,) = result["metrics"]["test"]["rmse"]
    assert 2 < rmse < math.inf


@needs_data
def test_an_uneven_run_scores_what_is_left(tmp_path: Path) -> None:
    cell = next(c for c in cells("uneven") if c.model == "dlfm-rff" and c.dataset == "3379471")
    observed = observations_of(cell, SHARED)
    assert (~np.isnan(observed.values)).sum(0).tolist() == [500, 500, 500]
    result = run(smoke(cell), tmp_path, data=SHARED)
    assert len(result["metrics"]["imputation"]["nmse"]) == 3


@pytest.mark.filterwarnings("ignore:The inplace keyword")  # of wfdb, where it writes
def test_a_charis_run(tmp_path: Path) -> None:
    """On a record in the format of the real ones, whose waveforms cannot be had everywhere."""
    wfdb = pytest.importorskip("wfdb")
    random = np.random.default_rng(0)
    times = np.arange(1000)[:, None] / 8
    wfdb.wrsamp(
        "charis6", fs=50, units=["mmHg", "mV", "mmHg"], sig_name=["ABP", "ECG", "ICP"],
        p_signal=np.sin(times + np.arange(3)) + 0.1 * random.standard_normal((1000, 3)),
        fmt=["16"] * 3, write_dir=str(tmp_path),
    )  # fmt: skip
    result = run(smoke(first("charis", "dlfm-rff")), tmp_path, data=tmp_path)
    assert len(result["metrics"]["imputation"]["nmse"]) == 3
    (imputation,) = tables(tmp_path, "charis")
    assert imputation.rows[0][0] == "DLFM-RFF (ours)"
    assert imputation.rows[1][:2] == ("DLFM-VIP, published", "0.10 (0.03)")


@needs_data
def test_physio_records_have_their_gaps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, "DEEPLFM_DATA", str(SHARED))
    series = physio("3379471")
    assert series.values.shape == (1000, 3)
    assert series.names == ("ABP", "ECG", "ICP")
    assert series.tests["imputation"].sum(0).tolist() == [150, 150, 150]
    assert series.tests["extrapolation"].sum(0).tolist() == [25, 25, 25]


def test_names_are_unique_and_the_scored_record_is_apart() -> None:
    for experiment in registry.experiments():
        names = [cell.name for cell in cells(experiment)]
        assert len(names) == len(set(names))
    assert not set(registry.SCORED_ON) & set(registry.CHOSEN_ON)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_losses_stay_finite_from_any_start(tmp_path: Path, dtype: str) -> None:
    """A short version of the recorded experiment: one fitted start, one from the prior."""
    for seed in (0, 10):
        cell = next(
            cell
            for cell in cells("starts")
            if (cell.estimator.dtype, cell.dataset, cell.seed) == (dtype, "figure", seed)
        )
        result = run(smoke(cell), tmp_path)
        assert all(math.isfinite(loss) for loss in result["learning_curve"]["loss"])
        assert result["config"]["dtype"] == dtype


def test_a_fast_decay_passes_the_force(tmp_path: Path) -> None:
    """Figure 6: of a range of 2, a lag of 1/200 at a lengthscale of 1 moves a curve little.

    u(x - 1/γ) differs by |u'|/γ; slopes of a force of spread s are about s per lengthscale, 4 s
    at most, and its range over ten lengthscales is about 4 s, to be scaled to 2.
    """
    slow, fast = reproduce_decay(tmp_path)["largest_distance_to_force"]
    assert fast < 2 * 4 / 200 / 4 * 2
    assert slow > 0.5
    names = sorted(path.name for path in tmp_path.glob("*/*"))
    assert names == ["decay.json", "decay.pdf", "decay.png"]


def test_bad_input(tmp_path: Path) -> None:
    with pytest.raises(dlfm.InputError, match="experiment must be one of"):
        cells("table 7")
    with pytest.raises(dlfm.InputError, match=r"physio/1.csv must be on this machine.*Put it"):
        physio("1", tmp_path)
    (tmp_path / "2.csv").write_text("a,b\n1,2\n")
    with pytest.raises(dlfm.InputError, match="must hold 1000 rows of 3 channels"):
        physio("2", tmp_path)
