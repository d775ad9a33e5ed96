"""A study: simulated sets whose truth is known, how a model is fitted to them, what is scored.

One set is one run and one JSON; a study makes its tables from them.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Generic, TypeVar

import numpy as np

from deeplfm.paper.experiments.table import Results, Table
from deeplfm.regressor.estimator import DeepLFMRegressor

Set = TypeVar("Set")

_DRAWS = 400  # of the physics, for the quantiles of its parameters
LEVELS = {"p05": 0.05, "p50": 0.5, "p95": 0.95}


class Study(ABC, Generic[Set]):
    """Sets of one or more simulated systems, each fitted by an estimator of its own."""

    sets = 30

    @abstractmethod
    def estimators(self) -> dict[str, DeepLFMRegressor]:
        """A new estimator for each system, by the name of the system."""

    @abstractmethod
    def load(self, system: str, seed: int) -> Set:
        """One set."""

    @abstractmethod
    def fit(self, estimator: Any, simulated: Set) -> None:
        """Fit an estimator to what a user would have of the set."""

    @abstractmethod
    def score(self, estimator: Any, simulated: Set) -> dict[str, Any]:
        """What is kept of a fit, as JSON."""

    @abstractmethod
    def tables(self, results: Results) -> list[Table]:
        """Tables of all results, of which there may be none."""


def parameters(estimator: DeepLFMRegressor, truth: Mapping[str, float]) -> dict[str, Any]:
    """The posterior of every parameter whose truth is known: median and 90 % interval."""
    drawn = estimator.posterior(_DRAWS)
    return {
        name: {"truth": value}
        | {key: float(np.quantile(drawn[name], level)) for key, level in LEVELS.items()}
        for name, value in truth.items()
    }


def parameter_rows(results: Results) -> list[tuple[str, ...]]:
    """One row per parameter, and one of all together: how often 90 % hold it, how far it is."""
    by_name: dict[str, list[tuple[bool, float]]] = {}
    for result in results:
        for name, found in result["metrics"]["parameters"].items():
            inside = found["p05"] <= found["truth"] <= found["p95"]
            error = found["p50"] / found["truth"] - 1
            by_name.setdefault(name, []).append((inside, error))
    rows = [_row(name, pairs) for name, pairs in by_name.items()]
    return [*rows, _row("all", [pair for pairs in by_name.values() for pair in pairs])]


PARAMETER_HEADINGS = ("parameter", "sets", "90 % covers", "median off by", "bias")


def _row(name: str, pairs: list[tuple[bool, float]]) -> tuple[str, ...]:
    inside, error = np.array(pairs).T
    return (
        name,
        str(len(pairs)),
        f"{inside.mean():.3f}",
        f"{np.abs(error).mean():.2%}",
        f"{error.mean():+.2%}",
    )
