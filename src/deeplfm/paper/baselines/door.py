"""The door of every baseline: the same as that of `DeepLFMRegressor`.

    model = SVGP().fit(X, y);   model.predictive(X_new).log_density(y_new)

A baseline is two functions: data in the model's units become numbers by name (its state), and a
state with new inputs becomes a mixture of Gaussians. Units, shapes and folders are done here.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, final, overload

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor

from deeplfm.data import Dataset, Scaling, dataset, dimensions, files, fit_scaling, inputs_table
from deeplfm.errors import InputError
from deeplfm.evaluation import NormalComponents, Predictive
from deeplfm.paper.baselines.history import History
from deeplfm.regressor import saving
from deeplfm.regressor.conventions import as_columns, check_rows_differ, check_seed, r2_of_observed
from deeplfm.regressor.devices import checked_device, checked_dtype
from deeplfm.regressor.settings import to_json
from deeplfm.shapes import check_count

Values = NDArray[np.float64]
State = dict[str, Tensor]

SETTINGS, NUMBERS = "baseline.json", "baseline.safetensors"


@final
@dataclass(frozen=True, eq=False)
class Task:
    """What a baseline is fitted to, in the model's units, where it is to be computed.

    x [N, P]; y [N, D], 0 where `observed` [N, D] is not.
    """

    x: Tensor
    y: Tensor
    observed: Tensor
    seed: int
    progress: bool

    def gaps(self) -> tuple[Values, Values]:
        """x and y as numpy arrays, NaN where nothing was observed."""
        y = torch.where(self.observed, self.y, torch.nan)
        return self.x.double().cpu().numpy(), y.double().cpu().numpy()


@final
@dataclass(frozen=True, eq=False)
class Fitted:
    """The state, and the units and names it speaks in."""

    state: State
    scaling: Scaling
    input_names: tuple[str, ...]
    output_names: tuple[str, ...]
    history: dict[str, Values]
    flat: bool


class Baseline(RegressorMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """Fit, predict, score, save. After `fit`: `fitted_`, `history_`, `output_names_`."""

    seed: int
    device: str
    dtype: str
    progress: bool

    @abstractmethod
    def _fit(self, task: Task, history: History) -> State:
        """The numbers that predictions are made of."""

    @abstractmethod
    def _mixture(self, state: State, x: Tensor, num_samples: int, seed: int) -> "Mixture":
        """Centres and standard deviations, noise included, [S, N, D] in the model's units."""

    def _check(self, data: Dataset) -> None:
        """An error where a parameter cannot be used, or not with these data."""

    def fit(self, X: Any, y: Any) -> "Baseline":
        """X [N] or [N, P]; y [N] or [N, D], NaN where it was not observed."""
        check_seed(self.seed)
        device, dtype = checked_device(self.device), checked_dtype(self.dtype)
        if y is None:
            raise InputError(
                f"{type(self).__name__} requires y to be passed, but the target y is None. "
                "Pass targets."
            )
        data = dataset(X, y)
        check_rows_differ(data)
        self._check(data)
        validate_data(self, as_columns(X), skip_check_array=True)
        scaling, history = fit_scaling(data), History()
        observed = torch.tensor(data.observed, device=device)
        x, targets = scaling.inputs(data.x), np.nan_to_num(scaling.targets(data.y))
        numbers = [torch.tensor(v, dtype=dtype, device=device) for v in (x, targets)]
        task = Task(numbers[0], numbers[1], observed, self.seed, self.progress)
        state = self._fit(task, history)
        names = data.input_names, data.output_names
        return self._with(Fitted(state, scaling, *names, history.arrays(), dimensions(y) == 1))

    @overload
    def predict(self, X: Any, return_std: Literal[False] = False) -> Values: ...

    @overload
    def predict(self, X: Any, return_std: Literal[True]) -> tuple[Values, Values]: ...

    def predict(self, X: Any, return_std: bool = False) -> Values | tuple[Values, Values]:
        """The mean, [N] or [N, D] as y was; with `return_std` also that of a new observation."""
        found = self.predictive(X)
        if return_std:
            return self._shaped(found.mean), self._shaped(found.std)
        return self._shaped(found.mean)

    def predictive(self, X: Any, num_samples: int = 200, seed: int | None = None) -> Predictive:
        """A mixture of Gaussians in closed form, [N, D]; without a seed two calls agree.

        Models whose prediction is one Gaussian per point have one component, whatever
        `num_samples` is.
        """
        check_is_fitted(self)
        check_count("num_samples", num_samples)
        if dimensions(X) == 2:
            validate_data(self, as_columns(X), reset=False, skip_check_array=True)
        fitted = self.fitted_
        start = self.seed if seed is None else seed
        table = fitted.scaling.inputs(inputs_table(X, len(fitted.input_names)))
        like = fitted.state["x"]
        x = torch.tensor(table, dtype=like.dtype, device=like.device)
        with torch.no_grad():
            mixture = self._mixture(fitted.state, x, num_samples, start)
        centers, std = (value.double().cpu().numpy() for value in mixture)
        centers, std = fitted.scaling.functions(centers), fitted.scaling.spread(std)
        components = NormalComponents(centers, std)
        return Predictive(centers, components, fitted.output_names, start)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R² over what was observed, averaged over the outputs."""
        return r2_of_observed(y, self.predict(X), sample_weight)

    @property
    def history_(self) -> dict[str, Values]:
        """step, loss and seconds since the start of the fit, one entry per recorded step."""
        check_is_fitted(self)
        return self.fitted_.history

    def save(self, folder: Path | str) -> None:
        """Settings as JSON, numbers as safetensors; `deeplfm.paper.baselines.load` reads them."""
        check_is_fitted(self)
        folder, fitted = Path(folder), self.fitted_
        tensors = {f"state.{name}": value for name, value in fitted.state.items()}
        for name, array in fitted.scaling.arrays().items():
            tensors[f"scaling.{name}"] = torch.tensor(array)
        tensors |= {f"history.{n}": torch.tensor(value) for n, value in fitted.history.items()}
        files.save_tensors(folder / NUMBERS, tensors)
        settings = {
            "format": saving.FORMAT,
            "baseline": type(self).__name__,
            "parameters": to_json(self.get_params(deep=False)),
            "input_names": list(fitted.input_names),
            "output_names": list(fitted.output_names),
            "feature_names": getattr(self, "feature_names_in_", np.array([])).tolist(),
            "flat": fitted.flat,
            "sha256": saving.checksum(folder / NUMBERS),
        }
        saving.save_settings(folder / SETTINGS, settings)

    def _restore(self, folder: Path, settings: dict[str, Any], device: str) -> "Baseline":
        """Become what was saved in `folder`."""
        saving.check_unchanged(folder / NUMBERS, settings["sha256"])
        parts: dict[str, dict[str, Tensor]] = {"state": {}, "scaling": {}, "history": {}}
        for name, value in files.load_tensors(folder / NUMBERS).items():
            part, _, key = name.partition(".")
            parts[part][key] = value
        state = {name: value.to(device) for name, value in parts["state"].items()}
        scaling = Scaling.from_arrays({n: v.numpy() for n, v in parts["scaling"].items()})
        history = {name: value.numpy() for name, value in parts["history"].items()}
        names = tuple(settings["input_names"]), tuple(settings["output_names"])
        self.n_features_in_ = len(names[0])
        if settings["feature_names"]:
            self.feature_names_in_ = np.array(settings["feature_names"], dtype=object)
        return self._with(Fitted(state, scaling, *names, history, settings["flat"]))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "fitted_")

    def _with(self, fitted: Fitted) -> "Baseline":
        self.fitted_ = fitted
        self.output_names_ = fitted.output_names
        self.n_outputs_ = len(fitted.output_names)
        return self

    def _shaped(self, values: Values) -> Values:
        return values[:, 0] if self.fitted_.flat else values


Mixture = tuple[Tensor, Tensor]
