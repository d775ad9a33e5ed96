"""The runs of the experiment `general`: our default and what a user has at hand, series by series.

Ours is as users have it, with its check. A rival is run where it makes sense: a season where a user
knows one, a ridge where other channels are seen in the gap, several outputs together where there
are several, the model that made the data where there is one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, final

from deeplfm.paper.datasets import general_series
from deeplfm.paper.datasets.general import RECORDS, SOURCES, parts_of

OURS = "dlfm-markov"
MAKER = "made-by"
_CYCLES = ("sunspots", "panel")  # whose period wanders, or differs by subject: no season
_OUTPUTS = {"macrodata": 12, "rbf": 2, "matern32": 2, "sales": 2}  # those that have several
_LAGS = 2  # of the ridge on other channels, on each side
_PROCESS = {"noise": general_series.PROCESS_NOISE, "correlation": general_series.CORRELATION}
_MADE_BY: dict[str, dict[str, Any]] = {
    "rbf": {"kernel": "rbf", "lengthscale": general_series.LENGTHSCALE["rbf"]} | _PROCESS,
    "matern32": {"kernel": "matern32", "lengthscale": general_series.LENGTHSCALE["matern32"]}
    | _PROCESS,
    "walk": {
        "kernel": "walk",
        "size": general_series.WALK_STEP,
        "noise": general_series.WALK_NOISE,
    },
}


@final
@dataclass(frozen=True)
class Fit:
    """One fit: a model with settings, a record and a seed; `panel` as in a source."""

    model: str
    record: str
    seed: int
    settings: Mapping[str, Any] = field(default_factory=dict)
    panel: bool = False


def general_fits() -> list[Fit]:
    """Every fit of the experiment, model by model within a record."""
    return [
        Fit(model, record, seed, settings, SOURCES[parts_of(record)[0]].panel)
        for record in RECORDS
        for model, settings in rivals(record).items()
        for seed in range(SOURCES[parts_of(record)[0]].seeds)
    ]


def rivals(record: str) -> dict[str, Mapping[str, Any]]:
    """The models that are run on a record with their settings, ours first."""
    name, kind, _ = parts_of(record)
    periods = SOURCES[name].periods
    chosen: dict[str, Mapping[str, Any]] = {OURS: {"check": True}, "interpolation": {}}
    if periods:
        chosen["seasonal-naive"] = {"period": int(periods[0])}
    chosen["best-gp"] = {"period": float(periods[0])} if periods else {}
    cycle = name in _CYCLES
    chosen["structural"] = {"periods": () if cycle else periods, "cycle": cycle}
    if name in _OUTPUTS:
        chosen["vector"] = {}
        if kind == "gap":
            chosen["lag-ridge"] = {"lags": _LAGS}
    if name in _MADE_BY:
        chosen[MAKER] = _MADE_BY[name]
    return chosen
