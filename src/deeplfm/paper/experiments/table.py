"""A table as data: what builds one is beside, and what writes it as text is above."""

from dataclasses import dataclass
from typing import Any, TypeAlias, final

Row: TypeAlias = tuple[str, ...]
Results: TypeAlias = list[dict[str, Any]]  # the JSONs of runs


@final
@dataclass(frozen=True)
class Table:
    """A table to be written: headings, rows, and what it shows in a sentence."""

    name: str
    caption: str
    headings: Row
    rows: list[Row]
