"""Names of columns as a page may show them: short, on one line, no two alike.

A name is whatever a file had in its header. What is shown here is still only text: `markup` and
`charts` escape it for where it goes.
"""

import unicodedata
from collections.abc import Sequence

LONGEST = 60  # characters of a name that are shown

_DIRECTION = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def short(name: str, longest: int = LONGEST) -> str:
    """`name` on one line, cut in its middle: the end of a long name often tells more."""
    line = " ".join("".join(_visible(letter) for letter in name).split())
    if not line:
        return "(no name)"
    if len(line) <= longest:
        return line
    return f"{line[: longest - longest // 3 - 1]}…{line[-(longest // 3) :]}"


def distinct(names: Sequence[str], taken: Sequence[str] = (), longest: int = LONGEST) -> list[str]:
    """All of them shown, numbered where two would look the same."""
    found: list[str] = []
    used = set(taken)
    for name in names:
        first = candidate = short(name, longest)
        count = 2
        while candidate in used:
            candidate = f"{first} ({count})"
            count += 1
        used.add(candidate)
        found.append(candidate)
    return found


def _visible(letter: str) -> str:
    if letter in _DIRECTION:  # they would turn the text around them as well
        return ""
    kind = unicodedata.category(letter)
    if kind == "Cs":  # half of a pair: cannot be written as UTF-8
        return "\ufffd"
    return " " if kind in ("Cc", "Zl", "Zp") else letter
