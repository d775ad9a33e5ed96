"""Two tables of the UCI repository: a power plant's output, and the structure of proteins.

Ten random splits, nine tenths to train on and one to test; split k is the permutation of numpy's
`default_rng(k)`. Inputs and values are in their own units.
"""

import hashlib
import io
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias, final

import numpy as np

from deeplfm.data.series import Table
from deeplfm.errors import InputError
from deeplfm.paper.datasets.locate import Source, locate

Name: TypeAlias = Literal["power", "protein"]

_SPLITS = 10


@final
@dataclass(frozen=True)
class _Known:
    """What is known of a file: its rows, its columns with the target last, its SHA-256."""

    rows: int
    columns: tuple[str, ...]
    sha256: str
    page: str

    @property
    def form(self) -> str:
        return (
            f"{self.rows} lines of {len(self.columns)} numbers with blanks or tabs between them "
            f"({' '.join(self.columns)}), without a heading"
        )


_TABLES = {
    "power": _Known(
        9568,
        ("AT", "V", "AP", "RH", "PE"),
        "daebd20c408dfc5c4979604f240e891be162c3a5d00d662380aa669044a1fb31",
        "https://archive.ics.uci.edu/dataset/294/combined+cycle+power+plant",
    ),
    "protein": _Known(
        45730,
        (*(f"F{k}" for k in range(1, 10)), "RMSD"),
        "d35f332707e8a73f21e021039250a1e7b26e14f7dd826a0337ffa8e8e48b9727",
        "https://archive.ics.uci.edu/dataset/265/"
        "physicochemical+properties+of+protein+tertiary+structure",
    ),
}


def uci(name: Name, split: int, path: Path | str | None = None) -> Table:
    """The table `uci/<name>.txt` in `path`, $DEEPLFM_DATA or the cache; its test is "test".

    The archive holds the data in other forms (a spreadsheet, another order of columns), so that
    nothing is downloaded: the error says what to put where. A file with other bytes than the one
    known here may hold the same numbers, or other rows in other splits: it gives a warning.
    """
    if name not in _TABLES:
        raise InputError(f"name must be one of {sorted(_TABLES)}; got {name!r}. Choose one.")
    if isinstance(split, bool) or split not in range(_SPLITS):
        raise InputError(
            f"split must be an integer from 0 to {_SPLITS - 1}; got {split!r}. Choose one of them."
        )
    known = _TABLES[name]
    source = Source(known.page, form=f", as {known.form}")
    file = locate(f"uci/{name}.txt", path, source=source)
    content = file.read_bytes()
    try:
        rows = np.loadtxt(io.BytesIO(content), ndmin=2)
        got = f"{rows.shape[0]} lines of {rows.shape[1]} numbers"
    except ValueError as error:
        rows, got = np.empty((0, 0)), f"a line that is not ({str(error).splitlines()[0]})"
    if rows.shape != (known.rows, len(known.columns)) or not np.isfinite(rows).all():
        raise InputError(
            f"{file} must hold {known.form}, all of them finite; got {got}. Make it again from "
            f"{known.page}."
        )
    if hashlib.sha256(content).hexdigest() != known.sha256:
        warnings.warn(
            f"{file} is not byte for byte the file known here (SHA-256 {known.sha256[:12]}…): if "
            "its rows are in another order, its splits and scores are others too.",
            stacklevel=2,
        )
    order = np.random.default_rng(split).permutation(known.rows)
    test = np.zeros((known.rows, 1), dtype=bool)
    test[order[: known.rows // 10]] = True
    return Table(rows[:, :-1], rows[:, -1:], known.columns[-1:], known.columns[:-1], {"test": test})
