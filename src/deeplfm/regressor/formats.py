"""FORMATS: files of older versions, in the words of this one.

Format 1 had neither the data nor the settings of the estimator. Formats 1 and 2 had other names for
the ways in which steps are computed. Formats 1 to 3 had no manifest.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deeplfm.training.schedule import USED

Values = NDArray[np.float64]

FORMAT = 4
OLDEST_SEALED = 4  # the first format whose folders have a manifest

# A way to compute a step before format 3, in the order of its codes in histories: what a training
# that asks for it asks for today, and what a history says of a step that was computed so.
_WAYS = {
    "plain": ("plain", "plain"),
    "fused": ("auto", "torch"),
    "graph": ("auto", "graph"),
    "compile": ("plain", "plain"),
    "native": ("c", "c"),
}


def translated(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings of a file, whatever its format, as this version would have written them."""
    return settings if settings["format"] >= 3 else _with_todays_backend(settings)


def translated_history(history: dict[str, Values], written: int) -> dict[str, Values]:
    """A history of a file of format `written`, with the codes that this version has."""
    if written >= 3 or "backend" not in history:
        return history
    codes = np.array([USED.index(shown) for _, shown in _WAYS.values()], dtype=np.float64)
    return history | {"backend": codes[history["backend"].astype(int)]}


def _with_todays_backend(value: Any) -> Any:
    if isinstance(value, list):
        return [_with_todays_backend(item) for item in value]
    if not isinstance(value, dict):
        return value
    found = {key: _with_todays_backend(item) for key, item in value.items()}
    if found.get("type") == "Training" and found.get("backend") in _WAYS:
        found["backend"] = _WAYS[found["backend"]][0]
    return found
