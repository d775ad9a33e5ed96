"""Series that come with statsmodels (the extra `general`): CO2, sunspots, sea, economy, the Nile.

Their values are as they are, levels included; times are years.
"""

from importlib import import_module
from typing import Any

import numpy as np

from deeplfm.data.series import Series
from deeplfm.errors import InputError

_CO2_MONTHS = 360


def co2() -> Series:
    """Monthly means of carbon dioxide over Mauna Loa, the last 30 years [360, 1]."""
    weekly = _frame("co2")["co2"]
    monthly = weekly.resample("MS").mean()[-_CO2_MONTHS:]
    return _series(monthly.to_numpy()[:, None], ("ppm",), monthly.index[0].year, 12)


def sunspots() -> Series:
    """Yearly sunspots since 1700 [309, 1]."""
    frame = _frame("sunspots")
    return _series(frame[["SUNACTIVITY"]].to_numpy(), ("sunspots",), frame["YEAR"].iloc[0], 1)


def elnino() -> Series:
    """Temperatures of the sea off Peru, the months of all years as one series [732, 1]."""
    frame = _frame("elnino")
    months = frame.drop(columns="YEAR").to_numpy().reshape(-1, 1)
    return _series(months, ("celsius",), frame["YEAR"].iloc[0], 12)


def macrodata() -> Series:
    """Twelve quarterly numbers of the economy of the United States [203, 12]."""
    frame = _frame("macrodata")
    outputs = frame.drop(columns=["year", "quarter"])
    return _series(outputs.to_numpy(), tuple(outputs.columns), frame["year"].iloc[0], 4)


def nile() -> Series:
    """The yearly volume of the Nile at Aswan, 1871 to 1970 [100, 1]."""
    frame = _frame("nile")
    return _series(frame[["volume"]].to_numpy(), ("volume",), frame["year"].iloc[0], 1)


def _series(values: Any, names: tuple[str, ...], first: float, per_year: int) -> Series:
    """Values [N, D] at regular times from the beginning of the first year."""
    times = float(first) + np.arange(len(values)) / per_year
    return Series(times, np.asarray(values, dtype=np.float64), names)


def _frame(name: str) -> Any:
    """The data set of statsmodels as a data frame."""
    try:
        module = import_module(f"statsmodels.datasets.{name}")
    except ImportError:
        raise InputError(
            f"statsmodels must be on this machine, for its data set {name!r}; it is not. "
            "Install it: pip install 'deeplfm[general]'."
        ) from None
    return module.load_pandas().data
