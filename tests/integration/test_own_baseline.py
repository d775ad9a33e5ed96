"""A baseline from outside the package: one class, one registration.

It fits, predicts with uncertainty, saves, loads, runs as a cell of an experiment in this process
and in others, and has a row in the table. docs/add_a_baseline.md explains this file.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import final

import numpy as np
import pytest
import torch
from torch import Tensor

import deeplfm as dlfm
from deeplfm.data import Dataset
from deeplfm.paper.baselines import Baseline, History, Mixture, State, Task, baseline, load
from deeplfm.paper.experiments import Sweep, choose, reproduce, tables


@final
@baseline("seasonal-mean", "seasonal mean", on=("toy",), smoke={"num_phases": 5})
class SeasonalMean(Baseline):
    """The mean and the spread of a series at each phase of a period.

    period:     the period, as a share of the fitted series.
    num_phases: into how many phases it is divided.
    """

    def __init__(
        self,
        period: float = 0.5,
        num_phases: int = 20,
        seed: int = 0,
        device: str = "auto",
        dtype: str = "float64",
        progress: bool = True,
    ) -> None:
        self.period = period
        self.num_phases = num_phases
        self.seed = seed
        self.device = device
        self.dtype = dtype
        self.progress = progress

    def check(self, data: Dataset) -> None:
        if data.x.shape[1] != 1:
            raise dlfm.InputError(
                f"SeasonalMean is for a series: X must have 1 input; got {data.x.shape[1]}. "
                "Use BoostedTrees."
            )

    def fit_state(self, task: Task, history: History) -> State:
        phase, seen = self._phase(task.x), task.observed.to(task.y)  # y is 0 where not observed

        def sums(values: Tensor) -> Tensor:
            return values.new_zeros(self.num_phases, values.shape[1]).index_add(0, phase, values)

        count = sums(seen).clamp(min=1)
        mean = sums(task.y) / count
        variance = sums(seen * (task.y - mean[phase]).square()) / count
        nothing_seen = sums(seen) == 0
        variance[nothing_seen] = 1.0  # targets have mean 0 and spread 1
        history.add(variance.mean())
        return {"mean": mean, "std": variance.sqrt().clamp(min=1e-3)}

    def mixture(self, state: State, x: Tensor, num_samples: int, seed: int) -> Mixture:
        phase = self._phase(x)
        return state["mean"][phase][None], state["std"][phase][None]

    def _phase(self, x: Tensor) -> Tensor:
        """The phase of each row [N], from 0 to num_phases - 1."""
        share = torch.remainder(x[:, 0] / self.period, 1.0)
        return (share * self.num_phases).long().clamp(max=self.num_phases - 1)


T = np.linspace(10, 20, 41)[:-1]  # two periods of 5, of which each half has 10 rows
Y = np.stack([np.sign(np.sin(2 * np.pi * T / 5 + 0.1)), 100 + 7 * np.arange(40.0) % 11], 1)
Y[3:8, 0] = np.nan


def fitted() -> SeasonalMean:
    model = SeasonalMean(period=20 / 39, num_phases=4)  # 20 of the 39 steps that the series has
    model.fit(T, Y)
    return model


def test_it_predicts_as_a_naive_loop_would() -> None:
    new = np.append(T, T[-1] + 0.25 * np.arange(1, 21))  # and one period more
    prediction = fitted().predictive(new)
    for k in range(len(new)):
        rows = [n for n in range(40) if (n % 20) // 5 == (k % 20) // 5]
        for output in range(2):
            values = Y[rows, output][~np.isnan(Y[rows, output])]
            assert prediction.mean[k, output] == pytest.approx(values.mean())
            least = 1e-3 * np.nanstd(Y[:, output])
            assert prediction.std[k, output] == pytest.approx(max(values.std(), least))
    assert np.isfinite(prediction.log_density(np.zeros((60, 2)))).all()


def test_a_folder_is_read_only_where_the_class_was_registered(tmp_path: Path) -> None:
    model = fitted()
    model.save(tmp_path / "run")
    again = load(tmp_path / "run")
    assert type(again) is SeasonalMean
    np.testing.assert_array_equal(again.predict(T), model.predict(T))
    code = (
        "import sys\n"
        "from deeplfm import InputError\n"
        "from deeplfm.paper.baselines import load\n"
        "try:\n    load(sys.argv[1])\nexcept InputError as error:\n    print(error)\n"
        "sys.path.append(sys.argv[2])\n"
        "assert 'test_own_baseline' not in sys.modules\n"
        "import test_own_baseline as own\n"
        "print(load(sys.argv[1]).predict(own.T)[7].tolist())"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "run"), str(Path(__file__).parent)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    refusal, prediction = done.stdout.splitlines()
    assert "'SeasonalMean' is not among" in refusal
    assert json.loads(prediction) == model.predict(T)[7].tolist()


def test_it_runs_as_a_cell_and_has_a_row_in_the_table(tmp_path: Path) -> None:
    chosen = choose("toy", ["seasonal-mean", "gp"], ["figure"], ["0"])
    assert {type(cell.estimator).__name__ for cell in chosen} == {"SeasonalMean", "ExactGP"}
    lines: list[str] = []
    written = reproduce(chosen, "toy", Sweep(tmp_path, short=True), lines.append)
    (table,) = tables(tmp_path, "toy")
    assert {row[0] for row in table.rows} == {"GP", "seasonal mean"}
    (row,) = (row for row in table.rows if row[0] == "seasonal mean")
    result = tmp_path / "toy" / "seasonal-mean_figure_imputation_extrapolation_0.json"
    metrics = json.loads(result.read_text())["metrics"]
    (error,) = metrics["imputation"]["rmse_true"]
    assert row[2] == f"{error:.3f} ({error:.3f})"
    assert 0 < metrics["extrapolation"]["coverage_95"][0] <= 1
    assert json.loads(result.read_text())["config"]["num_phases"] == 5  # the smoke settings
    assert "seasonal mean" in (tmp_path / "tables" / "toy_figure.md").read_text()
    assert tmp_path / "figures" / "toy_figure.png" in written


def test_other_processes_run_it_too(tmp_path: Path) -> None:
    chosen = choose("toy", ["seasonal-mean"], ["equations"], ["3"])
    assert Sweep(tmp_path, jobs=2, short=True).run(chosen, lambda _: None) == {}
    (table,) = tables(tmp_path, "toy")
    assert [row[:2] for row in table.rows] == [("seasonal mean", "1")]
