"""Series made here that have no beat: processes, walks, growth, sales and a panel; truth is kept.

    f = L z,  L Lᵀ = k(t, t'),  y = f Aᵀ + noise      k: RBF or Matérn-3/2, A Aᵀ = [[1, ρ], [ρ, 1]]
    level_t = level_{t-1} + step z,   y = level + noise

The constants of processes and walks are public: the model that made the data is given them.
"""

from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from deeplfm.data.series import Series, Values

Kernel: TypeAlias = Literal["rbf", "matern32"]

POINTS = 240
LENGTHSCALE = {"rbf": 8.0, "matern32": 15.0}  # in rows
PROCESS_NOISE = 0.15  # standard deviation, the processes having 1
CORRELATION = 0.6  # of the two outputs
WALK_STEP, WALK_NOISE = 1.0, 1.0
SALES_DAYS, YEAR = 730, 365.25
SUBJECTS, VISITS = 20, 40
_GROWTH_NOISE = 0.03
_WEEK = np.array([-1.0, -0.6, -0.4, 0.0, 0.9, 1.6, -0.5])  # of daily sales, from Monday on


def covariance(kernel: Kernel, lag: Values, lengthscale: float) -> Values:
    """k of lags, of variance 1."""
    scaled = np.abs(lag) / lengthscale
    if kernel == "rbf":
        return np.asarray(np.exp(-(scaled**2) / 2))
    return np.asarray((1 + np.sqrt(3) * scaled) * np.exp(-np.sqrt(3) * scaled))


def mixing() -> NDArray[np.float64]:
    """A [2, 2], by which two independent processes become two outputs that are alike."""
    return np.linalg.cholesky(np.array([[1, CORRELATION], [CORRELATION, 1]]))


def process(kernel: Kernel, seed: int) -> Series:
    """Two outputs that are draws of one Gaussian process, mixed."""
    random = np.random.default_rng(seed)
    t = np.arange(POINTS, dtype=np.float64)
    gram = covariance(kernel, t[:, None] - t, LENGTHSCALE[kernel]) + 1e-9 * np.eye(POINTS)
    truth = np.linalg.cholesky(gram) @ random.standard_normal((POINTS, 2)) @ mixing().T
    values = truth + PROCESS_NOISE * random.standard_normal(truth.shape)
    return Series(t, values, ("a", "b"), truth=truth)


def walk(seed: int) -> Series:
    """A random walk that is seen with noise."""
    random = np.random.default_rng(seed)
    truth = WALK_STEP * random.standard_normal((POINTS, 1)).cumsum(0)
    values = truth + WALK_NOISE * random.standard_normal(truth.shape)
    return Series(np.arange(POINTS, dtype=np.float64), values, ("walk",), truth=truth)


def growth(seed: int) -> Series:
    """Logistic growth to 1 with noise; when and how fast it grows differs by seed."""
    random = np.random.default_rng(seed)
    t = np.arange(POINTS, dtype=np.float64)
    middle, width = random.uniform(110, 150), random.uniform(15, 30)
    truth = 1 / (1 + np.exp(-(t[:, None] - middle) / width))
    values = truth + _GROWTH_NOISE * random.standard_normal(truth.shape)
    return Series(t, values, ("growth",), truth=truth)


def sales(seed: int) -> Series:
    """Two years of daily sales of two shops: a trend, a week and a year each, and noise."""
    random = np.random.default_rng(seed)
    t = np.arange(SALES_DAYS, dtype=np.float64)
    columns = []
    for level, slope in ((100.0, 0.04), (60.0, -0.01)):
        size, phase = random.uniform(0.7, 1.3), random.uniform(0, 2 * np.pi)
        week = size * 0.12 * level * _WEEK[np.arange(SALES_DAYS) % 7]
        year = 0.1 * level * np.sin(2 * np.pi * t / YEAR + phase)
        columns.append(level + slope * t + week + year)
    truth = np.stack(columns, axis=1)
    values = truth + np.array([5.0, 3.0]) * random.standard_normal(truth.shape)
    return Series(t, values, ("north", "south"), truth=truth)


def panel(seed: int) -> Series:
    """Subjects as columns: one damped oscillation, with a frequency and a phase of their own."""
    random = np.random.default_rng(seed)
    t = np.arange(VISITS, dtype=np.float64)[:, None]
    frequency = 2 * np.pi / 9 * np.exp(0.15 * random.standard_normal(SUBJECTS))
    phase = random.uniform(0, 2 * np.pi, SUBJECTS)
    size = random.uniform(0.7, 1.3, SUBJECTS)
    truth = size * np.exp(-t / 30) * np.cos(frequency * t + phase)
    values = truth + 0.05 * random.standard_normal(truth.shape)
    names = tuple(f"subject {k}" for k in range(SUBJECTS))
    return Series(t[:, 0], values, names, truth=truth)
