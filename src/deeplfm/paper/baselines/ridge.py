"""Ridge regression on lags of a series that was sampled at a regular step.

    b = argmin Σ_n (y_n - b0 - xᵀb)² + λ|b|²,   λ by contiguous blocks that are held out in turn

Neighbouring rows are nearly copies of each other: an error of single rows held out would be too
small. Sums of products over all rows and over each block are made once; any choice of columns is
solved from them.
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
_NEAR = 0.05  # share of a step that times may lie beside the grid: they are often rounded


@final
@dataclass(frozen=True, eq=False)
class Regression:
    """Sums from which a ridge regression is solved, with or without one block of its rows.

    columns: [n, p + 1] with ones first.      target: [n].      blocks: the block of each row [n].
    grams, moments: XᵀX [K + 1, p+1, p+1] and Xᵀy [K + 1, p+1]; entry k < K without block k, the
    last one over all rows.
    """

    columns: Values
    target: Values
    blocks: Indices
    grams: Values
    moments: Values

    @classmethod
    def of(cls, columns: Values, target: Values) -> "Regression":
        """The regression of targets [n] on columns [n, p], whose rows are in the order of time."""
        x = np.concatenate([np.ones((len(columns), 1)), columns], axis=1)
        blocks = np.arange(len(x)) * BLOCKS // max(1, len(x))
        pairs = [(x[blocks == k], target[blocks == k]) for k in range(BLOCKS)]
        block_grams = np.stack([rows.T @ rows for rows, _ in pairs])
        block_moments = np.stack([rows.T @ values for rows, values in pairs])
        gram, moment = block_grams.sum(0), block_moments.sum(0)
        grams = np.concatenate([gram - block_grams, gram[None]])
        moments = np.concatenate([moment - block_moments, moment[None]])
        return cls(x, target, blocks, grams, moments)

    def solve(self, penalty: float, chosen: Indices, without: int = BLOCKS) -> Values:
        """Coefficients [p + 1], 0 for columns that are not `chosen`.

        without: the block that is left out; BLOCKS, which is none, takes all rows.
        """
        gram, moment = self.grams[without], self.moments[without]
        chosen = np.concatenate([[0], chosen + 1])
        ridge = np.full(len(chosen), penalty)
        ridge[0] = 1e-9  # the mean is not shrunk
        coefficients = np.zeros(len(gram))
        penalised = gram[np.ix_(chosen, chosen)] + np.diag(ridge)
        coefficients[chosen] = np.linalg.solve(penalised, moment[chosen])
        return coefficients

    def held_out_error(self, penalty: float, chosen: Indices) -> float:
        """Root mean square error over all blocks, each predicted from the others."""
        squares = 0.0
        for block in range(BLOCKS):
            rows = self.blocks == block
            error = self.target[rows] - self.columns[rows] @ self.solve(penalty, chosen, block)
            squares += float(error @ error)
        return float(np.sqrt(squares / len(self.target)))

    def best_penalty(self) -> tuple[float, float]:
        """The penalty with the least held-out error, and that error."""
        all_columns = np.arange(self.columns.shape[1] - 1)
        errors = [self.held_out_error(penalty, all_columns) for penalty in PENALTIES]
        best = int(np.argmin(errors))
        return PENALTIES[best], errors[best]


def lagged(y: Values, lags: Indices) -> Values:
    """y at t + lag [T, D, lags], NaN outside the series."""
    reach = int(np.abs(lags).max())
    padded = np.pad(y, ((reach, reach), (0, 0)), constant_values=np.nan)
    return np.stack([padded[reach + lag : reach + lag + len(y)] for lag in lags], axis=-1)


def check_enough(rows: int, name: str) -> None:
    """Raise an error where blocks would have fewer than two rows on average."""
    if rows < 2 * BLOCKS:
        raise InputError(
            f"ridge regression needs {2 * BLOCKS} rows of {name!r} with all lags observed; got "
            f"{rows}. Use fewer lags, or a Gaussian process."
        )


def check_grid(name: str, data: Dataset) -> None:
    """Raise an error where the data are not a series on a regular grid."""
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
    places: Indices = np.round(steps).astype(np.intp)
    if np.abs(steps - places).max() > _NEAR or len(np.unique(places)) < len(places):
        raise InputError(
            f"times must lie on a regular grid for ridge regression; got times up to "
            f"{np.abs(steps - places).max():.2g} of a step beside it. Use a Gaussian process."
        )
    return places


def on_grid(x: Tensor, y: Tensor, observed: Tensor) -> tuple[Tensor, Tensor]:
    """Times [T, 1] and values [T, D] of the whole grid in float64, NaN where not observed."""
    place = positions(x[:, 0].double().cpu().numpy())
    count = int(place.max()) + 1
    values = np.full((count, y.shape[1]), np.nan)
    values[place] = torch.where(observed, y, torch.nan).double().cpu().numpy()
    return torch.linspace(0, 1, count, dtype=torch.float64)[:, None], torch.tensor(values)


def places_asked(x: Tensor, count: int) -> Indices:
    """The place of each new time on a grid of `count` points over [0, 1]."""
    steps = x[:, 0].double().cpu().numpy() * (count - 1)
    places = np.round(steps).astype(np.intp)
    if np.abs(steps - places).max() > _NEAR:
        raise InputError(
            f"X must lie on the grid of the fit; got times up to {np.abs(steps - places).max():.2g}"
            " of a step beside it. Use a Gaussian process."
        )
    return places
