"""The page: sections in order, one file that asks nobody for anything.

The scripts carry a nonce and the policy of the page allows no other, and no address at all.
"""

import secrets
from importlib.resources import files as resources
from pathlib import Path
from string import Template
from typing import Any

import pandas as pd

from deeplfm.data import Dataset, files
from deeplfm.errors import InputError
from deeplfm.regressor.base import Fitted
from deeplfm.regressor.estimator import DeepLFMRegressor
from deeplfm.regressor.markov import FittedMarkov
from deeplfm.report import checks, findings, sections
from deeplfm.report.charts import Axis
from deeplfm.report.markup import Html, element, json_block, text
from deeplfm.report.predictions import gather

_PAGE = Template("""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; \
script-src 'nonce-$nonce'; style-src 'unsafe-inline'; img-src data: blob:; \
base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>$title</title>
<link rel="icon" href="data:,">
<style>
$css
</style>
</head>
<body>
$body
$data
<script nonce="$nonce">
$plotly
</script>
<script nonce="$nonce">
$js
</script>
</body>
</html>
""")


def write_report(
    model: DeepLFMRegressor,
    path: Path,
    *,
    origin: pd.Timestamp | None = None,
    held_out: Dataset | None = None,
    folder: Path | None = None,
) -> None:
    """Write the page of a fitted model to `path`, whole or not at all.

    origin:   the single input counts seconds from this time stamp: axes show dates.
    held_out: observations that were not fitted, with the same columns: drawn, and scored.
    folder:   where the model is saved; by default that of the page.
    """
    from plotly.offline import get_plotlyjs

    if origin is not None and len(model.fitted_.input_names) != 1:
        raise InputError(
            f"origin must be None for {len(model.fitted_.input_names)} inputs; got {origin}. "
            "Only a single input can be a time with a date."
        )
    shown = gather(model, held_out)
    axis = Axis(shown.fitted.input_names[0], origin)
    parts = [
        sections.fitted(shown, axis),
        sections.predictions(shown, axis),
        findings.physics(shown, axis),
        checks.check(model.check_),
        findings.calibration(shown),
        findings.learning(model),
        sections.reload(path.resolve().parent if folder is None else folder, origin, shown.data),
    ]
    title = "deeplfm report"
    shared = {} if shown.grid is None else {"grid": axis.values(shown.grid.x)}
    if shown.forces is not None:
        shared["forces"] = axis.values(shown.forces.curves.x)
    data: dict[str, Any] = {
        "shared": shared,
        "figures": [chart for part in parts for chart in part.figures],
    }
    page = _PAGE.substitute(
        nonce=secrets.token_hex(16),
        title=text(title),
        css=_resource("page.css"),
        body=_body(title, shown.fitted, parts),
        data=json_block("data", data),
        plotly=_inside_script(get_plotlyjs()),
        js=_inside_script(_resource("page.js")),
    )
    files.save_text(Path(path), page)


def _body(title: str, fitted: Fitted, parts: list[sections.Part]) -> Html:
    kind = "state-space" if isinstance(fitted, FittedMarkov) else "deep"
    lead = f"A {kind} latent force model of {sections.listed(fitted.output_names)}"
    links = [element("a", text(part.title), href=f"#{part.identity}") for part in parts]
    header = element(
        "header",
        element("h1", text(title)),
        element("p", text(lead), class_="lead"),
        element("nav", *links, aria_label="Parts of the page"),
    )
    noscript = element("noscript", element("p", text("The charts need JavaScript.")))
    return Html(header + element("main", noscript, *(part.html for part in parts)))


def _resource(name: str) -> str:
    return resources("deeplfm.report").joinpath(name).read_text(encoding="utf-8")


def _inside_script(source: str) -> str:
    """Nothing in a script may look like its end."""
    return source.replace("</script", "<\\/script").replace("<!--", "<\\!--")
