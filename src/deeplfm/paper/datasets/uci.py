"""Two tables of the UCI repository: a power plant's output, and the structure of proteins.

There are ten random splits into nine tenths for training and one tenth for the test; split k is the
permutation of numpy's `default_rng(k)`. Inputs and values are in the units of the files.
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
from deeplfm.paper.datasets.registry import Folder, data_set

Name: TypeAlias = Literal["power", "protein"]

_SPLITS = 10


@final
@dataclass(frozen=True)
class _File:
    """A file as it must be: its rows, its columns with the target last, its SHA-256."""

    rows: int
    columns: tuple[str, ...]
    sha256: str
    page: str

    @property
    def form(self) -> str:
        """The form of the file in words, for errors."""
        return (
            f"{self.rows} lines of {len(self.columns)} numbers with blanks or tabs between them "
            f"({' '.join(self.columns)}), without a heading"
        )


_TABLES = {
    "power": _File(
        9568,
        ("AT", "V", "AP", "RH", "PE"),
        "daebd20c408dfc5c4979604f240e891be162c3a5d00d662380aa669044a1fb31",
        "https://archive.ics.uci.edu/dataset/294/combined+cycle+power+plant",
    ),
    "protein": _File(
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
    nothing is downloaded: the error says which file to put where. A file with other bytes than
    the one known here gives a warning: its rows, and so its splits, may be others.
    """
    if name not in _TABLES:
        raise InputError(f"name must be one of {sorted(_TABLES)}; got {name!r}. Choose one.")
    if isinstance(split, bool) or split not in range(_SPLITS):
        raise InputError(
            f"split must be an integer from 0 to {_SPLITS - 1}; got {split!r}. Choose one of them."
        )
    expected = _TABLES[name]
    source = Source(expected.page, form=f", as {expected.form}")
    file = locate(f"uci/{name}.txt", path, source=source)
    content = file.read_bytes()
    try:
        rows = np.loadtxt(io.BytesIO(content), ndmin=2)
        got = f"{rows.shape[0]} lines of {rows.shape[1]} numbers"
    except ValueError as error:
        rows, got = np.empty((0, 0)), f"a line that is not ({str(error).splitlines()[0]})"
    if rows.shape != (expected.rows, len(expected.columns)) or not np.isfinite(rows).all():
        raise InputError(
            f"{file} must hold {expected.form}, all of them finite; got {got}. Make it again from "
            f"{expected.page}."
        )
    if hashlib.sha256(content).hexdigest() != expected.sha256:
        warnings.warn(
            f"{file} is not byte for byte the file known here (SHA-256 {expected.sha256[:12]}…): "
            "if its rows are in another order, its splits and scores are others too.",
            stacklevel=2,
        )
    order = np.random.default_rng(split).permutation(expected.rows)
    test = np.zeros((expected.rows, 1), dtype=bool)
    test[order[: expected.rows // 10]] = True
    *input_names, target_name = expected.columns
    return Table(rows[:, :-1], rows[:, -1:], (target_name,), tuple(input_names), {"test": test})


@data_set("uci", records=tuple(_TABLES), kinds=("table",), tasks=("test",), seeds=3)
def uci_record(record: str, seed: int, path: Folder) -> Table:
    """A table, of which a seed is a split."""
    return uci(record, seed, path)  # type: ignore[arg-type]
