"""What the command line prints: lines as they are, tables, what a fit found and how it did."""

from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from deeplfm.data import csv_tables as tables
from deeplfm.evaluation.check import Check

if TYPE_CHECKING:
    from deeplfm.paper.experiments import Table as ResultTable
    from deeplfm.regressor.base import Fitted


def line(text: str) -> None:
    """One line as it is: names of files are not to be wrapped, nor read as markup."""
    Console().print(printable(text), soft_wrap=True, markup=False, highlight=False)


def printable(text: str) -> str:
    """The text on one line, with what a terminal would obey, or cannot show, written out."""
    return "".join(one if one.isprintable() else ascii(one)[1:-1] for one in text)


def show_table(table: "ResultTable") -> None:
    """The table of an experiment."""
    shown = Table(title=Text(table.caption))
    for heading in table.headings:
        shown.add_column(heading)
    for row in table.rows:
        shown.add_row(*row)
    _wide().print(shown)


def show_fit(fitted: "Fitted") -> None:
    """One line per output: what was seen of it, and the noise that was found."""
    console = Console()
    shown = Table()
    noise = fitted.noise()
    for heading in ("output", "observed", "missing", *(f"noise: {name}" for name in noise)):
        shown.add_column(heading, justify="left" if heading == "output" else "right")
    if fitted.data is not None:
        for k, (name, seen) in enumerate(
            zip(fitted.output_names, fitted.data.observed.T, strict=True)
        ):
            counts = f"{seen.sum()}", f"{len(seen) - seen.sum()}"
            learnt = (f"{values[k]:.3g}" for values in noise.values())
            shown.add_row(Text(tables.shown([name])), *counts, *learnt)
    console.print(shown)
    history = fitted.histories[0]
    taken = len(history["loss"])
    last = f"{taken} steps in {history['seconds'][-1]:.0f} s, loss {history['loss'][-1]:.4g}"
    console.print(last)
    line(fitted.convergence)
    if (depth := getattr(fitted, "depth", None)) is not None:
        line(depth.sentence)


def show_check(check: Check) -> None:
    """The scores on held-out blocks, and what they mean."""
    if check.is_done:
        shown = Table(title="on blocks that were held out", title_justify="left")
        for k, heading in enumerate(check.headings()):
            shown.add_column(heading, justify="left" if k < 2 else "right")
        for row in check.cells():
            shown.add_row(*map(Text, row))
        _wide().print(shown)
    for one in check.warnings:
        line(f"WARNING: {one}")
    for one in check.sentences:
        line(one)


def _wide() -> Console:
    """Where nobody looks, lines may be as long as the table is wide."""
    return Console() if Console().is_terminal else Console(width=240)
