"""REPORT: one self-contained HTML page per fitted model, for people to look at.

    write_report(model, Path("run/report.html"))

Names and settings come from strangers' files: all text goes through `markup` on its way to the
page, and the page may fetch nothing.
"""

from deeplfm.report.page import write_report

__all__ = ["write_report"]
