"""CSV text that pandas would read in silence as something else: refused or told, with the row."""

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import deeplfm as dlfm
from deeplfm.data import columns as cells
from deeplfm.data import csv_tables as tables
from deeplfm.errors import DataWarning


def read(folder: Path, text: str, name: str = "data.csv") -> pd.DataFrame:
    path = folder / name
    path.write_bytes(text.encode())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return tables.read_table(path)


@pytest.mark.parametrize(
    ("text", "row"),
    [
        ("t,a\n0,1,5\n1,2\n2,3\n", 1),  # one overlong first row shifted them all by a column
        ("t,a\n0,1,5\n1,2,6\n2,3,7\n", 1),
        ("t,a\n0,1\n1,2,6\n2,3\n", 2),
        ("t,a\n\n0,1\n\n1,2\n2,3,x\n", 3),
        ("t;a\n0;1;5\n1;2\n", 1),
        ('t,a\n0,"1,5"\n1,2,5\n', 2),
    ],
)
def test_rows_with_more_fields_than_the_header(tmp_path: Path, text: str, row: int) -> None:
    with pytest.raises(dlfm.InputError, match=f"must have 2 fields.* in row {row}\\. Correct"):
        read(tmp_path, text)


def test_separators_at_the_ends_of_rows_are_no_columns(tmp_path: Path) -> None:
    frame = read(tmp_path, "t,a\n0,1,\n1,2,\n")
    assert frame.to_numpy().tolist() == [[0, 1], [1, 2]]


def test_rows_with_fewer_fields_are_told(tmp_path: Path) -> None:
    with pytest.raises(DataWarning, match=r"Row 2 of .*data.csv has 1 fields, its header 2"):
        read(tmp_path, "t,a\n0,1\n1\n2,3\n")
    assert read(tmp_path, "t,a\n0,1\n1,\n").isna().sum().sum() == 1


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("t,a,a", "must have different names; got 'a' twice"),
        ('t,a," a"', "must have different names; got 'a' twice"),
        ("0.5,1.25,2", "must begin with a line of names; got the numbers 0.5, 1.25, 2"),
        ('t,a,"b', "cannot be read"),
    ],
)
def test_headers_that_are_none(tmp_path: Path, header: str, message: str) -> None:
    with pytest.raises(dlfm.InputError, match=message):
        read(tmp_path, f"{header}\n1,2,3\n2,3,4\n")


def test_columns_may_be_numbered(tmp_path: Path) -> None:
    assert list(read(tmp_path, "0,1\n0.5,2\n").columns) == ["0", "1"]


def test_columns_without_a_name_are_known(tmp_path: Path) -> None:
    frame = read(tmp_path, ",t,a\n0,0.5,1\n1,0.7,2\n")
    assert tables.nameless(frame) == ["Unnamed: 0"]
    assert tables.nameless(read(tmp_path, "t,Unnamed: 3\n1,2\n")) == ["Unnamed: 3"]


def test_an_index_of_a_parquet_file_is_its_first_column(tmp_path: Path) -> None:
    path = tmp_path / "data.parquet"
    index = pd.Index([3.0, 4.0], name="t")
    pd.DataFrame({"a": [1.0, 2.0]}, index=index).to_parquet(path)
    for frame in (tables.read_table(path), next(tables.read_chunks(path))):
        assert list(frame.columns) == ["t", "a"]
        assert frame["t"].tolist() == [3.0, 4.0]
    pd.DataFrame({"a": [1.0, 2.0]}, index=[5, 9]).to_parquet(path)
    assert tables.nameless(tables.read_table(path)) == ["__index_level_0__"]


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (pd.to_datetime(["2026-01-01", "2026-01-02"]), "dates"),
        (pd.to_timedelta(["1s", "2s"]), "durations"),
        (np.array([1j, 2.0]), "complex numbers"),
    ],
)
def test_outputs_that_are_no_numbers(column: object, kind: str) -> None:
    frame = pd.DataFrame({"a": column})
    with pytest.raises(dlfm.InputError, match=f"'a' of d.csv must hold numbers; got {kind}"):
        cells.targets(frame, ["a"], Path("d.csv"))


def test_categories_of_numbers_are_numbers() -> None:
    frame = pd.DataFrame({"a": pd.Categorical(["2", "1", "2"])})
    assert cells.targets(frame, ["a"], Path("d.csv"))["a"].tolist() == [2.0, 1.0, 2.0]


@pytest.mark.parametrize("option", ["a\nb", 'a,"b', "a,,b", ",", "a, "])
def test_names_that_are_none(option: str) -> None:
    with pytest.raises(dlfm.InputError, match="names must be given by commas") as caught:
        tables.names_of(option)
    assert "\n" not in str(caught.value)
