"""The experiment `tables`: its records and splits, its runs in seconds, and its table of ratios."""

from pathlib import Path

import numpy as np
import pytest

from deeplfm.errors import InputError
from deeplfm.paper.datasets.tables import SIZES, table_record
from deeplfm.paper.experiments import cells, run, smoke, tables
from deeplfm.paper.experiments.table_scores import MODELS, OURS, RIVAL, START

SIMULATED = tuple(name for name in SIZES if name.startswith("friedman"))


@pytest.mark.parametrize("record", ["diabetes", *SIMULATED])
def test_a_tenth_of_a_table_is_held_out(record: str) -> None:
    data = table_record(record, 1, None)
    assert data.inputs.shape == (SIZES[record].rows, SIZES[record].inputs)
    assert int(data.tests["test"].sum()) == SIZES[record].rows // 10
    assert int(np.isfinite(data.training("test")).sum()) == SIZES[record].training_rows
    other = table_record(record, 2, None)
    assert not np.array_equal(data.tests["test"], other.tests["test"])
    assert np.array_equal(data.values, other.values) == (record == "diabetes")


def test_an_unknown_table_is_refused() -> None:
    with pytest.raises(InputError, match="record must be one of"):
        table_record("friedman9", 0, None)


def test_every_model_is_run_on_every_split_of_every_table() -> None:
    chosen = cells("tables")
    assert len(chosen) == len(SIZES) * len(MODELS) * 3
    for cell in chosen:
        if cell.model in (OURS, START):
            assert cell.estimator.get_params()["check"] is False
    steps = {cell.model: cell.estimator.get_params().get("training__steps") for cell in chosen}
    assert steps[START] == 1


def test_runs_of_seconds_make_the_table(tmp_path: Path) -> None:
    assert tables(tmp_path, "tables") == []
    chosen = [c for c in cells("tables") if (c.dataset, c.seed) == ("friedman1-300", 0)]
    for cell in chosen:
        scores = run(smoke(cell), tmp_path)["metrics"]["test"]
        assert np.isfinite([scores["rmse"], scores["coverage_90"]]).all()
    (made,) = tables(tmp_path, "tables")
    first, mean = made.rows
    assert first[0] == "friedman1-300"
    assert first[5] == mean[5]  # one table: its ratio is the mean of ratios
    assert float(first[5]) == pytest.approx(float(first[3]) / float(first[4]), abs=2e-3)
    assert RIVAL in MODELS
