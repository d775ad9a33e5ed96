"""Physiological records: arterial pressure, ECG and intracranial pressure of real patients.

The first 1000 samples of a record, t in [0, 1], with standardised values. The test "imputation" is
a gap of 150 samples in each channel, at a place of its own; "extrapolation" is the last 25 samples.
"""

from itertools import cycle
from pathlib import Path

import numpy as np

from deeplfm.data.series import Series, Values
from deeplfm.errors import InputError
from deeplfm.paper.datasets.locate import locate
from deeplfm.paper.datasets.registry import Folder, data_set

RECORDS = (
    "3083337", "3555523", "3262086", "3269261", "3379471", "3460047", "3600995", "3646209",
)  # fmt: skip
POINTS = 1000
_TRAINED = 975
_GAPS = {"ABP": (200, 350), "ECG": (400, 550), "ICP": (600, 750)}


def physio(record: str, path: Path | str | None = None) -> Series:
    """The record in the file `physio/<record>.csv` of `path`, $DEEPLFM_DATA or the cache."""
    file = locate(f"physio/{record}.csv", path)
    with file.open(encoding="utf-8") as lines:
        names = tuple(next(lines).strip().split(","))
    values = np.loadtxt(file, delimiter=",", skiprows=1, ndmin=2)[:POINTS]
    if values.shape != (POINTS, len(_GAPS)):
        raise InputError(
            f"{file} must hold {POINTS} rows of {len(_GAPS)} channels; got {values.shape}. "
            "Use another record."
        )
    return with_tests(values, names)


@data_set("physio", records=RECORDS, kinds=("series", "grid"))
def physio_record(record: str, seed: int, path: Folder) -> Series:
    """A record, which is the same for every seed."""
    return physio(record, path)


def with_tests(values: Values, names: tuple[str, ...]) -> Series:
    """A series of values [1000, D] with both tests.

    The gaps of ABP, ECG and ICP follow their names, in any order; other channels take the gaps
    that are left.
    """
    left = cycle([gap for name, gap in _GAPS.items() if name not in names] or _GAPS.values())
    imputation, extrapolation = np.zeros((2, *values.shape), dtype=bool)
    for channel, name in enumerate(names):
        start, stop = _GAPS[name] if name in _GAPS else next(left)
        imputation[start:stop, channel] = True
    extrapolation[_TRAINED:] = True
    tests = {"imputation": imputation, "extrapolation": extrapolation}
    return Series(np.linspace(0, 1, POINTS), values, names, tests)
