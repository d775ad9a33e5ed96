"""Physiological records: the rows of a file as they stand there, and gaps that follow names."""

from pathlib import Path

import numpy as np
import pytest

from deeplfm.paper.datasets.physio import physio, with_tests


def test_the_first_thousand_rows_of_a_file(tmp_path: Path) -> None:
    rows = np.random.default_rng(0).normal(size=(1003, 3)).round(6)
    text = "\n".join(",".join(map(str, row)) for row in rows.tolist())
    (tmp_path / "7.csv").write_text(f"ICP,ABP,ECG\n{text}\n")
    series = physio("7", tmp_path)
    np.testing.assert_array_equal(series.values, rows[:1000])
    np.testing.assert_allclose(series.times, np.arange(1000) / 999)
    assert series.names == ("ICP", "ABP", "ECG")
    assert series.tests["imputation"].argmax(0).tolist() == [600, 200, 400]


@pytest.mark.parametrize(
    ("names", "first_rows"),
    [
        (("ABP", "CVP", "ECG"), [200, 600, 400]),  # the gap that is left
        (("CVP", "ICP"), [200, 600]),
        (("a", "b", "c", "d"), [200, 400, 600, 200]),  # and from the first again
        (("ICP", "ECG", "ABP", "CVP"), [600, 400, 200, 200]),
    ],
)
def test_every_channel_has_a_gap(names: tuple[str, ...], first_rows: list[int]) -> None:
    series = with_tests(np.zeros((1000, len(names))), names)
    gaps = series.tests["imputation"]
    for column, first in zip(gaps.T, first_rows, strict=True):
        np.testing.assert_array_equal(np.flatnonzero(column), np.arange(first, first + 150))
    end = series.tests["extrapolation"]
    assert end[975:].all()
    assert not end[:975].any()
