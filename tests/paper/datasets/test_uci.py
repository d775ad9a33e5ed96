"""Tables of the UCI repository: ten fixed splits, and files that are not what they should be."""

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import deeplfm as dlfm
from deeplfm.data import dataset, fit_scaling
from deeplfm.paper.datasets.uci import uci

SHARED = Path(__file__).parents[4] / "shared" / "data"
needs_files = pytest.mark.skipif(
    not (SHARED / "uci").exists(), reason="needs the data files beside the project"
)


@needs_files
@pytest.mark.parametrize(("name", "shape"), [("power", (9568, 4)), ("protein", (45730, 9))])
def test_the_files_known_here(name: Any, shape: tuple[int, int]) -> None:
    """No warning: the file is the one whose checksum is recorded. The target is the last column."""
    table = uci(name, 0, SHARED)
    assert table.inputs.shape == shape
    assert len(table.input_names) == shape[1]
    with (SHARED / "uci" / f"{name}.txt").open() as lines:
        first = [float(number) for number in next(lines).split()]
    assert [*table.inputs[0], *table.values[0]] == first
    assert np.isfinite(table.test("test")).sum() == shape[0] // 10
    assert np.isfinite(table.training()).sum() == shape[0] - shape[0] // 10


@needs_files
def test_ten_splits_that_differ_and_repeat(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEEPLFM_DATA", str(SHARED))
    masks = [uci("power", split).tests["test"] for split in range(10)]
    np.testing.assert_array_equal(masks[3], uci("power", 3).tests["test"])
    for first in range(10):
        for second in range(first):
            both = int((masks[first] & masks[second]).sum())
            # Two random tenths share a hundredth of the rows, within 5 of its spreads.
            assert abs(both - 95.5) < 5 * np.sqrt(95.5)
    # Fixed for good: who compares with old results compares the same rows.
    rows = np.flatnonzero(masks[0]).astype("<i8").tobytes()
    assert hashlib.sha256(rows).hexdigest()[:16] == "de74489330d18aad"


@needs_files
def test_inputs_reach_a_model_with_spread_one() -> None:
    table = uci("power", 0, SHARED)
    training = dataset(table.inputs, table.training())
    assert len(training) == 9568 - 956
    scaled = fit_scaling(training).inputs(training.x)
    np.testing.assert_allclose(scaled.std(0), 1)
    np.testing.assert_allclose(scaled.min(0), 0.1)  # no mean is taken off: 0 is where memory starts


def test_other_files(tmp_path: Path) -> None:
    """The right shape with other bytes gives a warning; another shape is refused."""
    file = tmp_path / "power.txt"
    rows = np.random.default_rng(0).normal(size=(9568, 5)).round(2)
    np.savetxt(file, rows, fmt="%.2f")
    with pytest.warns(UserWarning, match="is not byte for byte the file known here"):
        table = uci("power", 0, tmp_path)
    np.testing.assert_array_equal(table.values[:, 0], rows[:, 4])
    np.savetxt(file, rows[:-1], fmt="%.2f")
    with pytest.raises(dlfm.InputError, match=r"must hold 9568 lines .* got 9567 lines of 5 "):
        uci("power", 0, tmp_path)
    np.savetxt(file, rows, fmt="%.2f", delimiter=",", header="AT,V,AP,RH,PE", comments="")
    with pytest.raises(dlfm.InputError, match=r"got a line that is not .*Make it again from http"):
        uci("power", 0, tmp_path)
    rows[5, 2] = np.nan
    np.savetxt(file, rows, fmt="%.2f")
    with pytest.raises(dlfm.InputError, match="all of them finite"):
        uci("power", 0, tmp_path)


@pytest.mark.usefixtures("without_shape_checks")
def test_bad_input(tmp_path: Path) -> None:
    with pytest.raises(dlfm.InputError, match=r"name must be one of \['power', 'protein'\]"):
        uci("boston", 0)  # type: ignore[arg-type]
    for split in (10, -1, 0.5, True):
        with pytest.raises(dlfm.InputError, match="split must be an integer from 0 to 9"):
            uci("power", split)  # type: ignore[arg-type]
    with pytest.raises(dlfm.InputError) as caught:
        uci("power", 0, tmp_path)
    assert str(caught.value) == (
        f"the data file uci/power.txt must be on this machine; not found: {tmp_path}/uci/power.txt."
        " Put it there, or name the folder that holds uci/power.txt; it comes from "
        "https://archive.ics.uci.edu/dataset/294/combined+cycle+power+plant, as 9568 lines of 5 "
        "numbers with blanks or tabs between them (AT V AP RH PE), without a heading."
    )
