"""What comes beside a table: which series a row belongs to, and inputs that are known.

    panel = panel_of(ids);   panel.labels, panel.codes;   known_inputs(x, U, codes)

Labels are compared as text. Known inputs keep the rows that have no target.
"""

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from deeplfm.data.frames import as_table
from deeplfm.data.sizes import check_ranges
from deeplfm.errors import InputError

Values = NDArray[np.float64]
Codes = NDArray[np.int64]


@final
@dataclass(frozen=True, eq=False)
class Panel:
    """The series of every row: labels, and the number of its label for each of N rows."""

    labels: tuple[str, ...]
    codes: Codes

    def names(self) -> list[str]:
        """The label of every row."""
        return [self.labels[code] for code in self.codes.tolist()]


@final
@dataclass(frozen=True, eq=False)
class KnownInputs:
    """Values [n, C] of known inputs at times [n] of series [n], in the order of both."""

    names: tuple[str, ...]
    times: Values
    codes: Codes
    values: Values


def one_series(count: int) -> Panel:
    """All rows in one series."""
    return Panel(("",), np.zeros(count, dtype=np.int64))


def panel_of(series: Any, count: int, labels: tuple[str, ...] | None = None) -> Panel:
    """The series of `count` rows; with `labels` they must be among those."""
    if series is None:
        if labels is not None and len(labels) > 1:
            raise InputError(
                f"series must say which of {len(labels)} series each row belongs to, as in the "
                "fit; got None. Pass one id per row."
            )
        return Panel(labels or ("",), np.zeros(count, dtype=np.int64))
    if np.ma.getmaskarray(series).any() if isinstance(series, np.ma.MaskedArray) else False:
        raise InputError("series must be one id per row; got masked ones. Remove those rows.")
    given = np.asarray(series, dtype=object)
    if given.shape != (count,):
        raise InputError(
            f"series must be one id per row, [{count}]; got shape {given.shape}. "
            "Pass the column that names the series."
        )
    text = np.array([str(one) for one in given.tolist()], dtype=object)
    if labels is None:
        found, codes = np.unique(text.astype(str), return_inverse=True)
        return Panel(tuple(str(one) for one in found), codes.astype(np.int64))
    places = {label: number for number, label in enumerate(labels)}
    unknown = sorted({one for one in text.tolist() if one not in places})
    if unknown:
        raise InputError(
            f"series must be among the {len(labels)} of the fit; got {unknown[:5]}. "
            "Use `condition` for a new series."
        )
    return Panel(labels, np.array([places[one] for one in text.tolist()], dtype=np.int64))


def known_inputs(x: Values, known: Any, codes: Codes) -> KnownInputs:
    """Known inputs of every row, [N, C], at the times of the rows."""
    values, names = as_table("known", known, "u")
    if len(values) != len(x):
        raise InputError(
            f"known must have a row for each of {len(x)} times; got {len(values)}. "
            "Align it with X, row by row."
        )
    if not np.isfinite(values).all():
        raise InputError(
            f"known must be finite; got {int((~np.isfinite(values)).sum())} NaN or infinite "
            "entries. Fill them in: a known input has no gaps."
        )
    check_ranges(values, names)
    return joined(names, x, codes, values)


def joined(names: tuple[str, ...], times: Values, codes: Codes, values: Values) -> KnownInputs:
    """Rows in the order of series and time; repeated times must agree."""
    order = np.lexsort((times, codes))
    times, codes, values = times[order], codes[order], values[order]
    again = (np.diff(times) == 0) & (np.diff(codes) == 0)
    if (values[1:][again] != values[:-1][again]).any():
        where = float(times[1:][again][(values[1:] != values[:-1])[again].any(1)][0])
        raise InputError(
            f"known must have one value at a time; got different ones at {where:g}. "
            "Keep one of the rows."
        )
    keep = np.concatenate([[True], ~again])
    return KnownInputs(names, times[keep], codes[keep], values[keep])
