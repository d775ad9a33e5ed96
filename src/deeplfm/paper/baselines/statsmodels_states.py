"""State-space models of statsmodels (the extra `general`), for series on a regular grid with gaps.

StructuralSeries  y = level with a slope + season + noise, or a cycle + noise, one per output
VectorSeries      all outputs together: a vector autoregression, or factors where outputs are many

Fitted by statsmodels' own maximum likelihood; its smoother gives gaps and forecasts alike: rows
that follow the fit are rows that were not observed.
"""

import warnings
from abc import abstractmethod
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from deeplfm.data import Dataset
from deeplfm.errors import InputError
from deeplfm.paper.baselines.base import Baseline, Mixture, State, Task
from deeplfm.paper.baselines.history import History
from deeplfm.paper.baselines.registry import baseline
from deeplfm.paper.baselines.ridge import check_grid, on_grid, places_asked
from deeplfm.shapes import check_count

Values = NDArray[np.float64]

_LONGEST_SEASON = 24  # rows up to which a season has a state per phase; longer ones have waves
_HARMONICS = 2  # of longer seasons
_MOST_OUTPUTS = 4  # of a vector autoregression
_FACTORS = 2
_LEAST = 1e-6  # standard deviation of what a model is sure of, targets having 1


class SmoothedSeries(Baseline):
    """The common base: a model of statsmodels for some columns, its parameters, its smoother.

    It computes in float64 on the CPU: `device`, `dtype`, `seed` and `progress` change nothing.
    """

    steps: int

    @abstractmethod
    def _model(self, y: Values) -> Any:
        """The model of statsmodels for columns [T, d], NaN where not observed."""

    @abstractmethod
    def _groups(self, outputs: int) -> list[slice]:
        """The outputs that are modelled together."""

    def check(self, data: Dataset) -> None:
        check_count("steps", self.steps)
        check_grid(type(self).__name__, data)
        try:
            # Before a fit silences warnings: with its import statsmodels asks for them.
            import statsmodels.tsa.statespace.api  # noqa: F401
        except ImportError:
            raise InputError(
                f"{type(self).__name__} needs statsmodels, which is not installed. "
                "Run pip install 'deeplfm[general]'."
            ) from None

    def fit_state(self, task: Task, history: History) -> State:
        times, values = on_grid(task.x, task.y, task.observed)
        state: State = {"x": times, "y": values}
        loss = 0.0
        for number, group in enumerate(self._groups(values.shape[1])):
            with warnings.catch_warnings():  # that it has not converged, of units of time
                warnings.simplefilter("ignore")
                model = self._model(values[:, group].numpy())
                found = model.fit(disp=0, maxiter=self.steps)
            loss -= float(found.llf)
            history.add(loss)
            state[f"parameters.{number}"] = torch.tensor(np.asarray(found.params))
        return state

    def mixture(self, state: State, x: Tensor, num_samples: int, seed: int) -> Mixture:
        y = state["y"].cpu().numpy()
        places = places_asked(x, len(y))
        if places.min() < 0:
            raise InputError(
                f"{type(self).__name__} predicts the fitted times and what follows; got times "
                "before. Turn the series round."
            )
        longer = np.full((max(len(y), int(places.max()) + 1), y.shape[1]), np.nan)
        longer[: len(y)] = y
        found = []
        for number, group in enumerate(self._groups(y.shape[1])):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = self._model(longer[:, group])
                parameters = state[f"parameters.{number}"].cpu().numpy()
                found.append(smoothed(model, parameters))
        mean, std = (np.concatenate(part, axis=1) for part in zip(*found, strict=True))
        return torch.tensor(mean[places][None]), torch.tensor(std[places][None])


