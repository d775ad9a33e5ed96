"""scikit-learn's habits, as every estimator of this package keeps them."""

from dataclasses import fields, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from deeplfm.data import Dataset
from deeplfm.errors import InputError
from deeplfm.shapes import observed_values

Values = NDArray[np.float64]


def r2_of_observed(y: Any, mean: Values, sample_weight: Any = None) -> float:
    """R² of a prediction over what was observed, averaged over the outputs."""
    from sklearn.metrics import r2_score

    known, found = observed_values(y), mean[:, None] if mean.ndim == 1 else mean
    known = known[:, None] if known.ndim == 1 else known
    if known.shape != found.shape:
        raise InputError(
            f"y must be {list(found.shape)}, as in the fit; got {known.shape}. Reshape it."
        )
    weight = np.ones(len(known)) if sample_weight is None else np.asarray(sample_weight, float)
    if weight.shape != (len(known),):
        raise InputError(
            f"sample_weight must be one number per row, [{len(known)}]; got {weight.shape}. "
            "Align it with X."
        )
    scores = []
    for truth, guess in zip(known.T, found.T, strict=True):
        seen = ~np.isnan(truth)
        if not seen.any():
            raise InputError("every output of y must be observed; got only NaN. Drop it.")
        scores.append(r2_score(truth[seen], guess[seen], sample_weight=weight[seen]))
    return float(np.mean(scores))


def check_seed(seed: Any) -> None:
    """An integer that every generator takes."""
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)):
        raise InputError(f"seed must be an integer; got {seed!r}. Pass 0.")
    if not 0 <= seed < 2**62:
        raise InputError(f"seed must be 0 or more, below 2**62; got {seed}. Pass 0.")


def check_rows_differ(data: Dataset) -> None:
    """Equal rows say nothing of a function."""
    if (data.x == data.x[0]).all():
        raise InputError(
            f"X must differ from row to row; got {len(data)} equal rows. Check the inputs."
        )


def as_columns(X: Any) -> Any:
    """X with two dimensions where it had one, so that names and widths can be compared."""
    if isinstance(X, torch.Tensor):
        X = X.detach().cpu().numpy()
    if hasattr(X, "to_frame"):
        return X.to_frame()
    if hasattr(X, "columns"):
        return X
    array = np.asarray(X)
    return array[:, None] if array.ndim == 1 else array


def comparable(settings: Any) -> dict[str, Any]:
    """The fields of settings by name, without those that hold torch modules."""
    found = {field.name: getattr(settings, field.name) for field in fields(settings)}
    parts = {name: one if isinstance(one, (list, tuple)) else [one] for name, one in found.items()}
    modules = {name for name, several in parts.items() if any(map(_is_module, several))}
    return {name: value for name, value in found.items() if name not in modules}


def with_changes(name: str, settings: Any, changes: dict[str, Any]) -> Any:
    """New settings with some fields changed; `name` is what an error calls them."""
    known = sorted(field.name for field in fields(settings))
    unknown = sorted(set(changes) - set(known))
    if unknown:
        raise InputError(
            f"{name} must be given parameters among {known}; got {unknown}. Correct the name."
        )
    return replace(settings, **changes)


def _is_module(value: object) -> bool:
    return isinstance(value, torch.nn.Module)
