"""Tables from files: every separator, dates there and back, and errors that name the cell."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import deeplfm as dlfm
from deeplfm.data import columns as cells
from deeplfm.data import csv_tables as tables


def written(folder: Path, text: str | bytes, name: str = "data.csv") -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_decimal_commas(tmp_path: Path) -> None:
    frame = tables.read_table(written(tmp_path, "t;a;b\n1,5;2;x\n2,5;;y\n"))
    assert frame["t"].tolist() == [1.5, 2.5]
    points = tables.read_table(written(tmp_path, "t;a;b\n1.5;2;x\n2.5;;y\n"))
    assert points["t"].tolist() == [1.5, 2.5]


@pytest.mark.parametrize("text", ["t,a\n1,2\n", "t;a\n1;2\n", "t\ta\n1\t2\n", "\ufefft, a\n1, 2\n"])
def test_every_separator(tmp_path: Path, text: str) -> None:
    frame = tables.read_table(written(tmp_path, text))
    assert list(frame.columns) == ["t", "a"]
    assert frame["a"].tolist() == [2]


def test_parquet_there_and_back(tmp_path: Path) -> None:
    frame = pd.DataFrame({"t": pd.to_datetime(["2026-01-01", "2026-01-02"]), "a": [1.5, np.nan]})
    tables.write_table(frame, tmp_path / "data.parquet")
    again = tables.read_table(tmp_path / "data.parquet")
    x, origins = cells.inputs(again, ["t"], tmp_path, None)
    assert x["t"].tolist() == [0.0, 86400.0]
    assert origins == {"t": "2026-01-01T00:00:00"}


BAD: dict[str, tuple[str | bytes, str]] = {
    "empty": ("", "it is empty"),
    "blank": ("\n\n", "it is empty"),
    "binary": (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "it is binary"),
    "not UTF-8": (b"t,a\n1,\xff\xfe\n", "cannot be read .* Save it again as UTF-8"),
    "ragged": (
        "t,a\n1,2,3,4\n1,2\n1,2,3,4,5,6\n",
        "must have 2 fields, as its header has; got 4 in row 1",
    ),
    "a header alone": ("t,a\n", "must have rows below its header"),
}


@pytest.mark.parametrize("case", BAD)
def test_files_that_are_no_tables(tmp_path: Path, case: str) -> None:
    content, message = BAD[case]
    with pytest.raises(dlfm.InputError, match=message):
        tables.read_table(written(tmp_path, content))


def test_files_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(dlfm.InputError, match="must be a CSV or Parquet file; got nothing"):
        tables.read_table(tmp_path / "no.csv")
    with pytest.raises(dlfm.InputError, match="got a folder"):
        tables.read_table(tmp_path)
    with pytest.raises(dlfm.InputError, match="cannot be read"):
        tables.read_table(written(tmp_path, b"PAR1 no", "broken.parquet"))


def frame_of(**columns: Any) -> pd.DataFrame:
    return pd.DataFrame(columns)


def test_text_among_numbers_names_the_cell() -> None:
    frame = frame_of(a=["1", "2", "oops"])
    with pytest.raises(
        dlfm.InputError, match=r"column 'a' of d.csv must hold numbers; got 'oops' in row 3"
    ):
        cells.targets(frame, ["a"], Path("d.csv"))
    assert np.isnan(cells.targets(frame_of(a=[1.0, np.nan]), ["a"], Path("d.csv"))["a"][1])


def test_unknown_columns_name_those_there_are() -> None:
    frame = frame_of(t=[1], abp=[2])
    with pytest.raises(dlfm.InputError, match=r"it has 't', 'abp'. Correct 'apb'"):
        tables.check_columns(frame, ["t", "apb"], Path("d.csv"))
    with pytest.raises(dlfm.InputError, match="must be named once; got 't' twice"):
        tables.check_columns(frame, ["t", "t"], Path("d.csv"))
    many = pd.DataFrame(np.zeros((1, 50)), columns=[f"c{k}" for k in range(50)])
    with pytest.raises(dlfm.InputError, match="and 30 more"):
        tables.check_columns(many, ["x" * 10_000], Path("d.csv"))


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        (["2026-01-01", "2026-01-02"], [0, 86400]),
        (["2026-01-01T00:00:01.5", "2026-01-01 00:00:02"], [0, 0.5]),
        (["2026-01-01T00:00:00Z", "2026-01-01T01:00:00+01:00"], [0, 0]),
        (["2026-03-29T00:00:00-05:00", "2026-03-29T00:00:10-05:00"], [0, 10]),
    ],
)
def test_dates_become_seconds(text: list[str], seconds: list[float]) -> None:
    x, origins = cells.inputs(frame_of(t=text), ["t"], Path("d.csv"), None)
    assert x["t"].tolist() == seconds
    later, same = cells.inputs(frame_of(t=text[1:]), ["t"], Path("d.csv"), origins)
    assert later["t"].tolist() == seconds[1:]
    assert same == origins


@pytest.mark.parametrize(
    ("column", "origins", "message"),
    [
        (["2026-01-01", "soon"], None, "numbers or ISO dates; got 'soon' in row 2"),
        (
            ["2026-01-01T00:00Z", "2026-01-01T00:00"],
            None,
            "have a time zone or none; got 1 of 2",
        ),
        ([1.0, 2.0], {"t": "2026-01-01T00:00:00"}, "must hold dates, as in the fit; got numbers"),
        (["2026-01-01"], {}, "must hold numbers, as in the fit; got dates"),
        (["2026-01-01"], {"t": "2026-01-01T00:00:00+00:00"}, "must have a time zone where those"),
        ([1.0, np.nan], None, "must be there in every row; got 1 empty, the first in row 2"),
    ],
)
def test_bad_inputs(column: Any, origins: Any, message: str) -> None:
    with pytest.raises(dlfm.InputError, match=message):
        cells.inputs(frame_of(t=column), ["t"], Path("d.csv"), origins)


def test_names_may_hold_commas() -> None:
    assert tables.names_of('a, b,"c,d"') == ["a", "b", "c,d"]
    assert tables.names_of("") == []


def test_no_cell_is_a_formula(tmp_path: Path) -> None:
    frame = pd.DataFrame({"=cmd()": ["+1", "@x", "-y", "plain"], "a": [-1.5, 2.0, 3.0, 4.0]})
    tables.write_table(frame, tmp_path / "out.csv")
    lines = (tmp_path / "out.csv").read_text().splitlines()
    assert lines == ["'=cmd(),a", "'+1,-1.5", "'@x,2.0", "'-y,3.0", "plain,4.0"]
