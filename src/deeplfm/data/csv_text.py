"""CSV text: the separator, the header, the fields of every row; what does not fit is told.

    frame = read_text(path);   row 1 is the first below the header, blank lines do not count

pandas reads the text; what it would guess in silence (an index, names that come twice, a header
that is none) is refused here, with the row.
"""

import csv
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from deeplfm.errors import DataWarning, InputError

if TYPE_CHECKING:
    import pandas as pd

_START = 65536  # bytes in which the header ends


def read_text(path: Path, text: Sequence[str] = ()) -> "pd.DataFrame":
    """The table in a CSV file; columns of `text` are kept as they are written."""
    import pandas as pd

    separator = _separator(path)
    names = _names(path, separator)

    def read(decimal: str) -> "pd.DataFrame":
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)  # of fields that would be lost
            warnings.simplefilter("ignore", pd.errors.DtypeWarning)  # of text among numbers
            return pd.read_csv(
                path,
                sep=separator,
                decimal=decimal,
                encoding="utf-8-sig",
                skipinitialspace=True,
                index_col=False,
                dtype=dict.fromkeys(text, str),
            )

    try:
        frame = read(".")
    except (pd.errors.ParserError, pd.errors.ParserWarning) as why:
        _check_lengths(path, separator, len(names), told=False)
        raise InputError(
            f"{path} must be a table in CSV; it cannot be read ({str(why).splitlines()[0]}). "
            "Save it again."
        ) from None
    if len(frame) and frame.iloc[:, -1].isna().any():
        _check_lengths(path, separator, len(names))
    if separator == ";" and any(is_text(frame[name]) for name in frame.columns):
        other = read(",")  # where commas are free they are often the decimal point
        texts = [sum(is_text(one[name]) for name in one.columns) for one in (frame, other)]
        if texts[1] < texts[0]:
            return other
    return frame


def is_text(column: "pd.Series[float]") -> bool:
    """Whether a column holds something else than numbers, times and truth values."""
    return column.dtype.kind not in "biufcmM"


def _separator(path: Path) -> str:
    """The one of comma, semicolon and tab that the header has most of."""
    with path.open("rb") as stream:
        start = stream.read(_START)
    if not start.strip():
        raise InputError(f"{path} must have a header and rows; it is empty. Check the file.")
    if b"\0" in start:
        raise InputError(f"{path} must be CSV text; it is binary. Save the table as CSV.")
    header = start.lstrip(b"\r\n").splitlines()[0]
    return max([",", ";", "\t"], key=lambda one: header.count(one.encode()))


def _rows(path: Path, separator: str) -> Iterator[list[str]]:
    """The fields of every line that is not blank, the header first."""
    with path.open(encoding="utf-8-sig", newline="") as stream:
        for row in csv.reader(stream, delimiter=separator, skipinitialspace=True):
            if row and (len(row) > 1 or row[0].strip()):
                yield row


def _names(path: Path, separator: str) -> list[str]:
    """The names in the header; they must be names, and differ."""
    try:
        names = [name.strip() for name in next(_rows(path, separator), [])]
    except csv.Error as why:
        raise InputError(
            f"{path} must be a table in CSV; its header cannot be read ({why}). Save it again."
        ) from None
    twice = sorted({name for name in names if name and names.count(name) > 1})
    if twice:
        raise InputError(
            f"columns of {path} must have different names; got {', '.join(map(repr, twice[:5]))} "
            "twice. Rename one of them in its header."
        )
    numbered = [str(k) for k in range(len(names))]  # a table whose columns have no names
    if any(names) and all(_is_number(name) for name in names) and names != numbered:
        raise InputError(
            f"{path} must begin with a line of names; got the numbers {', '.join(names[:5])}. "
            "Add a header, such as t,a."
        )
    return names


def _is_number(name: str) -> bool:
    try:
        float(name.replace(",", "."))
    except ValueError:
        return False
    return True


def _check_lengths(path: Path, separator: str, width: int, told: bool = True) -> None:
    """No row has more fields than there are names; the first that has fewer is told."""
    short = None
    try:
        for number, row in enumerate(_rows(path, separator)):
            extra = row[width:]
            if any(field.strip() for field in extra):
                raise InputError(
                    f"every row of {path} must have {width} fields, as its header has; got "
                    f"{len(row)} in row {number}. Correct the row, or write text with separators "
                    "in quotes."
                )
            if len(row) < width and short is None:
                short = number, len(row)
    except csv.Error:
        return  # what pandas says of it comes instead
    if told and short is not None:
        warnings.warn(
            f"Row {short[0]} of {path} has {short[1]} fields, its header {width}: what is missing "
            "at the end of a row was taken for not observed.",
            DataWarning,
            stacklevel=2,
        )
