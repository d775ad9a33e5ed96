"""Experiments: the registry names every run, a run is one JSON, tables come from the JSONs."""

import json
import math
import os
from pathlib import Path

import pytest

import deeplfm as dlfm
from deeplfm.datasets import physio
from deeplfm.experiments import cells, registry, report, reproduce_decay, run

SHARED = Path(__file__).parents[3] / "shared" / "data"
KEYS = {
    "experiment", "model", "dataset", "seed", "config", "versions", "commit", "device",
    "seconds", "peak_memory", "metrics", "learning_curve",
}  # fmt: skip


@pytest.mark.parametrize("model", ["dlfm-rff", "dgp-rff", "dlfm-vip", "dgp-vip"])
def test_a_toy_run_is_one_json(tmp_path: Path, model: str) -> None:
    cell = next(cell for cell in cells("toy") if cell.model == model)
    result = run(registry.smoke(cell), tmp_path)
    assert set(result) == KEYS
    file = tmp_path / "toy" / f"{cell.name}.json"
    assert json.loads(file.read_text()) == result
    assert {"rmse_true", "mnll", "nmse", "crps"} <= set(result["metrics"]["extrapolation"])
    before = file.stat().st_mtime_ns
    run(registry.smoke(cell), tmp_path)  # not repeated
    assert file.stat().st_mtime_ns == before
    headings, rows = report.table(report.load_results(tmp_path, "toy"))
    assert headings[4] == "rmse_true"
    assert {row[1] for row in rows} == {"imputation", "extrapolation"}
    assert report.markdown(headings, rows).count("\n") == 4


@pytest.mark.skipif(not SHARED.exists(), reason="needs the data files beside the project")
@pytest.mark.parametrize("model", ["dlfm-rff", "dlfm-rff-paper", "dlfm-vip", "dlfm-vip-paper"])
def test_a_physio_run(tmp_path: Path, model: str) -> None:
    cell = next(
        cell for cell in cells("physio") if cell.model == model and cell.dataset == "3083337"
    )
    result = run(registry.smoke(cell), tmp_path, data=SHARED)
    assert len(result["metrics"]["imputation"]["nmse"]) == 3


@pytest.mark.skipif(not SHARED.exists(), reason="needs the data files beside the project")
def test_physio_records_have_their_gaps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, "DEEPLFM_DATA", str(SHARED))
    series = physio("3379471")
    assert series.values.shape == (1000, 3)
    assert series.names == ("ABP", "ECG", "ICP")
    assert series.tests["imputation"].sum(0).tolist() == [150, 150, 150]
    assert series.tests["extrapolation"].sum(0).tolist() == [25, 25, 25]


def test_names_are_unique_and_the_scored_record_is_apart() -> None:
    for experiment in ("toy", "physio", "starts", "overconfidence"):
        names = [cell.name for cell in cells(experiment)]
        assert len(names) == len(set(names))
    assert registry.SCORED_ON not in registry.CHOSEN_ON


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_losses_stay_finite_from_any_start(tmp_path: Path, dtype: str) -> None:
    """A short version of the recorded experiment: one fitted start, one from the prior."""
    for seed in (0, 10):
        cell = next(
            cell
            for cell in cells("starts")
            if (cell.dtype, cell.dataset, cell.seed) == (dtype, "figure", seed)
        )
        result = run(registry.smoke(cell), tmp_path)
        assert all(math.isfinite(loss) for loss in result["learning_curve"]["loss"])
        assert result["config"]["dtype"] == dtype


def test_a_fast_decay_passes_the_force(tmp_path: Path) -> None:
    """Figure 6: of a range of 2, a lag of 1/200 at a lengthscale of 0.1 moves a curve little."""
    slow, fast = reproduce_decay(tmp_path)["largest_distance_to_force"]
    assert fast < 0.1
    assert slow > 0.5
    names = sorted(path.name for path in (tmp_path / "decay").iterdir())
    assert names == ["decay.json", "decay.pdf", "decay.png"]


def test_bad_input(tmp_path: Path) -> None:
    with pytest.raises(dlfm.InputError, match="experiment must be one of"):
        cells("table 7")
    with pytest.raises(dlfm.InputError, match=r"physio/1.csv must be on this machine.*Put it"):
        physio("1", tmp_path)
    (tmp_path / "2.csv").write_text("a,b\n1,2\n")
    with pytest.raises(dlfm.InputError, match="must hold 1000 rows of 3 channels"):
        physio("2", tmp_path)
