"""Tables without an order of their rows, on which the default for several inputs is judged.

    friedman: noise of standard deviation 1 (first function), of a tenth of the targets' (others)

Split k holds a tenth of the rows out, by the permutation of numpy's `default_rng(k)`; simulated
tables are drawn anew for each. Of the proteins the first 10 000 rows count: settings may be chosen
on the others.
"""

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from deeplfm.data.series import Table
from deeplfm.errors import InputError
from deeplfm.paper.datasets.registry import Folder, data_set
from deeplfm.paper.datasets.uci import uci

Values = NDArray[np.float64]

_PROTEINS = 10_000
_NOISE = 0.1  # of the standard deviation of targets


@final
@dataclass(frozen=True)
class Size:
    """Rows and inputs of a table, of which nine tenths are trained on."""

    rows: int
    inputs: int

    @property
    def training_rows(self) -> int:
        """Rows that are not held out."""
        return self.rows - self.rows // 10


SIZES = {
    "diabetes": Size(442, 10),
    "friedman1-300": Size(300, 10),
    "friedman1-2000": Size(2000, 10),
    "friedman2": Size(1000, 4),
    "friedman3": Size(1000, 4),
    "power": Size(9568, 4),
    "protein": Size(_PROTEINS, 9),
}


@data_set("tables", records=tuple(SIZES), tasks=("test",), seeds=3)
def table_record(record: str, seed: int, path: Folder) -> Table:
    """A table, of which a seed is a split, and for simulated ones a draw."""
    if record not in SIZES:
        raise InputError(f"record must be one of {sorted(SIZES)}; got {record!r}. Choose one.")
    x, y = _rows(record, seed, path)
    test = np.zeros((len(x), 1), dtype=bool)
    test[np.random.default_rng(seed).permutation(len(x))[: len(x) // 10]] = True
    names = tuple(f"x{k}" for k in range(x.shape[1]))
    return Table(x, y[:, None], ("y",), names, {"test": test})


def _rows(record: str, seed: int, path: Folder) -> tuple[Values, Values]:
    from sklearn import datasets

    rows = SIZES[record].rows
    if record == "diabetes":
        x, y = datasets.load_diabetes(return_X_y=True)
        return x, y
    if record.startswith("friedman1"):
        x, y = datasets.make_friedman1(rows, noise=1.0, random_state=seed)
        return x, y
    if record.startswith("friedman"):
        make = getattr(datasets, f"make_{record}")
        _, smooth = make(rows, noise=0.0, random_state=seed)
        x, y = make(rows, noise=_NOISE * smooth.std(), random_state=seed)
        return x, y
    table = uci(record, 0, path)  # type: ignore[arg-type]
    return table.inputs[:rows], table.values[:rows, 0]
