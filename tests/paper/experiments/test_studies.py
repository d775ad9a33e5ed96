"""Studies of simulated sets: one JSON per set, and tables that count what was covered."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from deeplfm.paper.experiments import Sweep, choose, reproduce, tables
from deeplfm.paper.experiments.mixed_channels import ridge_on_others
from deeplfm.paper.experiments.springs import HiddenForce
from deeplfm.paper.experiments.studies import STUDIES

SYSTEMS = {"springs": 1, "driven": 2, "seven": 1}


def parameter(truth: float, median: float, half: float) -> dict[str, float]:
    return {"truth": truth, "p05": median - half, "p50": median, "p95": median + half}


@pytest.mark.parametrize("name", STUDIES)
def test_a_study_is_one_command(name: str, tmp_path: Path) -> None:
    chosen = choose(name, seeds=["0"])
    assert len(chosen) == SYSTEMS[name]
    written = reproduce(chosen, name, Sweep(tmp_path, short=True), lambda _: None)
    results = [json.loads(path.read_text()) for path in (tmp_path / name).glob("*.json")]
    assert len(results) == SYSTEMS[name]
    for result in results:
        assert result["config"]["estimator"] == "DeepLFMRegressor"
        assert result["seconds"] > 0
        assert result["metrics"]
    assert len(tables(tmp_path, name)) == SYSTEMS[name]
    assert {path.suffix for path in written} == {".md", ".tex"}


@pytest.mark.parametrize("name", STUDIES)
def test_without_results_there_is_no_table(name: str, tmp_path: Path) -> None:
    assert tables(tmp_path, name) == []


def springs_result(swapped: bool, half: float) -> dict[str, Any]:
    found = {}
    for d, (damping, frequency) in enumerate([(0.25, 2.0), (0.8, 1.2)]):
        other = (0.8, 1.2) if d == 0 else (0.25, 2.0)
        median = other if swapped else (1.1 * damping, 0.9 * frequency)
        found[f"y{d}: damping"] = parameter(damping, median[0], half * damping)
        found[f"y{d}: frequency"] = parameter(frequency, median[1], half * frequency)
    return {"metrics": {"parameters": found, "force": {"coverage_90": 0.5}}}


def test_tables_count_what_intervals_hold() -> None:
    results = [springs_result(False, 0.2), springs_result(False, 0.05), springs_result(True, 0.05)]
    (table,) = HiddenForce().tables(results)
    assert table.rows[0][:3] == ("y0: damping", "3", "0.333")
    assert table.rows[-1][:3] == ("all", "12", "0.333")
    assert "swapped in 1 sets" in table.caption
    assert "holds 50.0%" in table.caption
    (table,) = HiddenForce().tables(results[:2])
    assert "10.00% over all dampings" in table.caption
    assert table.rows[1][3:] == ("10.00%", "-10.00%")


def test_the_rival_knows_a_channel_that_is_a_mixture_of_others() -> None:
    rng = np.random.default_rng(0)
    channels = rng.normal(size=(100, 3)) * (1, 100, 0.01) + (5, 0, 0)
    training = np.column_stack([channels, channels @ (1.0, 0.02, 30.0) + 7])
    truth = training[:, 3].copy()
    training[70:, 3] = np.nan
    ended = np.array([False, False, False, True])
    np.testing.assert_allclose(ridge_on_others(training, ended)[:, 0], truth, rtol=1e-4)
