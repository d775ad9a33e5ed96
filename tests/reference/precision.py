"""Adaptive precision: evaluate again with more digits until the digits asked for stand still."""

from collections.abc import Callable, Sequence
from typing import Any

import mpmath as mp

WORKING_DIGITS = 60
AGREED_DIGITS = 52
START_DIGITS = 70
MAXIMUM_DIGITS = 20_000
ZERO_AFTER = 6  # a value that shrinks like rounding noise this many times in a row is zero


def settle_all(evaluate: Callable[[], Sequence[Any]], start: int = START_DIGITS) -> list[Any]:
    """Evaluate at growing precision until every value agrees with the one before it.

    Each value is settled relative to its own modulus and comes back as a complex number of
    60 digits. Cancellation inside `evaluate` only costs time.
    """
    digits = start
    before: list[Any] | None = None
    shrunk: list[int] = []
    while digits <= MAXIMUM_DIGITS:
        with mp.workdps(digits):
            values = list(evaluate())
            if before is None:
                shrunk = [0] * len(values)
            else:
                noise = mp.mpf(10) ** (-digits / 8)
                settled = True
                for i, (old, new) in enumerate(zip(before, values, strict=True)):
                    shrunk[i] = shrunk[i] + 1 if abs(new) <= noise * abs(old) else 0
                    agrees = new != 0 and abs(new - old) <= mp.mpf(10) ** -AGREED_DIGITS * abs(new)
                    settled = settled and (agrees or shrunk[i] >= ZERO_AFTER)
                if settled:
                    return [
                        _rounded(mp.mpf(0) if shrunk[i] >= ZERO_AFTER else value)
                        for i, value in enumerate(values)
                    ]
            before = values
        digits += digits // 2
    raise ArithmeticError(f"no agreement below {MAXIMUM_DIGITS} digits")


def settle(evaluate: Callable[[], Any], start: int = START_DIGITS) -> Any:
    """The same for a single value."""
    return settle_all(lambda: [evaluate()], start)[0]


def _rounded(value: Any) -> Any:
    with mp.workdps(WORKING_DIGITS):
        return mp.mpc(value)


def number(value: Any) -> Any:
    """The mpmath number that is exactly the given float, complex or mpmath number."""
    return mp.mpmathify(value)


def is_zero_memory(memory: str) -> bool:
    """Whether the convolution starts at 0; anything but the two known names is an error."""
    if memory not in ("zero", "infinite"):
        raise ValueError(f"memory must be 'zero' or 'infinite', not {memory!r}")
    return memory == "zero"
