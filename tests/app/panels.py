"""A small panel with known inputs, and the command line in this process, for its tests."""

import sys
from collections.abc import Iterator

import numpy as np
import pandas as pd
import pytest

import deeplfm as dlfm
from deeplfm.app import cli

STEPS = ["--model", "markov", "--steps", "4", "--checkpoint-every", "2"]
COLUMNS = ["--series", "id", "--known", "u"]


@pytest.fixture(scope="module", autouse=True)
def small() -> Iterator[None]:
    """The recipe of the command line, with modes for a few rows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(cli._RECIPES, "markov", lambda: dlfm.MarkovDLFM(modes=2))
        yield


def panel(rows: int = 30) -> pd.DataFrame:
    """Two patients, 7 and 007, with a known input each and gaps."""
    parts = []
    for k, name in enumerate(("007", "7")):
        random = np.random.default_rng(k)
        t = np.arange(rows) * 0.25
        u = (t > 3).astype(float)
        y = np.sin(2 * t + k) + 0.5 * u + 0.05 * random.standard_normal(rows)
        parts.append(pd.DataFrame({"t": t, "id": name, "u": u, "a": y, "b": 2 - y}))
    found = pd.concat(parts, ignore_index=True)
    found.loc[5:9, "a"] = np.nan
    return found


def invoke(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    monkeypatch.setattr(sys, "argv", ["deeplfm", *map(str, arguments)])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    return int(stopped.value.code or 0)