@final
@baseline("structural", "UnobservedComponents", on=("general",), smoke={"steps": 2})
class StructuralSeries(SmoothedSeries):
    """statsmodels' UnobservedComponents: a local linear trend and seasons, or a cycle; noise.

    periods: of seasons, in rows. Up to 24 rows a season has a state per phase, beyond two waves.
    cycle:   a damped cycle of unknown period about a constant takes the place of the trend, which
             would carry each swing on as a line.
    steps:   the most steps of L-BFGS per output.
    """

    def __init__(
        self,
        periods: tuple[float, ...] = (),
        cycle: bool = False,
        steps: int = 200,
        seed: int = 0,
        device: str = "auto",
        dtype: str = "float64",
        progress: bool = True,
    ) -> None:
        self.periods = periods
        self.cycle = cycle
        self.steps = steps
        self.seed = seed
        self.device = device
        self.dtype = dtype
        self.progress = progress

    def _groups(self, outputs: int) -> list[slice]:
        return [slice(d, d + 1) for d in range(outputs)]

    def _model(self, y: Values) -> Any:
        from statsmodels.tsa.statespace.structural import UnobservedComponents

        short = [int(period) for period in self.periods if period <= _LONGEST_SEASON]
        waves = [
            {"period": period, "harmonics": _HARMONICS}
            for period in self.periods
            if period > _LONGEST_SEASON
        ]
        return UnobservedComponents(
            y[:, 0],
            level="dconstant" if self.cycle else "lltrend",
            seasonal=short[0] if short else None,
            freq_seasonal=waves or None,
            cycle=self.cycle,
            stochastic_cycle=self.cycle,
            damped_cycle=self.cycle,
        )


@final
@baseline("vector", "VARMAX or DynamicFactor", on=("general",), smoke={"steps": 1})
class VectorSeries(SmoothedSeries):
    """statsmodels' VARMAX for up to four outputs, its DynamicFactor for more.

    lags:  of the vector autoregression.
    steps: the most steps of L-BFGS.
    """

    def __init__(
        self,
        lags: int = 2,
        steps: int = 50,
        seed: int = 0,
        device: str = "auto",
        dtype: str = "float64",
        progress: bool = True,
    ) -> None:
        self.lags = lags
        self.steps = steps
        self.seed = seed
        self.device = device
        self.dtype = dtype
        self.progress = progress

    def check(self, data: Dataset) -> None:
        super().check(data)
        check_count("lags", self.lags)
        if data.y.shape[1] == 1:
            raise InputError(
                "VectorSeries needs other channels: y must have 2 or more; got 1. "
                "Use StructuralSeries."
            )

    def _groups(self, outputs: int) -> list[slice]:
        return [slice(0, outputs)]

    def _model(self, y: Values) -> Any:
        if y.shape[1] > _MOST_OUTPUTS:
            from statsmodels.tsa.statespace.dynamic_factor import DynamicFactor

            model = DynamicFactor(
                y, k_factors=_FACTORS, factor_order=1, error_order=1, enforce_stationarity=False
            )
            model.ssm.initialize_approximate_diffuse()  # levels that rise are not stationary
            return model
        from statsmodels.tsa.statespace.varmax import VARMAX

        return VARMAX(y, order=(self.lags, 0), trend="c", measurement_error=True)


def smoothed(model: Any, parameters: Values) -> tuple[Values, Values]:
    """Mean and standard deviation [T, d] of new observations at every row, given all that is seen.

    y = Z_t a_t + c_t + noise of variance H_t, with the smoothed moments of the states a_t.
    """
    found = model.smooth(parameters).smoother_results
    design, noise, shift = found.design, found.obs_cov, found.obs_intercept
    rows = found.nobs
    mean, variance = np.empty((2, rows, found.k_endog))
    for t in range(rows):
        Z, H, c = (m[..., min(t, m.shape[-1] - 1)] for m in (design, noise, shift))
        mean[t] = Z @ found.smoothed_state[:, t] + c
        covariance = Z @ found.smoothed_state_cov[..., t] @ Z.T + H
        variance[t] = np.diagonal(covariance)
    return mean, np.sqrt(np.maximum(variance, _LEAST**2))
