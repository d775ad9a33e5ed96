"""Ridge regression on lags of a series that was sampled at a regular step.

    b = argmin Σ_n (y_n - b0 - xᵀb)² + λ|b|²,   λ by contiguous blocks that are held out in turn

Neighbouring rows are nearly copies of each other: leaving single ones out would flatter. Sums of
products of all rows and of each block are made once; any choice of columns is solved from them.
"""

from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from deeplfm.data import Dataset
from deeplfm.errors import InputError

Values = NDArray[np.float64]
Rows = NDArray[np.bool_]
Indices = NDArray[np.intp]

BLOCKS = 10
PENALTIES = tuple(float(penalty) for penalty in 10.0 ** np.arange(-4, 4.5, 0.5))
_NEAR = 0.05  # of a step: times are often rounded


@final
@dataclass(frozen=True, eq=False)
class Regression:
    """Columns [n, p + 1] with ones first, targets [n], and which block each row is in [n].

    grams [K + 1, p+1, p+1] and moments [K + 1, p+1]: without each block, and of all rows.
    """

    columns: Values
    target: Values
    blocks: Indices
    grams: Values
    moments: Values

    @classmethod
    def of(cls, columns: Values, target: Values) -> "Regression":
        """Rows [n, p] in the order of time, and their targets [n]."""
        x = np.concatenate([np.ones((len(columns), 1)), columns], axis=1)
        blocks = np.arange(len(x)) * BLOCKS // max(1, len(x))
        held = [x[blocks == k] for k in range(BLOCKS)]
        own = np.stack([part.T @ part for part in held])
        seen = np.stack([x[blocks == k].T @ target[blocks == k] for k in range(BLOCKS)])
        gram, moment = own.sum(0), seen.sum(0)
        grams = np.concatenate([gram - own, gram[None]])
        return cls(x, target, blocks, grams, np.concatenate([moment - seen, moment[None]]))

    def solve(self, penalty: float, chosen: Indices, without: int = BLOCKS) -> Values:
        """Coefficients [p + 1], 0 for columns that are not `chosen`; without one block, if any."""
        gram, moment = self.grams[without], self.moments[without]
        chosen = np.concatenate([[0], chosen + 1])
        ridge = np.full(len(chosen), penalty)
        ridge[0] = 1e-9  # the mean is not shrunk
        found = np.zeros(len(gram))
        penalised = gram[np.ix_(chosen, chosen)] + np.diag(ridge)
        found[chosen] = np.linalg.solve(penalised, moment[chosen])
        return found

    def held_out_error(self, penalty: float, chosen: Indices) -> float:
        """Root mean square over all blocks, each predicted from the others."""
        squares = 0.0
        for block in range(BLOCKS):
            rows = self.blocks == block
            error = self.target[rows] - self.columns[rows] @ self.solve(penalty, chosen, block)
            squares += float(error @ error)
        return float(np.sqrt(squares / len(self.target)))

    def best_penalty(self) -> tuple[float, float]:
        """The penalty with the least held-out error, and that error."""
        every = np.arange(self.columns.shape[1] - 1)
        errors = [self.held_out_error(penalty, every) for penalty in PENALTIES]
        best = int(np.argmin(errors))
        return PENALTIES[best], errors[best]


def lagged(y: Values, lags: Indices) -> Values:
    """[T, D, lags]: y at t + lag, NaN outside the series."""
    reach = int(np.abs(lags).max())
    padded = np.pad(y, ((reach, reach), (0, 0)), constant_values=np.nan)
    return np.stack([padded[reach + lag : reach + lag + len(y)] for lag in lags], axis=-1)


def check_enough(rows: int, name: str) -> None:
    """Two rows a block at least."""
    if rows < 2 * BLOCKS:
        raise InputError(
            f"ridge regression needs {2 * BLOCKS} rows of {name!r} with all lags observed; got "
            f"{rows}. Use fewer lags, or a Gaussian process."
        )


def check_grid(name: str, data: Dataset) -> None:
    """The data are a series on a regular grid, or an error says why not."""
    if data.x.shape[1] != 1:
        raise InputError(
            f"{name} is for a series: X must have 1 input; got {data.x.shape[1]}. Use ExactGP."
        )
    positions(data.x[:, 0])


def positions(times: Values) -> Indices:
    """The place of each time on the regular grid that they share, from 0."""
    ordered = np.sort(times)
    span, step = ordered[-1] - ordered[0], np.median(np.diff(ordered))
    if not step > 0:
        raise InputError("times must differ; got most of them twice. Use a Gaussian process.")
    steps = (times - ordered[0]) / (span / max(1, round(span / step)))
    found: Indices = np.round(steps).astype(np.intp)
    if np.abs(steps - found).max() > _NEAR or len(np.unique(found)) < len(found):
        raise InputError(
            f"times must lie on a regular grid for ridge regression; got times up to "
            f"{np.abs(steps - found).max():.2g} of a step beside it. Use a Gaussian process."
        )
    return found


def on_grid(x: Tensor, y: Tensor, observed: Tensor) -> tuple[Tensor, Tensor]:
    """Times [T, 1] and values [T, D] of the whole grid in float64, NaN where not observed."""
    place = positions(x[:, 0].double().cpu().numpy())
    count = int(place.max()) + 1
    values = np.full((count, y.shape[1]), np.nan)
    values[place] = torch.where(observed, y, torch.nan).double().cpu().numpy()
    return torch.linspace(0, 1, count, dtype=torch.float64)[:, None], torch.tensor(values)


def places_asked(x: Tensor, count: int) -> Indices:
    """Where new times lie on a grid of `count` points over [0, 1]."""
    steps = x[:, 0].double().cpu().numpy() * (count - 1)
    found = np.round(steps).astype(np.intp)
    if np.abs(steps - found).max() > _NEAR:
        raise InputError(
            f"X must lie on the grid of the fit; got times up to {np.abs(steps - found).max():.2g} "
            "of a step beside it. Use a Gaussian process."
        )
    return found
