"""Small fitted models, and their pages taken apart, for the tests of reports."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import deeplfm as dlfm
from deeplfm.data import Dataset

HOSTILE = [
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(1)>",
    "=cmd()|' /C calc'!A0",
    "../../x\u202e\u2028\ud800",
    "w" * 10_000,
    "🫀 \"quoted' & <b>bold</b> %{y} $x$",
]

X: NDArray[np.float64] = np.linspace(0, 8, 120)


def outputs(count: int) -> NDArray[np.float64]:
    """Waves with noise and a gap each."""
    random = np.random.default_rng(0)
    y = np.stack([10 * k + np.sin(2 * X + k) for k in range(count)], axis=1)
    y += 0.1 * random.standard_normal(y.shape)
    for k in range(count):
        y[20 + 5 * k : 45 + 5 * k, k] = np.nan
    return y


def fitted(X: Any, y: Any, recipe: Any = None, **training: Any) -> dlfm.DeepLFMRegressor:
    chosen = recipe or dlfm.FourierDLFM(num_features=10, hidden_dim=2)
    schedule = dlfm.Training(**({"steps": 5, "num_samples": 2} | training))
    model = dlfm.DeepLFMRegressor(chosen, schedule, device="cpu", progress=False)
    return model.fit(X, y)


def series(names: list[str]) -> dlfm.DeepLFMRegressor:
    """A model of one input with these outputs; the input is called as the first of them.

    It is named after the fit: pandas refuses some names that a saved model may hold.
    """
    model = fitted(X, outputs(len(names)))
    known: dict[str, Any] = {"input_names": (names[0],), "output_names": tuple(names)}
    data = model.fitted_.data
    named = None if data is None else replace(data, **known)
    return model.with_fitted(replace(model.fitted_, data=named, **known), flat=False)


def held_out(model: dlfm.DeepLFMRegressor) -> Dataset:
    """Later values of the same outputs."""
    later = X[::6] + 4.1
    y = np.stack([10 * k + np.sin(2 * later + k) for k in range(model.n_outputs_)], axis=1)
    return Dataset(later[:, None], y, model.fitted_.input_names, model.fitted_.output_names)


class Page(HTMLParser):
    """What a browser would see: tags with attributes, text outside scripts, and the data."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.scripts: list[str] = []
        self._inside = ""
        self.source = path.read_text(encoding="utf-8")
        self.feed(self.source)
        self.close()
        (block,) = re.findall(
            r'<script type="application/json" id="data">(.*?)</script>', self.source, re.DOTALL
        )
        self.block: str = block
        self.data: dict[str, Any] = json.loads(block, parse_constant=refuse)
        self.figures: dict[str, Any] = {one["id"]: one for one in self.data["figures"]}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._inside = tag
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside == "script":
            self.scripts[-1] += data
        elif self._inside != "style":
            self.text += data + "\n"

    def kinds(self, figure: str) -> set[str]:
        """What is drawn in a chart."""
        return {trace.get("meta", trace["name"]) for trace in self.figures[figure]["data"]}


def refuse(constant: str) -> float:
    """NaN and infinities are no JSON."""
    raise ValueError(constant)
