"""The scikit-learn door: fit, predict, score, save; numpy and pandas in, numpy out.

    model = DeepLFMRegressor().fit(X, y);   mean, std = model.predict(X_new, return_std=True)

Everything it does is done by the rooms below; here are scikit-learn's habits: parameters by name,
attributes with a trailing underscore, shapes that come back as they went in.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, overload

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from deeplfm.data import Dataset, dataset, dimensions, files
from deeplfm.data.stored import Stored
from deeplfm.errors import InputError
from deeplfm.evaluation.predictive import Predictive
from deeplfm.models import MarkovDLFM, ModelSettings
from deeplfm.regressor import conventions, saving
from deeplfm.regressor.base import Fitted, Functions
from deeplfm.regressor.checking import warn_of
from deeplfm.regressor.choosing import AUTO, check_model, choice
from deeplfm.regressor.devices import checked_device, checked_dtype
from deeplfm.regressor.fitting import fit_layers
from deeplfm.regressor.markov_fitting import fit_markov
from deeplfm.regressor.memories import FitMemories
from deeplfm.regressor.nested import NestedSettings
from deeplfm.regressor.states import StateMethods
from deeplfm.training import Training

Values = NDArray[np.float64]


class DeepLFMRegressor(
    StateMethods,
    FitMemories,
    NestedSettings,
    RegressorMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
):
    """The estimator that fits a deep latent force model to arrays, lists, tensors or pandas.

    After `fit`: `fitted_` (the model itself), `check_`, `history_`, `n_features_in_`,
    `feature_names_in_` (for named columns), `output_names_`, `n_outputs_`.

    Args:
        model: "auto" fits one input with `MarkovDLFM()`, several with a `FourierDLFM` for tables;
            `fitted_.recipe` is the one that was fitted. Or a recipe: `MarkovDLFM()`,
            `FourierDLFM()`, `InducingDLFM()`.
        training: steps, learning rate, samples, restarts and so on. With "auto" a table is trained
            as suits its recipe, in all that is left at its default: see `fitted_.training`.
        seed: the seed of the start, the training and the predictions.
        device: "auto" (an accelerator if there is one), "cpu", "cuda", "cuda:1" …
        dtype: "float32" or "float64".
        progress: True shows a bar where somebody looks.
        check: True holds out blocks to see how good the fit is (`check_`), and warns if it is not.

    Shapes:
        X: N inputs, [N] or [N, P], in any units.
        y: targets [N] or [N, D], NaN where they were not observed; means come back in this shape.

    Example:
        >>> recipe, training = dlfm.FourierDLFM(num_features=8), dlfm.Training(steps=2)
        >>> x = np.linspace(0, 1, 20)
        >>> y = np.stack([np.sin(9 * x), np.cos(9 * x)], axis=1)
        >>> model = dlfm.DeepLFMRegressor(recipe, training, progress=False).fit(x, y)
        >>> model.predict(x).shape, model.predictive(x, num_samples=7).samples.shape
        ((20, 2), (7, 20, 2))
    """

    def __init__(
        self,
        model: ModelSettings | str = AUTO,
        training: Training = Training(),  # noqa: B008 - frozen, as promised to users
        seed: int = 0,
        device: str = "auto",
        dtype: str = "float32",
        progress: bool = True,
        check: bool = True,
    ) -> None:
        self.model = model
        self.training = training
        self.seed = seed
        self.device = device
        self.dtype = dtype
        self.progress = progress
        self.check = check

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        known: Any = None,
        series: Any = None,
        checkpoints: Path | str | None = None,
    ) -> "DeepLFMRegressor":
        """Fit to inputs `X` [N] or [N, P] and targets `y` [N] or [N, D], NaN if not observed.

        A state-space model takes `known` inputs too, [N] or [N, C] row by row, held constant from
        one row to the next, and a panel: `series` [N] are ids, every series has its own state, and
        all share one physics.

        With a folder for `checkpoints` an interrupted fit goes on from there; those of another fit
        (of other data, seed, settings or version) are an error. An interrupt from the keyboard ends
        the training; the model is then fitted as far as it came.
        """
        self.check_settings()
        data = self.check_data(X, y, known, series)
        validate_data(self, conventions.as_columns(X), skip_check_array=True)
        fitted = self.with_fitted(self._fit(data, checkpoints), flat=dimensions(y) == 1)
        warn_of(fitted.check_)
        return fitted

    def fit_stored(
        self, data: Stored, *, checkpoints: Path | str | None = None
    ) -> "DeepLFMRegressor":
        """Fit as `fit` does, with `checkpoints`, to `data` on disk, inputs [N, P], targets [N, D].

        They may be larger than memory, and `training` has a batch_size; but a state-space model
        reads them all, and needs none.
        """
        self.check_settings()
        self.n_features_in_ = len(data.input_names)
        self.feature_names_in_ = np.array(data.input_names, dtype=object)
        fitted = self.with_fitted(self._fit(data, checkpoints), flat=False)
        warn_of(fitted.check_)
        return fitted

    @overload
    def predict(
        self, X: Any, return_std: Literal[False] = False, *, known: Any = None, series: Any = None
    ) -> Values: ...

    @overload
    def predict(
        self, X: Any, return_std: Literal[True], *, known: Any = None, series: Any = None
    ) -> tuple[Values, Values]: ...

    def predict(
        self, X: Any, return_std: bool = False, *, known: Any = None, series: Any = None
    ) -> Values | tuple[Values, Values]:
        """Predict the mean at `X` [N] or [N, P]: [N] or [N, D], as y was.

        With `return_std` the standard deviation of a new observation comes too, of the same shape.
        `known` inputs [N, C] count after the last training row; `series` [N] are ids of the fit.
        """
        self._check_inputs(X)
        found = self._own().summary(X, **self._beside(known, series))
        if return_std:
            return self._shaped(found.mean), self._shaped(found.std)
        return self._shaped(found.mean)

    def predictive(
        self,
        X: Any,
        num_samples: int = 200,
        seed: int | None = None,
        *,
        known: Any = None,
        series: Any = None,
    ) -> Predictive:
        """Give the whole predictive distribution [N, D] at `X` [N] or [N, P].

        It is the mixture of `num_samples` functions; without a `seed` two calls agree. Inputs that
        are `known` and `series` as in `predict`.
        """
        self._check_inputs(X)
        return self._own().predictive(X, num_samples, seed, **self._beside(known, series))

    def draw(self, num_samples: int = 5, seed: int | None = None) -> Functions:
        """Draw `num_samples` functions by `seed`: f(X) is [S, N, D], the same ones at every X.

        Of a panel they are f(X, series), with one id per row.
        """
        return self._own().draw(num_samples, seed)

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
        """Give the forces that drive a `layer` (from 0) at `X` [N] or [N, P], without noise.

        It holds `num_samples` draws [S, N, forces]; a `seed` as in `predictive`; `.names` says
        which forces they are. Inputs that are `known` and `series` as in `predict`.
        """
        self._check_inputs(X)
        beside = self._beside(known, series)
        return self._own().latent_forces(X, layer, num_samples, seed, **beside)

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
        """Give what a `layer` (from 0) hands on to the next at `X` [N] or [N, P], without noise.

        `num_samples` draws [S, N, functions]; `seed`, `known` and `series` as in `predictive`.
        """
        self._check_inputs(X)
        beside = self._beside(known, series)
        return self._own().hidden_functions(X, layer, num_samples, seed, **beside)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Compute R² at `X` [N, P] over what was observed of `y` [N, D], averaged over outputs.

        `sample_weight` is one weight per row, [N].
        """
        return conventions.r2_of_observed(y, self.predict(X), sample_weight)

    def save(self, folder: Path | str) -> None:
        """Write settings as JSON and numbers as safetensors to `folder`, for `deeplfm.load`."""
        with files.locked(Path(folder), "a model that is saved"):
            self.save_beside(Path(folder), {})

    def save_beside(self, folder: Path, others: Mapping[str, bytes]) -> None:
        """Save into a `folder` that is locked already, with `others`, files by their names."""
        check_is_fitted(self)
        settings = self.get_params(deep=False) | {
            "flat": self._flat,
            "feature_names": getattr(self, "feature_names_in_", np.array([])).tolist(),
        }
        saving.save(self.fitted_, folder, settings, others)

    def check_settings(self) -> tuple[str, torch.dtype]:
        """Give the device and type to use; it is an error if a parameter cannot be used."""
        check_model(self.model, self.training)
        conventions.check_seed(self.seed)
        return checked_device(self.device), checked_dtype(self.dtype)

    def check_data(self, X: Any, y: Any, known: Any = None, series: Any = None) -> Dataset:
        """Give the data that `fit` would see in `X` [N, P], `y` [N, D], or say why it cannot.

        `known` inputs and `series` as in `fit`.
        """
        if y is None:
            raise InputError(
                "DeepLFMRegressor requires y to be passed, but the target y is None. Pass targets."
            )
        data = dataset(X, y, known, series)
        conventions.check_rows_differ(data)
        recipe, _ = choice(self.model, self.training, data)
        recipe.likelihood.check_targets(data.y, data.output_names)
        return data

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "fitted_")

    def _fit(self, data: Dataset | Stored, checkpoints: Path | str | None) -> Fitted:
        device, dtype = self.check_settings()
        folder = None if checkpoints is None else Path(checkpoints)
        settings: dict[str, Any] = {"seed": self.seed, "progress": self.progress}
        settings |= {"checkpoints": folder, "device": device}
        recipe, training = choice(self.model, self.training, data)
        if isinstance(recipe, MarkovDLFM):
            return fit_markov(data, recipe, training, check=self.check, **settings)
        return fit_layers(data, recipe, training, check=self.check, dtype=dtype, **settings)

    def _check_inputs(self, X: Any) -> None:
        check_is_fitted(self)
        if dimensions(X) == 2:  # one dimension is one input, or an error that says so
            validate_data(self, conventions.as_columns(X), reset=False, skip_check_array=True)

    def _shaped(self, values: Values) -> Values:
        return values[:, 0] if self._flat else values
