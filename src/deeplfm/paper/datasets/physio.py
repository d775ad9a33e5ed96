"""Physiological records: arterial pressure, ECG and intracranial pressure of real patients.

The first 1000 samples of a record, t in [0, 1]. Tests: "imputation", a gap of 150 samples in each
channel at its own place; "extrapolation", the last 25 samples of all. Values are standardised.
"""

from itertools import cycle
from pathlib import Path

import numpy as np

from deeplfm.data.series import Series, Values
from deeplfm.errors import InputError
from deeplfm.paper.datasets.locate import locate

POINTS = 1000
_TRAINED = 975
_GAPS = {"ABP": (200, 350), "ECG": (400, 550), "ICP": (600, 750)}


def physio(record: str, path: Path | str | None = None) -> Series:
    """Record `record`, from `physio/<record>.csv` in `path`, $DEEPLFM_DATA or the cache."""
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


def with_tests(values: Values, names: tuple[str, ...]) -> Series:
    """A series of values [1000, D] with both tests.

    ABP, ECG and ICP have their gaps by name, in any order; other channels take those that are free.
    """
    free = cycle([gap for name, gap in _GAPS.items() if name not in names] or _GAPS.values())
    imputation, extrapolation = np.zeros((2, *values.shape), dtype=bool)
    for channel, name in enumerate(names):
        start, stop = _GAPS[name] if name in _GAPS else next(free)
        imputation[start:stop, channel] = True
    extrapolation[_TRAINED:] = True
    tests = {"imputation": imputation, "extrapolation": extrapolation}
    return Series(np.linspace(0, 1, POINTS), values, names, tests)
