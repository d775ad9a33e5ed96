"""The scikit-learn door: fit, predict, score, save; numpy and pandas in, numpy out.

    model = DeepLFMRegressor(FourierDLFM()).fit(X, y);   mean, std = model.predict(X_new, True)

Everything it does is done by the rooms below; here are scikit-learn's habits: parameters by name,
attributes with a trailing underscore, shapes that come back as they went in.
"""

from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any, Literal, overload

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from deeplfm.data import Dataset, dataset, dimensions
from deeplfm.data.stored import Stored
from deeplfm.errors import InputError
from deeplfm.evaluation.predictive import Predictive
from deeplfm.models import FourierDLFM, Recipe
from deeplfm.regressor import saving
from deeplfm.regressor.conventions import as_columns, check_rows_differ, check_seed, r2_of_observed
from deeplfm.regressor.devices import checked_device, checked_dtype
from deeplfm.regressor.fitted import FittedModel, Functions
from deeplfm.regressor.fitting import fit
from deeplfm.training import Training
from deeplfm.training.schedule import USED

Values = NDArray[np.float64]

_CONFIGS = ("model", "training")  # frozen settings whose fields are parameters too


class DeepLFMRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """A deep latent force model for arrays, lists, tensors or pandas.

    model:    the recipe, `FourierDLFM()` or `InducingDLFM()`.
    training: steps, learning rate, samples, restarts and so on.
    seed:     of the start, the training and the predictions.
    device:   "auto" (an accelerator if there is one), "cpu", "cuda", "cuda:1" …
    dtype:    "float32" or "float64".
    progress: show a bar where somebody looks.

    After `fit`: `fitted_` (the model itself), `history_`, `n_features_in_`, `feature_names_in_`
    (for named columns), `output_names_`, `n_outputs_`.
    """

    def __init__(
        self,
        model: Recipe = FourierDLFM(),  # noqa: B008 - frozen, as promised to users
        training: Training = Training(),  # noqa: B008
        seed: int = 0,
        device: str = "auto",
        dtype: str = "float32",
        progress: bool = True,
    ) -> None:
        self.model = model
        self.training = training
        self.seed = seed
        self.device = device
        self.dtype = dtype
        self.progress = progress

    def fit(self, X: Any, y: Any, *, checkpoints: Path | str | None = None) -> "DeepLFMRegressor":
        """X [N] or [N, P]; y [N] or [N, D], NaN where it was not observed.

        With a folder for checkpoints an interrupted fit goes on from there. An interrupt from the
        keyboard ends the training; the model is then fitted as far as it came.
        """
        self.check_settings()
        data = self.check_data(X, y)
        validate_data(self, as_columns(X), skip_check_array=True)
        return self._with(self._fit(data, checkpoints), flat=dimensions(y) == 1)

    def fit_stored(
        self, data: Stored, *, checkpoints: Path | str | None = None
    ) -> "DeepLFMRegressor":
        """As `fit`, for a table on disk that is larger than memory; `training` has a batch_size."""
        self.check_settings()
        self.n_features_in_ = len(data.input_names)
        self.feature_names_in_ = np.array(data.input_names, dtype=object)
        return self._with(self._fit(data, checkpoints), flat=False)

    @overload
    def predict(self, X: Any, return_std: Literal[False] = False) -> Values: ...

    @overload
    def predict(self, X: Any, return_std: Literal[True]) -> tuple[Values, Values]: ...

    def predict(self, X: Any, return_std: bool = False) -> Values | tuple[Values, Values]:
        """The mean, [N] or [N, D] as y was; with `return_std` also that of a new observation."""
        self._check_inputs(X)
        found = self.fitted_.summary(X)
        if return_std:
            return self._shaped(found.mean), self._shaped(found.std)
        return self._shaped(found.mean)

    def predictive(self, X: Any, num_samples: int = 200, seed: int | None = None) -> Predictive:
        """The whole predictive distribution, [N, D]; without a seed two calls agree."""
        self._check_inputs(X)
        return self.fitted_.predictive(X, num_samples, seed)

    def draw(self, num_samples: int = 5, seed: int | None = None) -> Functions:
        """Functions: f(X) is [S, N, D], the same ones wherever they are evaluated."""
        check_is_fitted(self)
        return self.fitted_.draw(num_samples, seed)

    def latent_forces(
        self, X: Any, layer: int = 0, num_samples: int = 200, seed: int | None = None
    ) -> Predictive:
        """The forces that drive a layer, without noise; `.names` says which they are."""
        self._check_inputs(X)
        return self.fitted_.latent_forces(X, layer, num_samples, seed)

    def hidden_functions(
        self, X: Any, layer: int = 0, num_samples: int = 200, seed: int | None = None
    ) -> Predictive:
        """What a layer hands on to the next, without noise."""
        self._check_inputs(X)
        return self.fitted_.hidden_functions(X, layer, num_samples, seed)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R² over what was observed, averaged over the outputs."""
        return r2_of_observed(y, self.predict(X), sample_weight)

    def save(self, folder: Path | str) -> None:
        """Settings as JSON, numbers as safetensors; `deeplfm.load(folder)` reads them."""
        check_is_fitted(self)
        settings = self.get_params(deep=False) | {
            "flat": self._flat,
            "feature_names": getattr(self, "feature_names_in_", np.array([])).tolist(),
        }
        saving.save(self.fitted_, folder, settings)

    @property
    def history_(self) -> dict[str, np.ndarray]:
        """step, loss, expected_log_likelihood, kl, seconds and backend, one entry per step."""
        check_is_fitted(self)
        history = dict(self.fitted_.histories[0])
        if "backend" in history:
            history["backend"] = np.array(USED)[history["backend"].astype(int)]
        return history

    @property
    def data_(self) -> Dataset | None:
        """What it was fitted to, where that was kept."""
        check_is_fitted(self)
        return self.fitted_.data

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters; `deep` also gives the fields of the settings, as `model__hidden_dim`.

        Not those that hold physics or a likelihood: torch modules cannot be compared by value, as
        scikit-learn does. They can be set all the same.
        """
        params: dict[str, Any] = super().get_params(deep=False)
        configs = [name for name in _CONFIGS if deep and is_dataclass(params[name])]
        for name in configs:
            for key in _fields(params[name]):
                value = getattr(params[name], key)
                parts = value if isinstance(value, (list, tuple)) else [value]
                if not any(isinstance(part, torch.nn.Module) for part in parts):
                    params[f"{name}__{key}"] = value
        return params

    def set_params(self, **params: Any) -> "DeepLFMRegressor":
        """Set parameters; a nested name, as `model__hidden_dim`, makes new settings with it."""
        nested: dict[str, dict[str, Any]] = {}
        plain: dict[str, Any] = {}
        for key, value in params.items():
            name, _, inner = key.partition("__")
            if name in _CONFIGS and inner:
                nested.setdefault(name, {})[inner] = value
            else:
                plain[key] = value
        super().set_params(**plain)
        for name, changes in nested.items():
            config = getattr(self, name)
            unknown = sorted(set(changes) - set(_fields(config)))
            if unknown:
                raise InputError(
                    f"{name} must be given parameters among {sorted(_fields(config))}; got "
                    f"{unknown}. Correct the name."
                )
            setattr(self, name, replace(config, **changes))
        return self

    def check_settings(self) -> tuple[str, torch.dtype]:
        """The device and type to use; an error where a parameter cannot be used."""
        for name, kind, example in (
            ("model", Recipe, "FourierDLFM()"),
            ("training", Training, "Training(steps=300)"),
        ):
            if not isinstance(getattr(self, name), kind):
                raise InputError(
                    f"{name} must be settings such as {example}; got {getattr(self, name)!r}. "
                    "Pass an instance."
                )
        check_seed(self.seed)
        return checked_device(self.device), checked_dtype(self.dtype)

    def check_data(self, X: Any, y: Any) -> Dataset:
        """The data that `fit` would see; an error where it could not fit them."""
        if y is None:
            raise InputError(
                "DeepLFMRegressor requires y to be passed, but the target y is None. Pass targets."
            )
        data = dataset(X, y)
        check_rows_differ(data)
        self.model.likelihood.check_targets(data.y, data.output_names)
        return data

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "fitted_")

    def _fit(self, data: Dataset | Stored, checkpoints: Path | str | None) -> FittedModel:
        device, dtype = self.check_settings()
        folder = None if checkpoints is None else Path(checkpoints)
        settings: dict[str, Any] = {"seed": self.seed, "progress": self.progress}
        settings |= {"device": device, "dtype": dtype, "checkpoints": folder}
        return fit(data, self.model, self.training, **settings)

    def _with(self, fitted: FittedModel, flat: bool) -> "DeepLFMRegressor":
        self.fitted_ = fitted
        self.output_names_ = fitted.output_names
        self.n_outputs_ = len(fitted.output_names)
        self._flat = flat
        return self

    def _check_inputs(self, X: Any) -> None:
        check_is_fitted(self)
        if dimensions(X) == 2:  # one dimension is one input, or an error that says so
            validate_data(self, as_columns(X), reset=False, skip_check_array=True)

    def _shaped(self, values: Values) -> Values:
        return values[:, 0] if self._flat else values


def load(folder: Path | str, device: str = "auto") -> DeepLFMRegressor:
    """The estimator that `DeepLFMRegressor.save` or `deeplfm fit` wrote, ready to predict."""
    settings = saving.estimator_settings(folder)
    fitted = saving.load(folder, checked_device(device))
    if settings is None:  # saved without an estimator around it
        dtype = str(next(fitted.members[0].parameters()).dtype).removeprefix("torch.")
        settings = {"model": fitted.recipe, "training": fitted.training, "seed": fitted.seed}
        settings |= {"dtype": dtype}
    flat, names = settings.pop("flat", False), settings.pop("feature_names", ())
    model = DeepLFMRegressor(**settings)._with(fitted, flat)
    model.n_features_in_ = len(fitted.input_names)
    if names:
        model.feature_names_in_ = np.array(names, dtype=object)
    return model


def _fields(config: Any) -> list[str]:
    return [field.name for field in fields(config)]
