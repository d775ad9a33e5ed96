"""Physiological records: arterial pressure, ECG and intracranial pressure of real patients.

The first 1000 samples of a record, t in [0, 1]. Tests: "imputation", a gap of 150 samples in each
channel at its own place; "extrapolation", the last 25 samples of all. Values are standardised.
"""

from pathlib import Path

import numpy as np

from deeplfm.datasets.locate import locate
from deeplfm.datasets.series import Series
from deeplfm.errors import InputError

_POINTS, _TRAINED = 1000, 975
_GAPS = ((200, 350), (400, 550), (600, 750))


def physio(record: str, path: Path | str | None = None) -> Series:
    """Record `record`, from `physio/<record>.csv` in `path`, $DEEPLFM_DATA or the cache."""
    file = locate(f"physio/{record}.csv", path)
    with file.open(encoding="utf-8") as lines:
        names = tuple(next(lines).strip().split(","))
    values = np.loadtxt(file, delimiter=",", skiprows=1, ndmin=2)[:_POINTS]
    if values.shape != (_POINTS, len(_GAPS)):
        raise InputError(
            f"{file} must hold {_POINTS} rows of {len(_GAPS)} channels; got {values.shape}. "
            "Use another record."
        )
    imputation, extrapolation = np.zeros((2, *values.shape), dtype=bool)
    for channel, (start, stop) in enumerate(_GAPS):
        imputation[start:stop, channel] = True
    extrapolation[_TRAINED:] = True
    tests = {"imputation": imputation, "extrapolation": extrapolation}
    return Series(np.linspace(0, 1, _POINTS), values, names, tests)
