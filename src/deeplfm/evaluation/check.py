"""What a model found out about itself on blocks that were held out of its fit.

    model.check_;   model.check_.verdict;   model.check_.to_frame()

A table of scores beside plain rivals, a verdict in sentences, and by how much the spread of
predictions was changed for it. Words and numbers only: `judging` finds them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple, final

from deeplfm.evaluation.spread import Spread

if TYPE_CHECKING:
    import pandas as pd

MODEL = "this model"
KINDS = {
    "inside": "gaps in all outputs",
    "single": "gaps in one output",
    "end": "forecast of the last rows",
    "rows": "rows at random",
}
_NUMBERS = ("nmse", "mnll", "crps", "coverage")
_HEADINGS = ("held out", "by", "values", "NMSE", "MNLL", "CRPS", "90 % covers")


class CheckRow(NamedTuple):
    """Scores of the model or of a rival on one kind of block; None where one is not defined.

    Errors count in standard deviations of each output. A rival without a density has its mean
    absolute error as CRPS.
    """

    kind: str
    name: str
    values: int
    nmse: float
    mnll: float | None
    crps: float
    coverage: float | None


@final
@dataclass(frozen=True)
class Check:
    """The check of a fit: `rows` of scores, the `verdict`, `warnings`, and the `spread`.

    Args:
        rows: one per kind of block and model or rival.
        sentences: what was found, in words.
        warnings: what somebody must know before using the model; none of a fit that is fine.
        spread: by how much predictions are wider than the model alone would say.
        blocks: how many blocks were held out.

    Example:
        >>> print(Check(sentences=("Not checked: 12 rows are too few to hold some out.",)))
        Not checked: 12 rows are too few to hold some out.
    """

    rows: tuple[CheckRow, ...] = ()
    sentences: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    spread: Spread = field(default_factory=Spread)
    blocks: int = 0

    @classmethod
    def none(cls, why: str) -> "Check":
        """Say that nothing was checked, and `why`."""
        return cls(sentences=(f"Not checked: {why}",))

    @property
    def is_done(self) -> bool:
        """Whether something was held out and scored."""
        return bool(self.rows)

    @property
    def passed(self) -> bool:
        """Whether there is nothing to warn of."""
        return not self.warnings

    @property
    def verdict(self) -> str:
        """What was found, in sentences; those that warn come first."""
        return " ".join((*self.warnings, *self.sentences))

    def cells(self) -> list[tuple[str, ...]]:
        """The table as text, row by row, as `headings` name it."""
        found: list[tuple[str, ...]] = []
        for row in self.rows:
            numbers = (_short(row.nmse), _short(row.mnll), _short(row.crps))
            covers = "–" if row.coverage is None else f"{100 * row.coverage:.0f} %"
            found.append((KINDS[row.kind], row.name, f"{row.values:,}", *numbers, covers))
        return found

    @staticmethod
    def headings() -> Sequence[str]:
        """The heads of the columns of `cells`."""
        return _HEADINGS

    def to_frame(self) -> "pd.DataFrame":
        """Give the scores as a pandas table: kind, name, values, nmse, mnll, crps, coverage."""
        import pandas as pd

        frame = pd.DataFrame([row._asdict() for row in self.rows], columns=CheckRow._fields)
        return frame.astype(dict.fromkeys(_NUMBERS, float))

    def to_json(self) -> dict[str, Any]:
        """What a file keeps of it."""
        rows = [list(row) for row in self.rows]
        return asdict(self) | {"rows": rows}

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> "Check":
        """Read what `to_json` wrote."""
        return cls(
            rows=tuple(CheckRow(*row) for row in found["rows"]),
            sentences=tuple(found["sentences"]),
            warnings=tuple(found["warnings"]),
            spread=Spread(**found["spread"]),
            blocks=int(found["blocks"]),
        )

    def __str__(self) -> str:
        if not self.rows:
            return self.verdict
        table = [tuple(_HEADINGS), *self.cells()]
        widths = [max(len(row[k]) for row in table) for k in range(len(_HEADINGS))]
        lines = []
        for row in table:
            words = [cell.ljust(width) for cell, width in zip(row[:2], widths[:2], strict=True)]
            numbers = [cell.rjust(width) for cell, width in zip(row[2:], widths[2:], strict=True)]
            lines.append("  ".join((*words, *numbers)))
        return "\n".join([*lines, "", *self.warnings, *self.sentences])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{escape(cell)}</th>" for cell in _HEADINGS)
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>"
            for row in self.cells()
        )
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        said = "".join(f"<p><strong>{escape(one)}</strong></p>" for one in self.warnings)
        said += "".join(f"<p>{escape(one)}</p>" for one in self.sentences)
        return (table if self.rows else "") + said


def _short(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g}"
