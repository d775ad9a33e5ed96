"""Columns of tables from files: numbers with gaps, inputs without, dates as seconds, ids.

    x, origins = inputs(frame, ["t"], path, None);   y = targets(frame, ["a"], path)

Every error names the file, the column and the row.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deeplfm.data.csv_tables import shown
from deeplfm.data.csv_text import is_text
from deeplfm.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

_ZONE = r":.*(?:Z|[+-]\d\d(?::?\d\d)?)$"  # after a time: the end of a plain date looks like one


def targets(frame: "pd.DataFrame", names: Sequence[str], path: Path) -> "pd.DataFrame":
    """Columns of numbers; an empty cell was not observed."""
    import pandas as pd

    return pd.DataFrame({name: _numbers(frame[name], path, "numbers") for name in names})


def labels(frame: "pd.DataFrame", name: str, path: Path) -> list[str]:
    """A column of ids without gaps, as text."""
    _check_no_gaps(frame[name], path, "id")
    return [str(value).strip() for value in frame[name]]


def inputs(
    frame: "pd.DataFrame", names: Sequence[str], path: Path, origins: Mapping[str, str] | None
) -> tuple["pd.DataFrame", dict[str, str]]:
    """Columns without gaps, dates as seconds after their origin; and the origin of each of those.

    Without `origins` the first date of a column is its origin.
    """
    import pandas as pd

    columns, found = {}, {}
    for name in names:
        _check_no_gaps(frame[name], path)
        known = None if origins is None else origins.get(name)
        if is_text(frame[name]) or frame[name].dtype.kind == "M":
            if origins is not None and known is None:
                raise InputError(
                    f"column {shown([name])} of {path} must hold numbers, as in the fit; got "
                    "dates or text. Convert it."
                )
            dates = _dates(frame[name], path)
            origin = dates.min() if known is None else pd.Timestamp(known)
            if (origin.tzinfo is None) != (dates.dt.tz is None):
                raise InputError(
                    f"dates in column {shown([name])} of {path} must have a time zone where those "
                    "of the fit had one, and none where they had none. Add or remove it."
                )
            columns[name], found[name] = (dates - origin).dt.total_seconds(), origin.isoformat()
        elif known is not None:
            raise InputError(
                f"column {shown([name])} of {path} must hold dates, as in the fit; got numbers. "
                "Write them as 2026-01-31T12:00:00."
            )
        else:
            columns[name] = _numbers(frame[name], path, "numbers or ISO dates")
    return pd.DataFrame(columns), found


def _numbers(column: "pd.Series[Any]", path: Path, expected: str) -> "pd.Series[float]":
    import pandas as pd

    if column.dtype.kind in "mMc":
        kind = {"m": "durations", "M": "dates", "c": "complex numbers"}[column.dtype.kind]
        raise InputError(
            f"column {shown([column.name])} of {path} must hold {expected}; got {kind}. "
            "Convert it, or choose another column."
        )
    # Categories are compared as what they hold.
    plain = column.astype(object) if column.dtype.kind == "O" else column
    numbers = pd.to_numeric(plain, errors="coerce").astype(float)
    wrong = numbers.isna() & column.notna()
    if wrong.any():
        place, row = _row(column, wrong)
        raise InputError(
            f"column {shown([column.name])} of {path} must hold {expected}; got "
            f"{shown([column.iloc[place]])} in row {row}. Correct it, or leave the cell empty."
        )
    return numbers


def _dates(column: "pd.Series[Any]", path: Path) -> "pd.Series[pd.Timestamp]":
    import pandas as pd

    if column.dtype.kind == "M":
        return column
    text = column.astype(str).str.strip()
    zoned = text.str.contains(_ZONE)
    dates = pd.to_datetime(text, format="ISO8601", utc=True, errors="coerce")
    wrong = dates.isna()
    if wrong.any():
        place, row = _row(column, wrong)
        raise InputError(
            f"column {shown([column.name])} of {path} must hold numbers or ISO dates; got "
            f"{shown([text.iloc[place]])} in row {row}. Write 2026-01-31T12:00:00, or a number."
        )
    if zoned.any() and not zoned.all():
        raise InputError(
            f"dates in column {shown([column.name])} of {path} must all have a time zone or none; "
            f"got {int(zoned.sum())} of {len(text)} with one. Add or remove it."
        )
    return dates if zoned.any() else dates.dt.tz_localize(None)


def _check_no_gaps(column: "pd.Series[Any]", path: Path, kind: str = "input") -> None:
    gaps = column.isna()
    if gaps.any():
        _, row = _row(column, gaps)
        raise InputError(
            f"{kind} {shown([column.name])} of {path} must be there in every row; got "
            f"{int(gaps.sum())} empty, the first in row {row}. Gaps belong in the outputs."
        )


def _row(column: "pd.Series[Any]", wrong: "pd.Series[bool]") -> tuple[int, int]:
    """Where the first wrong value is: its place, and the row of the file, from 1."""
    import pandas as pd

    place = int(wrong.to_numpy().argmax())
    first = column.index.start if isinstance(column.index, pd.RangeIndex) else 0
    return place, first + place + 1
