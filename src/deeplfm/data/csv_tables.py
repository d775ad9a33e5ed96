"""Tables in files: CSV and Parquet in and out, and the names of their columns.

Text that is written can never be read as a formula by a spreadsheet. Neighbours: `csv_text` reads
text, `columns` says what the cells mean.
"""

import csv
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deeplfm.data import csv_text, files
from deeplfm.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

_PARQUET, _TEXT = (".parquet", ".pq"), (".csv", ".txt")
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_SHOWN = 20  # names that an error lists
_NAMELESS = re.compile(r"|\s+|Unnamed: \d+|__index_level_\d+__")


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
            frame: pd.DataFrame = _with_pyarrow(lambda: _index_first(pd.read_parquet(path)))
        else:
            frame = csv_text.read_text(path, text)
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
    twice = sorted(set(frame.columns[frame.columns.duplicated()]))
    if twice:
        raise InputError(
            f"columns of {path} must have different names; got {shown(twice)} twice. Rename one."
        )
    return frame


def nameless(frame: "pd.DataFrame") -> list[str]:
    """Columns that have no name of their own, as an index that was saved with a table."""
    return [name for name in frame.columns if _NAMELESS.fullmatch(name)]


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
            chunk = _index_first(batch.to_pandas())
            chunk.index = pd.RangeIndex(first, first + len(chunk))
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
    try:
        names = next(csv.reader([option], skipinitialspace=True, strict=True), [])
    except csv.Error as why:
        raise InputError(
            f"names must be given by commas on one line; got {option!r} ({why}). "
            'Write a,b, or "a,b" in quotes for a name with a comma.'
        ) from None
    if not all(name.strip() for name in names) and option.strip():
        raise InputError(
            f"names must be given by commas; got an empty one in {option!r}. Write a,b."
        )
    return names


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


def shown(names: Any) -> str:
    """A list of names that fits on a line."""
    short = [name if len(name) <= 40 else f"{name[:37]}..." for name in map(str, names)]
    more = [f"and {len(short) - _SHOWN} more"] if len(short) > _SHOWN else []
    return ", ".join([repr(name) for name in short[:_SHOWN]] + more)


def _index_first(frame: "pd.DataFrame") -> "pd.DataFrame":
    """The table with an index that was saved as its first columns; names are text."""
    import pandas as pd

    if not isinstance(frame.index, pd.RangeIndex):
        own = [f"__index_level_{k}__" for k in range(frame.index.nlevels)]
        named = zip(frame.index.names, own, strict=True)
        frame.index.names = [other if name is None else name for name, other in named]
        frame = frame.reset_index()
    frame.columns = frame.columns.astype(str)
    return frame


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


def _with_pyarrow(action: Any) -> Any:
    try:
        return action()
    except ImportError:
        raise InputError(
            "Parquet needs the package pyarrow; it is not installed. "
            "Run pip install 'deeplfm[parquet]', or use CSV."
        ) from None
