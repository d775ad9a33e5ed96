"""Numbers, durations, settings and the learnt physics in plain words."""

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from deeplfm.errors import InputError
from deeplfm.regressor.learnt import Response
from deeplfm.regressor.settings import to_json

DASH = "–"
Amount = Callable[[float], str]

# From which duration on a unit is used, its length in seconds, its name.
_UNITS = (
    (730 * 86400.0, 365.25 * 86400.0, "years"),
    (2 * 86400.0, 86400.0, "days"),
    (7200.0, 3600.0, "hours"),
    (120.0, 60.0, "minutes"),
    (1.0, 1.0, "seconds"),
    (1e-3, 1e-3, "milliseconds"),
    (0.0, 1e-6, "microseconds"),
)
_LONGEST = 200  # characters of a setting


def number(value: float) -> str:
    """Three or four digits; a dash for what is not defined."""
    if math.isnan(value):
        return DASH
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    return f"{value:.4g}".replace("e+0", "e").replace("e-0", "e-").replace("e+", "e")


def percent(share: float) -> str:
    """A share as percentage."""
    return DASH if math.isnan(share) else f"{100 * share:.1f} %"


def duration_unit(seconds: float) -> tuple[float, str]:
    """The unit people would use for such a duration: its length in seconds, and its name."""
    size = abs(seconds) if seconds else 1.0
    return next((length, name) for least, length, name in _UNITS if size >= least)


def duration(seconds: float) -> str:
    """3.2 days."""
    if not math.isfinite(seconds):
        return number(seconds)
    length, name = duration_unit(seconds)
    written = f"{seconds / length:.3g}"
    if "e" in written:
        written = number(seconds / length)
    return f"{written} {name.removesuffix('s') if written == '1' else name}"


def sentence(response: Response, amount: Amount) -> str:
    """One response in words; `amount` writes a distance along its input."""
    if math.isinf(response.lengthscale):
        return response.in_words(amount)
    force = f"The force behind it varies over {amount(response.lengthscale)}."
    return f"{response.in_words(amount)} {force}"


def settings(config: Any) -> list[tuple[str, str]]:
    """The fields of frozen settings and their values."""
    if not dataclasses.is_dataclass(config):
        return [("settings", _cut(repr(config)))]
    return [
        (field.name, _setting(getattr(config, field.name))) for field in dataclasses.fields(config)
    ]


def _setting(value: Any) -> str:
    try:
        return _cut(_written(to_json(value)))
    except InputError:  # a part of the user's own
        return _cut(" ".join(repr(value).split()))


def _written(value: Any) -> str:
    """Settings as one would type them."""
    if isinstance(value, float):
        return number(value)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return f"[{', '.join(map(_written, value))}]" if value else "none"
    if value is None or isinstance(value, bool):
        return "not set" if value is None else "yes" if value else "no"
    if not isinstance(value, Mapping):
        return str(value)
    if "tensor" in value:
        return _written(value["tensor"])
    if "set" in value:
        return _written(value["set"])
    if "mapping" in value:
        pairs = (f"{key}: {_written(item)}" for key, item in value["mapping"].items())
        return ", ".join(pairs) or "none"
    arguments = (f"{key}={_written(item)}" for key, item in value.items() if key != "type")
    return f"{value['type']}({', '.join(arguments)})"


def _cut(written: str) -> str:
    return written if len(written) <= _LONGEST else f"{written[: _LONGEST - 1]}…"
