"""A fitted state-space model: exact moments given a draw of the physics, averaged over draws.

    p(y) = 1/S Σ_s N(mean_s, variance_s + noise_s),   physics_s ~ its posterior

The state is carried along all rows, observed or asked for, in one pass per draw. Nothing but rows
of data and parameters is kept: new rows (`updated`) or another series (`conditioned`) need no fit.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from deeplfm.data import Dataset
from deeplfm.data.dataset import one_input
from deeplfm.data.panels import Panel, panel_of
from deeplfm.errors import InputError
from deeplfm.evaluation import NormalComponents, PointComponents
from deeplfm.evaluation.predictive import Predictive
from deeplfm.evaluation.spread import about_mean
from deeplfm.models import MarkovDLFM
from deeplfm.models.markov_model import MarkovModel
from deeplfm.regressor.base import Fitted, Functions, Summary
from deeplfm.regressor.markov_draws import Codes, drawn_at_rows, posterior_functions
from deeplfm.regressor.markov_gains import drawn_gains
from deeplfm.regressor.markov_members import PHYSICS, Members, check_layer
from deeplfm.regressor.markov_moments import components_of, smoothed_at, summarised
from deeplfm.regressor.markov_physics import Physics, physics_of
from deeplfm.regressor.markov_rows import appended, check_alike, record_of, with_later_inputs
from deeplfm.regressor.markov_second import SecondLayer
from deeplfm.shapes import check_count
from deeplfm.statespace import Record
from deeplfm.training.depth import Depth
from deeplfm.training.laplace import Posterior
from deeplfm.training.robust import noise_scale

Values = NDArray[np.float64]

_FEWEST, _ROWS = 5, 3_000_000  # draws, at least, and rows that all of them pass over
_TOGETHER = 8, 6  # draws of the physics, and of functions of each, in draws of observations


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class FittedMarkov(Fitted):
    """A state-space model with the posterior of its physics and the rows it is conditioned on."""

    model: MarkovModel
    posterior: Posterior
    trend: bool
    data: Dataset
    device: str = "cpu"
    second: SecondLayer | None = None
    depth: Depth | None = None

    @property
    def num_parameters(self) -> int:
        return sum(raw.value.numel() for raw in self.top.raw())

    @property
    def top(self) -> MarkovModel:
        """The model that outputs are read off: the second layer, where there is one."""
        return self.model if self.second is None else self.second.model

    @property
    def place(self) -> tuple[str, str]:
        return self.device, "float64"

    @cached_property
    def record(self) -> Record:
        """The rows that it is conditioned on, with standardised targets."""
        return self._record_of(self.data)

    def draw(self, num_samples: int = 5, seed: int | None = None) -> Functions:
        """Functions f(X) or, of a panel, f(X, series): [S, N, D], the same ones at every X."""
        start = self.seed if seed is None else seed
        functions = [
            self._functions(member, count, start, k)
            for k, (member, count) in enumerate(self._members.shared_out(num_samples, start))
        ]

        def evaluate(X: Any, series: Any = None) -> Values:
            times, panel, _ = self._asked(X, None, series)
            found = [function(times, panel.codes) for function in functions]
            drawn, factor = self.scaling.functions(np.concatenate(found)), self.factor_at(times)
            if factor is None:
                return drawn
            return about_mean(drawn, self._moments(X, None, series, start)[0].mean(0), factor)

        return evaluate

    def predictive(
        self,
        X: Any,
        num_samples: int = 200,
        seed: int | None = None,
        *,
        known: Any = None,
        series: Any = None,
    ) -> Predictive:
        check_count("num_samples", num_samples)
        start = self.seed if seed is None else seed
        mean, variance, noise = self._moments(X, known, series, start)
        own = self if known is None else replace(self, data=self._with_inputs(X, known, series))
        found = Predictive(
            lambda: own._functions_at(X, num_samples, start, series),
            components_of(self.top.likelihood, mean, variance, noise),
            self.output_names,
            start,
            observed=lambda functions: self.top.likelihood.components(functions, self.scaling),
        )
        factor = self.factor_at(X)
        return found if factor is None else found.widened(factor)

    def together(self, X: Any, seed: int) -> Values:
        """Draw observations at rows of one series together, as every fitted model can."""
        times, panel, _ = self._asked(X, None, None)
        record, places = self.record.beside(times, panel.codes)
        members, count = self._members.draw(_TOGETHER[0], seed), _TOGETHER[1]
        drawn = drawn_at_rows(members, record, places, count, seed)
        about = self.top.likelihood.components(self.scaling.functions(drawn), self.scaling)
        return about.sample(seed)

    def summary(
        self,
        X: Any,
        levels: Sequence[float] = (),
        num_samples: int = 200,
        seed: int | None = None,
        *,
        known: Any = None,
        series: Any = None,
    ) -> Summary:
        start = self.seed if seed is None else seed
        moments = self._moments(X, known, series, start)
        return summarised(self.top.likelihood, moments, levels, self.factor_at(X))

    def latent_forces(
        self,
        X: Any,
        layer: int = 0,
        num_samples: int = 200,
        seed: int | None = None,
        *,
        known: Any = None,
        series: Any = None,
    ) -> Predictive:
        check_layer(layer)
        check_count("num_samples", num_samples)
        start = self.seed if seed is None else seed
        names = self.force_names(layer)
        mean, variance, _ = self._smoothed(
            X, known, series, start, lambda member: self._physics(member).forces()
        )
        least = 1e-18 * max(float(part.max(initial=0.0)) for part in (variance, mean**2))
        std = np.sqrt(np.maximum(variance, least or 1.0))  # rounding may have left no spread
        return Predictive(
            lambda: self._functions_at(X, num_samples, start, series, forces=True),
            NormalComponents(mean, std, noise=False),
            names,
            start,
            observed=PointComponents,
        )

    def hidden_functions(
        self,
        X: Any,
        layer: int = 0,
        num_samples: int = 200,
        seed: int | None = None,
        *,
        known: Any = None,
        series: Any = None,
    ) -> Predictive:
        check_layer(layer)
        found = self.predictive(X, num_samples, seed, known=known, series=series)
        return Predictive.without_noise(found.samples, self.output_names, found.seed)

    def function_names(self, layer: int) -> tuple[str, ...]:
        return self.output_names

    def force_names(self, layer: int) -> tuple[str, ...]:
        return self._physics(self.model).force_names()

    def noise(self) -> Mapping[str, Values]:
        return self.top.likelihood.learnt(self.scaling)

    def gains(self, num_samples: int, seed: int | None = None) -> dict[str, Values]:
        """Draws [n] of the gain of every known input; none of a panel: each series has its own."""
        known, start = self.data.known, self.seed if seed is None else seed
        if known is None or self.record.num_series > 1:
            return {}
        own, names = self._members.first(num_samples, start), (self.output_names, known.names)
        return drawn_gains(own, self.record, self.scaling, names, start)

    def physics(self, num_samples: int, seed: int | None = None) -> list[Physics]:
        """Draws of the physics; the first is the most probable one."""
        start = self.seed if seed is None else seed
        members = self._members.first(num_samples, start) if num_samples else []
        return [self._physics(self.model), *map(self._physics, members)]

    def updated(self, data: Dataset) -> "FittedMarkov":
        """The same physics with more rows of the same series."""
        return replace(self, data=appended(self.data, data))

    def conditioned(self, data: Dataset) -> "FittedMarkov":
        """The same physics on other data."""
        check_alike(self.data, data)
        if not len(data):
            raise InputError("y must have an observation or more; got only NaN. Add rows.")
        return replace(self, data=data)

    def knowing(self, data: Dataset) -> "FittedMarkov":
        """The same model with the known inputs that other data have after its last row."""
        if data.known is None or self.data.known is None:
            return self
        labels = None
        if data.panel is not None:
            labels = [data.panel.labels[code] for code in data.known.codes.tolist()]
        known = self._with_inputs(data.known.times, data.known.values, labels)
        return replace(self, data=known)

    def _record_of(self, data: Dataset) -> Record:
        level = isinstance(self.recipe, MarkovDLFM) and self.recipe.level
        return record_of(data, self.scaling.targets(data.y), self.trend, level, self.device)

    @cached_property
    def _active(self) -> tuple[int, ...]:
        """The modes that carry something, of the most probable physics."""
        return physics_of(self.model, self.scaling, "", self.output_names).active

    def _physics(self, member: MarkovModel) -> Physics:
        names = self.input_names[0], self.output_names
        return physics_of(member, self.scaling, *names, self._active)

    @cached_property
    def _members(self) -> Members:
        """Models that predictions average over."""
        return Members(self.model, self.posterior, self.second, self.record)

    def _asked(self, X: Any, known: Any, series: Any) -> tuple[Values, Panel, Dataset]:
        """Times and series that are asked for, and the data with the inputs that come with them."""
        x = one_input(self.near(X))
        labels = None if self.data.panel is None else self.data.panel.labels
        panel = panel_of(series, len(x), labels)
        return x, panel, self.data if known is None else self._with_inputs(X, known, series)

    def _with_inputs(self, X: Any, known: Any, series: Any) -> Dataset:
        """The data with known inputs after the last training row, which come with a prediction."""
        return with_later_inputs(self.data, *self._asked(X, None, series)[:2], known)

    def _moments(self, X: Any, known: Any, series: Any, seed: int) -> tuple[Values, Values, Values]:
        """Means and variances of functions [S, N, D] in the user's units, and noise [S, 1, D]."""
        mean, variance, members = self._smoothed(X, known, series, seed)
        std = self.scaling.spread(np.ones(len(self.output_names)))
        noises = [one.likelihood.noise_variance.detach().numpy() for one in members]
        return self.scaling.functions(mean), variance * std**2, np.stack(noises)[:, None] * std**2

    def _smoothed(
        self,
        X: Any,
        known: Any,
        series: Any,
        seed: int,
        functions: Callable[[MarkovModel], Tensor] | None = None,
    ) -> tuple[Values, Values, list[MarkovModel]]:
        times, panel, data = self._asked(X, known, series)
        record = self.record if data is self.data else self._record_of(data)
        whole, places = record.beside(times, panel.codes)
        draw = self._members.draw if functions is None else self._members.first
        members = draw(max(_FEWEST, min(PHYSICS, _ROWS // len(whole.times))), seed)
        mean, variance = smoothed_at(members, whole, places, functions)
        return mean, variance, members

    def _functions_at(
        self, X: Any, num_samples: int, seed: int, series: Any, forces: bool = False
    ) -> Values:
        """Draws of functions, or of forces, at rows of any series."""
        times, panel, _ = self._asked(X, None, series)
        found = [
            self._functions(member, count, seed, k, forces)(times, panel.codes)
            for k, (member, count) in enumerate(self._members.shared_out(num_samples, seed, forces))
        ]
        drawn = np.concatenate(found)
        return drawn if forces else self.scaling.functions(drawn)

    def _functions(
        self, member: MarkovModel, count: int, seed: int, number: int, forces: bool = False
    ) -> Callable[[Values, Codes], Values]:
        scale = noise_scale(member, self.record, self.record.whole())
        labels = 1 if self.data.panel is None else len(self.data.panel.labels)
        readout = self._physics(member).forces() if forces else None
        keys = (seed, number)
        return posterior_functions(member, self.record, scale, count, keys, labels, readout)
