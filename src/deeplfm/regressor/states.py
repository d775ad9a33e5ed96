"""What only state-space models can do: take in new rows, other series, and tell their physics."""

from typing import Any, TypeVar

from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from deeplfm.data import Dataset, dataset
from deeplfm.errors import InputError
from deeplfm.models import ModelSettings
from deeplfm.regressor.base import Fitted
from deeplfm.regressor.markov import FittedMarkov
from deeplfm.regressor.markov_physics import PhysicsDraws, physics_draws

Own = TypeVar("Own", bound="StateMethods")


class StateMethods:
    """`update`, `condition` and `posterior`; for an estimator with a `fitted_`."""

    model: ModelSettings | str
    fitted_: Any  # a FittedModel or a FittedMarkov, as the recipe says
    _flat: bool

    def with_fitted(self: Own, fitted: Fitted, flat: bool) -> Own:
        """Itself, fitted; `flat` where one output came as [N]."""
        self.fitted_ = fitted
        self.output_names_ = fitted.output_names
        self.n_outputs_ = len(fitted.output_names)
        self._flat = flat
        return self

    def update(self: Own, X: Any, y: Any, *, known: Any = None, series: Any = None) -> Own:
        """Take in new rows of the same series, `X` [N] and `y` [N, D], with the same physics.

        Nothing is fitted again; rows may lie before, between or after those of the fit. Only
        state-space models can; `known` and `series` as in `fit`.
        """
        self.fitted_ = self._markov("update").updated(self._new_rows(X, y, known, series))
        return self

    def condition(self: Own, X: Any, y: Any, *, known: Any = None, series: Any = None) -> Own:
        """Give another estimator, with this physics on other data: `X` [N] and `y` [N, D].

        A new patient, say: nothing is fitted again. Only state-space models can; `known` and
        `series` as in `fit`.
        """
        fitted = self._markov("condition").conditioned(self._new_rows(X, y, known, series))
        other: Own = clone(self)
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self, name):
                setattr(other, name, getattr(self, name))
        return other.with_fitted(fitted, self._flat)

    def posterior(self, num_samples: int = 200, seed: int | None = None) -> PhysicsDraws:
        """Draw every physical parameter `num_samples` times by `seed`, named, in your units.

        Only state-space models know how far they know their physics.
        """
        own = self._markov("posterior")
        return physics_draws(own.physics(num_samples, seed), own.gains(num_samples, seed))

    def _new_rows(self, X: Any, y: Any, known: Any, series: Any) -> Dataset:
        """Rows for a physics that is known: one is enough, and outputs may be missing in all."""
        data = dataset(X, y, known, series, complete=False)
        self._own().recipe.likelihood.check_targets(data.y, data.output_names)
        return data

    def _own(self) -> Fitted:
        check_is_fitted(self)
        fitted: Fitted = self.fitted_
        return fitted

    def _markov(self, what: str) -> FittedMarkov:
        check_is_fitted(self)
        if not isinstance(self.fitted_, FittedMarkov):
            raise InputError(
                f"{what} must be asked of a state-space model; got a "
                f"{type(self.fitted_.recipe).__name__}. Fit with model=MarkovDLFM()."
            )
        return self.fitted_

    def _beside(self, known: Any, series: Any) -> dict[str, Any]:
        """Arguments that only a state-space model has."""
        given = {"known": known, "series": series}
        given = {name: value for name, value in given.items() if value is not None}
        if given:
            self._markov("a prediction with known inputs or series")
        return given
