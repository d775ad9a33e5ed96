"""The part of the page about the check: scores on held-out blocks beside plain rivals."""

from deeplfm.evaluation.check import Check
from deeplfm.report import markup
from deeplfm.report.sections import Part, part


def check(found: Check) -> Part:
    """The verdict, its warnings first, and the table."""
    html = [markup.paragraph(one, "warning") for one in found.warnings]
    if found.is_done:
        html.append(
            markup.paragraph(
                "Before the fit some blocks of the data were held out. This is how well the model "
                "predicted them, beside rivals that cost nothing."
            )
        )
        html.append(markup.bullets(found.sentences))
        caption = "Scores on held-out blocks: lower is better; coverage is best at 90 %"
        html.append(markup.table(found.headings(), found.cells(), caption, left=2))
        html.append(
            markup.paragraph(
                "NMSE: squared error over the variance of the output. MNLL: mean negative log "
                "density. CRPS: that of the prediction, or the mean absolute error of a rival "
                "without a density. Both count in standard deviations of the output.",
                "note",
            )
        )
    else:
        html += [markup.paragraph(one, "note") for one in found.sentences]
    return part("check", "How good the fit is", html)
