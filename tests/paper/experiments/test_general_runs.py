"""The runs of `general`: which rival is run where, and that each of them runs in a second."""

from pathlib import Path

import numpy as np
import pytest

from deeplfm.paper.experiments import cells, run, smoke, tables
from deeplfm.paper.experiments.general import general_fits, rivals

pytest.importorskip("statsmodels")


def test_rivals_are_run_where_they_make_sense() -> None:
    everywhere = {"dlfm-markov", "interpolation", "best-gp", "structural"}
    assert set(rivals("nile-gap@50")) == everywhere
    assert set(rivals("co2-forecast@180")) == everywhere | {"seasonal-naive"}
    assert set(rivals("macrodata-gap@0")) == everywhere | {"vector", "lag-ridge"}
    assert set(rivals("rbf-gap@90")) == everywhere | {"vector", "lag-ridge", "made-by"}
    assert set(rivals("rbf-forecast@130")) == everywhere | {"vector", "made-by"}
    assert set(rivals("walk-gap@90")) == everywhere | {"made-by"}
    assert set(rivals("panel-forecast@30")) == everywhere


def test_settings_are_what_a_user_knows() -> None:
    assert rivals("sales-forecast@432")["seasonal-naive"] == {"period": 7}
    assert rivals("sales-forecast@432")["structural"]["periods"] == (7, 365.25)
    assert rivals("sunspots-gap@80")["structural"] == {"periods": (), "cycle": True}
    assert rivals("matern32-gap@90")["made-by"]["lengthscale"] == 15
    assert rivals("co2-gap@90")["dlfm-markov"] == {"check": True}  # ours is told nothing


def test_simulations_have_three_seeds_and_series_one() -> None:
    seeds = {fit.record: set[int]() for fit in general_fits()}
    for fit in general_fits():
        seeds[fit.record].add(fit.seed)
    assert seeds["walk-forecast@130"] == seeds["panel-forecast@30"] == {0, 1, 2}
    assert seeds["nile-gap@50"] == {0}


def test_ours_is_fitted_with_its_check_in_panels_too() -> None:
    ours = [cell for cell in cells("general") if cell.model == "dlfm-markov"]
    assert {cell.panel for cell in ours} == {True, False}
    for cell in ours:
        assert cell.estimator.get_params()["check"] is True
        assert smoke(cell).estimator.get_params()["check"] is True


@pytest.mark.parametrize("record", ["nile-gap@50", "rbf-gap@90", "panel-forecast@30"])
def test_all_models_of_a_record_run_and_have_their_rows(tmp_path: Path, record: str) -> None:
    chosen = [cell for cell in cells("general") if (cell.dataset, cell.seed) == (record, 0)]
    assert len(chosen) == len(rivals(record))
    for cell in chosen:
        scores = run(smoke(cell), tmp_path)["metrics"]["held_out"]
        outputs = 20 if record.startswith("panel") else 1  # of two processes one has a gap
        assert len(scores["nmse"]) == len(scores["points"]) == outputs
        assert np.isfinite([scores["nmse"], scores["crps"], scores["training_std"]]).all()
        assert sum(scores["points"]) == {"nile": 10, "rbf": 30, "panel": 200}[record.split("-")[0]]
    by_name = {table.name: table for table in tables(tmp_path, "general")}
    assert len(by_name["general_rivals"].rows) == len(chosen)
    assert len(by_name["general_cells"].rows) == 1
    assert ("general_makers" in by_name) == record.startswith("rbf")
