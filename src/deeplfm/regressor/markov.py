"""A fitted state-space model: exact moments given a draw of the physics, averaged over draws.

    p(y) = 1/S Σ_s N(mean_s, variance_s + noise_s),   physics_s ~ its posterior

The state is carried along all rows, observed or asked for, in one pass per draw. Nothing but rows
of data and parameters is kept: new rows (`updated`) or another series (`conditioned`) need no fit.
"""

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from deeplfm.data import Dataset, inputs_table
from deeplfm.data.dataset import one_input
from deeplfm.data.panels import Panel, panel_of
from deeplfm.errors import InputError
from deeplfm.evaluation import Components, NormalComponents, StudentTComponents
from deeplfm.evaluation.predictive import Predictive
from deeplfm.likelihoods import StudentT
from deeplfm.models.markov_model import MarkovModel
from deeplfm.regressor.base import Fitted, Functions, Summary
from deeplfm.regressor.markov_draws import Codes, posterior_functions
from deeplfm.regressor.markov_physics import Physics, physics_of
from deeplfm.regressor.markov_rows import appended, check_alike, record_of, with_later_inputs
from deeplfm.shapes import check_count
from deeplfm.statespace import Record
from deeplfm.training.laplace import Posterior, set_flat
from deeplfm.training.robust import noise_scale
from deeplfm.training.threads import side_by_side

Values = NDArray[np.float64]

PHYSICS = 16  # draws of the physics that a prediction averages over
_FEWEST, _ROWS = 5, 3_000_000  # draws, at least, and rows that all of them pass over
_CHUNK = 2**20  # numbers of a mixture whose quantiles are found at a time


