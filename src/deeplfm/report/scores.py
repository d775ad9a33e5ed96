"""How well a prediction is calibrated and how close it is, per output and pooled.

    PIT = P(Y ≤ y), uniform if calibrated;   y is in the central interval p where |2 PIT - 1| ≤ p

For counts the PIT is a random point of the step that P(Y ≤ y) makes at y.
Outputs that nothing was observed of, or that are constant, have scores that are not defined: NaN.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from deeplfm.evaluation import metrics
from deeplfm.evaluation.predictive import Predictive
from deeplfm.report.predictions import evenly

Values = NDArray[np.float64]

LEVELS = np.array([*np.arange(0.1, 0.95, 0.1), 0.95])
BINS = 20
_DRAWN = 200  # observations that a CRPS without a closed form is taken from
PAIRED = 300  # values of an output that its CRPS is taken from: each needs all pairs of samples


@dataclass(frozen=True)
class Scores:
    """The scores of one output, or of all together; NaN where one is not defined."""

    count: int
    nmse: float
    rmse: float
    mnll: float
    crps: float
    pit: Values

    def coverage(self, probability: float) -> float:
        """The share of observations inside the central interval."""
        if not len(self.pit):
            return float("nan")
        # The tolerance: 1 - 0.9 is not 0.1 in floating point.
        return float(np.mean(np.abs(2 * self.pit - 1) <= probability + 1e-12))

    def histogram(self) -> Values:
        """The density of the PIT in `BINS` equal bins: 1 everywhere if calibrated."""
        counts, _ = np.histogram(self.pit, bins=BINS, range=(0, 1))
        return counts * BINS / max(1, len(self.pit))


def score(y: Values, predictive: Predictive) -> list[Scores]:
    """One per output."""
    return [_of_output(y[:, d], predictive, d) for d in range(y.shape[1])]


def pooled(scores: list[Scores]) -> Scores:
    """All outputs: means of the scores that may be averaged, and every PIT."""
    nan = float("nan")
    nmses, mnlls = [s.nmse for s in scores], [s.mnll for s in scores]
    pit = np.concatenate([s.pit for s in scores])
    return Scores(sum(s.count for s in scores), _mean(nmses), nan, _mean(mnlls), nan, pit)


def _of_output(y: Values, predictive: Predictive, output: int) -> Scores:
    nan = float("nan")
    rows = np.isfinite(y) & np.isfinite(predictive.components.mean[:, :, output]).all(0)
    if not rows.any():
        return Scores(0, nan, nan, nan, nan, np.empty(0))
    chosen = np.flatnonzero(rows)
    own, known = predictive.select(chosen, np.array([output])), y[rows, None]
    few = evenly(np.arange(len(known)), PAIRED)
    # What is left of a constant after its mean is taken off is rounding, not a spread.
    varies = known.std() > 8 * np.finfo(np.float64).eps * np.abs(known).max()
    return Scores(
        int(rows.sum()),
        float(metrics.nmse(known, own.mean)[0]) if varies else nan,
        float(metrics.rmse(known, own.mean)[0]),
        float(metrics.mnll(known, own)[0]),
        _crps(known[few], own[few]),
        own.pit(known)[:, 0],
    )


def _crps(y: Values, predictive: Predictive) -> float:
    """The CRPS, in closed form where there is one, else from draws: quantiles take minutes."""
    if predictive.components.has_closed_crps:
        return float(metrics.crps(y, predictive)[0])
    mixture = predictive.components  # drawn from often enough, where it is known by few
    times = -(-_DRAWN // len(mixture.mean))
    drawn = np.sort(np.concatenate([mixture.sample(k) for k in range(times)]), axis=0)
    count = len(drawn)
    # E|Y - Y'| over distinct pairs, by ranks.
    weight = (2 * np.arange(count) - count + 1) / max(1, count * (count - 1))
    apart = 2 * np.tensordot(weight, drawn, axes=1)
    return float(np.mean(np.abs(drawn - y).mean(0) - apart / 2))


def _mean(values: list[float]) -> float:
    defined = [value for value in values if np.isfinite(value)]
    return float(np.mean(defined)) if defined else float("nan")
