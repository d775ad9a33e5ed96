"""The report of an experiment: tables as Markdown and LaTeX, figures as PDF and PNG."""

from pathlib import Path

from deeplfm.data import files
from deeplfm.paper.experiments.figures import figures
from deeplfm.paper.experiments.table import Table
from deeplfm.paper.experiments.tables import tables
from deeplfm.plotting import save_figure

_LATEX = {"%": r"\%", "_": r"\_", "&": r"\&", "≈": r"$\approx$", "`": "'"}


def build(out: Path, experiment: str, data: Path | None = None) -> list[Path]:
    """Write all tables and figures that the results under `out` allow, and return their files."""
    written = []
    for table in tables(out, experiment):
        for suffix, text in (("md", markdown(table)), ("tex", latex(table))):
            written.append(out / "tables" / f"{table.name}.{suffix}")
            files.save_text(written[-1], text)
    for name, figure in figures(out, experiment, data).items():
        for suffix in ("pdf", "png"):
            written.append(out / "figures" / f"{name}.{suffix}")
            save_figure(figure, written[-1])
    return written


def markdown(table: Table) -> str:
    """A Markdown table under its caption."""
    lines = [table.headings, tuple("---" for _ in table.headings), *table.rows]
    drawn = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    return f"{table.caption}\n\n{drawn}\n"


def latex(table: Table) -> str:
    """A LaTeX table in the manner of the paper's; it needs the package booktabs."""
    head, *body = (
        " & ".join(_escaped(cell) for cell in row) + r" \\" for row in (table.headings, *table.rows)
    )
    columns = "l" + "c" * (len(table.headings) - 1)
    lines = [
        r"\begin{table}",
        r"  \centering",
        rf"  \caption{{{_escaped(table.caption)}}}",
        rf"  \label{{tab:{table.name}}}",
        rf"  \begin{{tabular}}{{{columns}}}",
        r"    \toprule",
        f"    {head}",
        r"    \midrule",
        *(f"    {row}" for row in body),
        r"    \bottomrule",
        r"  \end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return "".join(_LATEX.get(letter, letter) for letter in text)
