"""The base class of every baseline: the same methods as `DeepLFMRegressor` has.

    model = SVGP().fit(X, y);   model.predictive(X_new).log_density(y_new)

A baseline adds two methods: `fit_state` turns data in the model's units into named tensors, the
state; `mixture` turns a state and new inputs into a mixture of Gaussians. The base class takes care
of units, shapes, names, saving and scikit-learn.
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
from deeplfm.registry import arguments_of
from deeplfm.regressor.conventions import as_columns, check_rows_differ, check_seed, r2_of_observed
from deeplfm.regressor.devices import checked_device, checked_dtype
from deeplfm.regressor.formats import FORMAT
from deeplfm.regressor.settings import to_json
from deeplfm.shapes import check_count

Values = NDArray[np.float64]
State = dict[str, Tensor]
Mixture = tuple[Tensor, Tensor]  # centres and standard deviations, [S, N, D] each

SETTINGS, NUMBERS = "baseline.json", "baseline.safetensors"


@final
@dataclass(frozen=True, eq=False)
class Task:
    """The data that a baseline is fitted to, in the model's units and on its device.

    x:        inputs [N, P]; a series lies in [0, 1].
    y:        targets [N, D] with mean 0 and spread 1, and 0 where nothing was observed.
    observed: [N, D], which targets were observed.
    seed:     the seed of the fit.
    progress: whether to show a bar.
    scaling:  the units of the data; None where nobody said.
    """

    x: Tensor
    y: Tensor
    observed: Tensor
    seed: int
    progress: bool
    scaling: Scaling | None = None

    def gaps(self) -> tuple[Values, Values]:
        """Inputs [N, P] and targets [N, D] as numpy arrays, NaN where nothing was observed."""
        y = torch.where(self.observed, self.y, torch.nan)
        return self.x.double().cpu().numpy(), y.double().cpu().numpy()

    def units(self) -> dict[str, Values]:
        """Origins, means and scales by name, for a model whose numbers are in units of the data."""
        if self.scaling is None:
            raise InputError("the task must know the units of its data; it does not. Pass scaling.")
        return self.scaling.arrays()


@final
@dataclass(frozen=True, eq=False)
class Fitted:
    """The state of a fit, with the units and the names of its data.

    flat: the targets were [N], and so are predictions.
    """

    state: State
    scaling: Scaling
    input_names: tuple[str, ...]
    output_names: tuple[str, ...]
    history: dict[str, Values]
    flat: bool


class Baseline(RegressorMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """A model that fits, predicts with uncertainty, scores, saves and loads.

    A subclass has parameters (`seed`, `device`, `dtype` and `progress` among them), the methods
    `fit_state` and `mixture`, and if it needs one, `check`. After `fit` it has `fitted_`,
    `history_` and `output_names_`.
    """

    seed: int
    device: str
    dtype: str
    progress: bool

    @abstractmethod
    def fit_state(self, task: Task, history: History) -> State:
        """The tensors, by name, that predictions need. They are what is saved.

        New inputs come to `mixture` on the device and in the dtype of the tensor "x" of the state,
        or of the task, if the state has none.
        """

    @abstractmethod
    def mixture(self, state: State, x: Tensor, num_samples: int, seed: int) -> Mixture:
        """The prediction at inputs x [N, P], in the model's units.

        S Gaussians of equal weight per output: their centres and their standard deviations, noise
        included, [S, N, D] each. A model without samples has S = 1.
        """

    def check(self, data: Dataset) -> None:
        """Raise InputError where a parameter cannot be used, or not with these data."""

    def fit(self, X: Any, y: Any) -> "Baseline":
        """Fit to inputs X [N] or [N, P] and targets y [N] or [N, D], NaN where not observed."""
        check_seed(self.seed)
        device, dtype = checked_device(self.device), checked_dtype(self.dtype)
        if y is None:
            raise InputError(
                f"{type(self).__name__} requires y to be passed, but the target y is None. "
                "Pass targets."
            )
        data = dataset(X, y)
        check_rows_differ(data)
        self.check(data)
        validate_data(self, as_columns(X), skip_check_array=True)
        scaling, history = fit_scaling(data), History()
        observed = torch.tensor(data.observed, device=device)
        x, targets = scaling.inputs(data.x), np.nan_to_num(scaling.targets(data.y))
        numbers = [torch.tensor(v, dtype=dtype, device=device) for v in (x, targets)]
        task = Task(numbers[0], numbers[1], observed, self.seed, self.progress, scaling)
        state = {"x": task.x[:0]} | self.fit_state(task, history)
        names = data.input_names, data.output_names
        return self._with(Fitted(state, scaling, *names, history.arrays(), dimensions(y) == 1))

    @overload
    def predict(self, X: Any, return_std: Literal[False] = False) -> Values: ...

    @overload
    def predict(self, X: Any, return_std: Literal[True]) -> tuple[Values, Values]: ...

    def predict(self, X: Any, return_std: bool = False) -> Values | tuple[Values, Values]:
        """The mean, [N] or [N, D] as y was; with `return_std` also the spread of a new y."""
        prediction = self.predictive(X)
        if return_std:
            return self._shaped(prediction.mean), self._shaped(prediction.std)
        return self._shaped(prediction.mean)

    def predictive(self, X: Any, num_samples: int = 200, seed: int | None = None) -> Predictive:
        """A mixture of Gaussians in closed form, [N, D]; without a seed two calls agree.

        A model that predicts one Gaussian per point has one component, whatever `num_samples` is.
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
            mixture = self.mixture(fitted.state, x, num_samples, start)
        centers, std = (value.double().cpu().numpy() for value in mixture)
        centers, std = fitted.scaling.functions(centers), fitted.scaling.spread(std)
        components = NormalComponents(centers, std)
        return Predictive(centers, components, fitted.output_names, start)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R² over the observed targets, averaged over the outputs."""
        return r2_of_observed(y, self.predict(X), sample_weight)

    @property
    def history_(self) -> dict[str, Values]:
        """The columns step, loss and seconds since the start, one entry per recorded step."""
        check_is_fitted(self)
        return self.fitted_.history

    def save(self, folder: Path | str) -> None:
        """Write settings as JSON and the state as safetensors; `load` reads them back."""
        check_is_fitted(self)
        folder, fitted = Path(folder), self.fitted_
        parameters = arguments_of(self)  # before anything is written: it may refuse
        tensors = {f"state.{key}": value for key, value in fitted.state.items()}
        for field, array in fitted.scaling.arrays().items():
            tensors[f"scaling.{field}"] = torch.tensor(array)
        tensors |= {f"history.{n}": torch.tensor(column) for n, column in fitted.history.items()}
        settings = {
            "format": FORMAT,
            "baseline": type(self).__name__,
            "parameters": to_json(parameters),
            "input_names": list(fitted.input_names),
            "output_names": list(fitted.output_names),
            "feature_names": getattr(self, "feature_names_in_", np.array([])).tolist(),
            "flat": fitted.flat,
        }
        written = {SETTINGS: files.json_text(settings).encode()}
        with files.locked(folder, "a model that is saved"):
            files.seal(folder, written | {NUMBERS: files.tensor_bytes(tensors)})

    def arguments(self) -> dict[str, Any]:
        """The parameters that make the same model again, without its fit."""
        return dict(self.get_params(deep=False))

    def restore(
        self, settings: dict[str, Any], numbers: dict[str, Tensor], device: str
    ) -> "Baseline":
        """Become the fitted model that was saved with these settings and numbers."""
        groups: dict[str, dict[str, Tensor]] = {"state": {}, "scaling": {}, "history": {}}
        for name, value in numbers.items():
            group, _, key = name.partition(".")
            groups[group][key] = value
        state = {name: value.to(device) for name, value in groups["state"].items()}
        scaling = Scaling.from_arrays({n: v.numpy() for n, v in groups["scaling"].items()})
        history = {name: value.numpy() for name, value in groups["history"].items()}
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
