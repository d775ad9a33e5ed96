"""Tables in files: CSV and Parquet in and out, dates as seconds, columns by name.

Every error names the file, the column and the row. Text that is written can never be read as a
formula by a spreadsheet.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deeplfm.data import files
from deeplfm.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

_PARQUET, _TEXT = (".parquet", ".pq"), (".csv", ".txt")
_ZONE = r":.*(?:Z|[+-]\d\d(?::?\d\d)?)$"  # after a time: the end of a plain date looks like one
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_SHOWN = 20  # names that an error lists


def read_table(path: Path, text: Sequence[str] = ()) -> "pd.DataFrame":
    """A CSV (commas, semicolons or tabs) or Parquet file with named columns.

    Columns of `text` are kept as they are written, whatever they look like.
    """
    import pandas as pd

    if not path.is_file():
        found = "a folder" if path.is_dir() else "nothing"
        raise InputError(f"{path} must be a CSV or Parquet file; got {found}. Check the path.")
    try:
        if path.suffix.lower() in _PARQUET:
            frame: pd.DataFrame = _with_pyarrow(lambda: pd.read_parquet(path))
        else:
            frame = _read_text(path, text)
    except (UnicodeDecodeError, pd.errors.ParserError, pd.errors.EmptyDataError, ValueError) as why:
        if isinstance(why, InputError):
            raise
        reason = str(why).splitlines()[0] if str(why) else type(why).__name__
        raise InputError(
            f"{path} must be a table in CSV or Parquet; it cannot be read ({reason}). "
            "Save it again as UTF-8 text with one header line."
        ) from None
    if frame.empty:
        raise InputError(f"{path} must have rows below its header; got none. Add data.")
    frame.columns = frame.columns.astype(str)
    return frame


def numbers_in(path: Path) -> int:
    """How many cells a Parquet file has, without reading it; 0 for what is none."""
    if path.suffix.lower() not in _PARQUET or not path.is_file():
        return 0
    found = _parquet(path).metadata
    return int(found.num_rows) * int(found.num_columns)


def read_chunks(
    path: Path, columns: Sequence[str] | None = None, size: int = 2**16
) -> "Iterator[pd.DataFrame]":
    """The rows of a Parquet file, so many at a time; their index counts the rows of the file."""
    import pandas as pd

    first = 0
    with _parquet(path) as source:
        for batch in source.iter_batches(size, columns=columns):
            chunk: pd.DataFrame = batch.to_pandas()
            chunk.index = pd.RangeIndex(first, first + len(chunk))
            chunk.columns = chunk.columns.astype(str)
            first += len(chunk)
            yield chunk


def write_table(frame: "pd.DataFrame", path: Path) -> None:
    """Write a table as Parquet or CSV, by the ending of the name; whole or not at all."""
    if path.suffix.lower() in _PARQUET:
        _with_pyarrow(
            lambda: files.write_whole(path, lambda part: frame.to_parquet(part, index=False))
        )
        return
    safe = frame.rename(columns=_harmless)
    for column in safe.columns[[safe[name].dtype.kind not in "biuf" for name in safe.columns]]:
        safe[column] = [_harmless(str(value)) for value in safe[column]]
    files.write_whole(path, lambda part: safe.to_csv(part, index=False, lineterminator="\n"))


def check_ending(path: Path) -> None:
    """The name says what is to be written."""
    if path.suffix.lower() not in (*_PARQUET, *_TEXT):
        known = ", ".join((*_TEXT, *_PARQUET))
        raise InputError(
            f"the file to write must end in one of {known}; got {path.name!r}. Rename it."
        )


def names_of(option: str) -> list[str]:
    """The names in `a,b,"c,d"`."""
    import csv

    return next(csv.reader([option], skipinitialspace=True), [])


def check_columns(frame: "pd.DataFrame", names: Sequence[str], path: Path) -> None:
    """All are there, once each, or an error says which are."""
    missing = [name for name in names if name not in frame.columns]
    if missing:
        raise InputError(
            f"{path} must have the columns {shown(names)}; it has {shown(frame.columns)}. "
            f"Correct {shown(missing)}."
        )
    twice = sorted({name for name in names if list(names).count(name) > 1})
    if twice:
        raise InputError(f"columns must be named once; got {shown(twice)} twice. Remove one.")


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
        if _is_text(frame[name]) or frame[name].dtype.kind == "M":
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


def shown(names: Any) -> str:
    """A list of names that fits on a line."""
    short = [name if len(name) <= 40 else f"{name[:37]}..." for name in map(str, names)]
    more = [f"and {len(short) - _SHOWN} more"] if len(short) > _SHOWN else []
    return ", ".join([repr(name) for name in short[:_SHOWN]] + more)


def _read_text(path: Path, text: Sequence[str]) -> "pd.DataFrame":
    import pandas as pd

    separator = _separator(path)

    def read(decimal: str) -> "pd.DataFrame":
        return pd.read_csv(
            path,
            sep=separator,
            decimal=decimal,
            encoding="utf-8-sig",
            skipinitialspace=True,
            dtype=dict.fromkeys(text, str),
        )

    frame = read(".")
    if separator == ";" and any(_is_text(frame[name]) for name in frame.columns):
        other = read(",")  # where commas are free they are often the decimal point
        texts = [sum(_is_text(one[name]) for name in one.columns) for one in (frame, other)]
        if texts[1] < texts[0]:
            return other
    return frame


def _separator(path: Path) -> str:
    """The one of comma, semicolon and tab that the header has most of."""
    with path.open("rb") as stream:
        start = stream.read(65536)
    if not start.strip():
        raise InputError(f"{path} must have a header and rows; it is empty. Check the file.")
    if b"\0" in start:
        raise InputError(f"{path} must be CSV text; it is binary. Save the table as CSV.")
    header = start.splitlines()[0]
    return max([",", ";", "\t"], key=lambda one: header.count(one.encode()))


def _is_text(column: "pd.Series[Any]") -> bool:
    return column.dtype.kind not in "biufcmM"


def _numbers(column: "pd.Series[Any]", path: Path, expected: str) -> "pd.Series[float]":
    import pandas as pd

    numbers = pd.to_numeric(column, errors="coerce").astype(float)
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


def _harmless(text: str) -> str:
    """The text, with an apostrophe before what a spreadsheet would run."""
    return f"'{text}" if text.startswith(_FORMULA) else text


def _parquet(path: Path) -> Any:
    def opened() -> Any:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile

        try:
            return ParquetFile(path, memory_map=False, pre_buffer=False)
        except ArrowException as error:
            raise InputError(
                f"{path} must be a table in Parquet; it cannot be read ({error}). Save it again."
            ) from None

    return _with_pyarrow(opened)


def _row(column: "pd.Series[Any]", wrong: "pd.Series[bool]") -> tuple[int, int]:
    """Where the first wrong value is: its place, and the row of the file, from 1."""
    import pandas as pd

    place = int(wrong.to_numpy().argmax())
    first = column.index.start if isinstance(column.index, pd.RangeIndex) else 0
    return place, first + place + 1


def _with_pyarrow(action: Any) -> Any:
    try:
        return action()
    except ImportError:
        raise InputError(
            "Parquet needs the package pyarrow; it is not installed. "
            "Run pip install 'deeplfm[parquet]', or use CSV."
        ) from None
