"""The demonstration: gaps in cardiac signals, filled by the default model, or by those asked for.

Arterial pressure, ECG and intracranial pressure (synthetic: nothing in them comes from a patient)
lose a stretch each. A model sees the rest, fills the gaps and is scored on them; it leaves its
folder, which `deeplfm predict` and `deeplfm report` open.
"""

import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from deeplfm.data import Series, cardiac, dataset
from deeplfm.errors import FitWarning
from deeplfm.evaluation import metrics
from deeplfm.evaluation.predictive import Predictive
from deeplfm.models import ModelSettings
from deeplfm.plotting import plot_predictions, save_figure
from deeplfm.regressor.estimator import DeepLFMRegressor
from deeplfm.report import write_report
from deeplfm.training import Training

FEWEST = 20  # points, of which something is in every gap


@dataclass(frozen=True)
class Score:
    """How a model filled the gap of a signal."""

    model: str
    signal: str
    nmse: float
    mnll: float
    coverage: float  # of the 90 % interval


@dataclass(frozen=True)
class Demonstration:
    """What the demonstration found, and where it is to be seen."""

    scores: tuple[Score, ...]
    pictures: tuple[Path, ...]
    reports: tuple[Path, ...]
    seconds: float


def demonstrate(
    out: Path,
    models: Mapping[str, ModelSettings | str],
    points: int,
    steps: int,
    seed: int,
    say: Callable[[str], None] = print,
) -> Demonstration:
    """Fit, score and draw into the folder `out`; what was there of an earlier one is replaced."""
    started = time.perf_counter()
    series = cardiac(points, seed=seed)
    x, y = pd.DataFrame({"t": series.times}), pd.DataFrame(series.training(), columns=series.names)
    held_out = dataset(x, pd.DataFrame(series.test("imputation"), columns=series.names))
    scores, pictures, reports = [], [], []
    for name, recipe in models.items():
        say(f"{name}: {points} points, {steps} steps …")
        model = DeepLFMRegressor(recipe, Training(steps=steps), seed=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FitWarning)  # said below, with the rest of the check
            model.fit(x, y)
        say(f"{name}, {type(model.fitted_.recipe).__name__}: what it found on blocks it held out:")
        for sentence in (*model.check_.warnings, *model.check_.sentences):
            say(f"  {sentence}")
        found = model.predictive(x)
        scores += _scores(name, series, found)
        model.save(out / name)
        pictures.append(_picture(series, found, out / f"{name}.png"))
        reports.append(out / name / "report.html")
        write_report(model, reports[-1], held_out=held_out)
    elapsed = time.perf_counter() - started
    return Demonstration(tuple(scores), tuple(pictures), tuple(reports), elapsed)


def _scores(model: str, series: Series, found: Predictive) -> list[Score]:
    hidden = series.test("imputation")
    columns = (
        metrics.nmse(hidden, found.mean),
        metrics.mnll(hidden, found),
        metrics.coverage(hidden, found, 0.9),
    )
    return [
        Score(model, name, *(float(column[k]) for column in columns))
        for k, name in enumerate(series.names)
    ]


def _picture(series: Series, found: Predictive, path: Path) -> Path:
    """The stretch that holds all gaps."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 6), layout="constrained")
    axes = figure.subplots(len(series.names), 1, sharex=True)
    plot_predictions(
        found,
        series.times,
        observed=series.training(),
        held_out=series.test("imputation"),
        axes=axes,
    )
    rows = np.flatnonzero(series.tests["imputation"].any(axis=1))
    margin = 0.05 * (rows[-1] - rows[0])
    low, high = max(0, int(rows[0] - margin)), min(len(series.times) - 1, int(rows[-1] + margin))
    axes[0].set_xlim(series.times[low], series.times[high])
    axes[-1].set_xlabel("time (s)")
    save_figure(figure, path)
    return path