class Readout(NamedTuple):
    """Functions of a state [E, s] and of unknown weights."""

    rows: Tensor
    design: Tensor | None  # [B, N, E, P]; None: none of the weights


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class FittedMarkov(Fitted):
    """A state-space model with the posterior of its physics and the rows it is conditioned on."""

    model: MarkovModel
    posterior: Posterior
    trend: bool
    data: Dataset

    @property
    def num_parameters(self) -> int:
        return len(self.posterior.mean)

    @property
    def place(self) -> tuple[str, str]:
        return "cpu", "float64"

    @cached_property
    def record(self) -> Record:
        """The rows that it is conditioned on, with standardised targets."""
        return record_of(self.data, self.scaling.targets(self.data.y), self.trend)

    def draw(self, num_samples: int = 5, seed: int | None = None) -> Functions:
        """Functions f(X) or, of a panel, f(X, series): [S, N, D], the same ones at every X."""
        check_count("num_samples", num_samples)
        start = self.seed if seed is None else seed
        every = self._members(min(num_samples, PHYSICS), start)
        counts = [(num_samples + k) // len(every) for k in range(len(every))]
        functions = [
            self._functions(member, count, start, k)
            for k, (member, count) in enumerate(zip(every, counts, strict=True))
        ]

        def evaluate(X: Any, series: Any = None) -> Values:
            times, panel, _ = self._asked(X, None, series)
            found = [function(times, panel.codes) for function in functions]
            return self.scaling.functions(np.concatenate(found))

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
        own = self if known is None else replace(self, data=self._asked(X, known, series)[2])
        return Predictive(
            lambda: own._functions_at(X, num_samples, start, series),
            self._components(mean, variance, noise),
            self.output_names,
            start,
            observed=lambda functions: self.model.likelihood.components(functions, self.scaling),
        )

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
        mean, variance, noise = self._moments(X, known, series, start)
        shape = mean.shape[1:]
        found = Summary(np.empty(shape), np.empty(shape), {one: np.empty(shape) for one in levels})
        size = max(1, _CHUNK // (len(mean) * shape[1]))
        for first in range(0, shape[0], size):
            rows = slice(first, first + size)
            chunk = Predictive(mean, self._components(mean[:, rows], variance[:, rows], noise))
            found.mean[rows], found.std[rows] = chunk.mean, chunk.std
            for level, column in found.quantiles.items():
                column[rows] = chunk.quantile(level)
        return found

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
        self._check_layer(layer)
        start = self.seed if seed is None else seed
        names = self.force_names(layer)

        def readout(member: MarkovModel, record: Record) -> Readout:
            return Readout(self._physics(member).forces(), None)

        mean, variance, _ = self._smoothed(X, known, series, start, readout)
        components = NormalComponents(mean, np.sqrt(variance))
        return Predictive(mean, components, names, start)

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
        self._check_layer(layer)
        found = self.predictive(X, num_samples, seed, known=known, series=series)
        return Predictive.without_noise(found.samples, self.output_names, found.seed)

    def function_names(self, layer: int) -> tuple[str, ...]:
        return self.output_names

    def force_names(self, layer: int) -> tuple[str, ...]:
        return self._physics(self.model).force_names()

    def noise(self) -> Mapping[str, Values]:
        return self.model.likelihood.learnt(self.scaling)

    def physics(self, num_samples: int, seed: int | None = None) -> list[Physics]:
        """Draws of the physics; the first is the most probable one."""
        start = self.seed if seed is None else seed
        members = self._members(num_samples, start) if num_samples else []
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

    def _check_layer(self, layer: int) -> None:
        if layer != 0:
            raise InputError(f"layer must be 0, there is one; got {layer}. Pass 0.")

    @cached_property
    def _active(self) -> tuple[int, ...]:
        """The modes that carry something, of the most probable physics."""
        return physics_of(self.model, self.scaling, "", self.output_names).active

    def _physics(self, member: MarkovModel) -> Physics:
        names = self.input_names[0], self.output_names
        return physics_of(member, self.scaling, *names, self._active)

    def _members(self, count: int, seed: int) -> list[MarkovModel]:
        """Models with drawn parameters."""
        found = []
        for values in self.posterior.draw(count, seed):
            member = copy.deepcopy(self.model)
            set_flat(member, values)
            found.append(member)
        return found

    def _scale(self, member: MarkovModel) -> Tensor | None:
        """How much more noise than usual each observation has, as outliers do."""
        return noise_scale(member, self.record, self.record.whole())

    def _asked(self, X: Any, known: Any, series: Any) -> tuple[Values, Panel, Dataset]:
        """Times and series that are asked for, and the data with the inputs that come with them."""
        x = one_input(inputs_table(X, 1))
        labels = None if self.data.panel is None else self.data.panel.labels
        panel = panel_of(series, len(x), labels)
        data = self.data if known is None else with_later_inputs(self.data, x, panel, known)
        return x, panel, data

    def _moments(self, X: Any, known: Any, series: Any, seed: int) -> tuple[Values, Values, Values]:
        """Means and variances of functions [S, N, D] in the user's units, and noise [S, 1, D]."""

        def readout(member: MarkovModel, record: Record) -> Readout:
            loadings = member.system().loadings
            return Readout(loadings, member.design(record, record.whole()))

        mean, variance, members = self._smoothed(X, known, series, seed, readout)
        std = self.scaling.spread(np.ones(len(self.output_names)))
        noises = [one.likelihood.noise_variance.detach().numpy() for one in members]
        return self.scaling.functions(mean), variance * std**2, np.stack(noises)[:, None] * std**2

    def _smoothed(
        self,
        X: Any,
        known: Any,
        series: Any,
        seed: int,
        readout: Callable[[MarkovModel, Record], Readout],
    ) -> tuple[Values, Values, list[MarkovModel]]:
        times, panel, data = self._asked(X, known, series)
        record = self.record
        if data is not self.data:
            record = record_of(data, self.scaling.targets(data.y), self.trend)
        whole, places = record.beside(times, panel.codes)
        rows = len(whole.times)
        members = self._members(max(_FEWEST, min(PHYSICS, _ROWS // rows)), seed)
        cut = whole.whole()

        def one(member: MarkovModel) -> tuple[Values, Values]:
            with torch.no_grad():
                scale = None
                if isinstance(member.likelihood, StudentT):
                    scale = noise_scale(member, whole, cut)
                observations = member.observations(whole, cut, scale=scale)
                functions, design = readout(member, whole)
                if design is None:
                    shape = (*cut.times.shape, len(functions), observations.design.shape[-1])
                    design = functions.new_zeros(()).expand(shape)
                found = member.system().smooth(observations, functions, design)
            take = whole.timeline.rows
            return take(found.mean.numpy())[places], take(found.variance.numpy())[places]

        found = side_by_side(one, members)
        mean, variance = (np.stack(part) for part in zip(*found, strict=True))
        return mean, variance, members

    def _components(self, mean: Values, variance: Values, noise: Values) -> Components:
        likelihood = self.model.likelihood
        if isinstance(likelihood, StudentT):
            # The t distribution with the variance of function and noise together.
            factor = (likelihood.degrees - 2) / likelihood.degrees
            scale = np.sqrt(noise + factor * variance)
            return StudentTComponents(mean, scale, likelihood.degrees)
        return NormalComponents(mean, np.sqrt(variance + noise))

    def _functions_at(self, X: Any, num_samples: int, seed: int, series: Any) -> Values:
        """Draws of functions at rows of any series."""
        return np.asarray(self.draw(num_samples, seed)(X, series))

    def _functions(
        self, member: MarkovModel, count: int, seed: int, number: int
    ) -> Callable[[Values, Codes], Values]:
        scale = self._scale(member)
        labels = 1 if self.data.panel is None else len(self.data.panel.labels)
        return posterior_functions(member, self.record, scale, count, seed, number, labels)
