"""A saved estimator, read again."""

from pathlib import Path

import numpy as np

from deeplfm.data import files
from deeplfm.regressor import saving
from deeplfm.regressor.devices import checked_device
from deeplfm.regressor.estimator import DeepLFMRegressor


def load(folder: Path | str, device: str = "auto") -> DeepLFMRegressor:
    """Read the estimator that `DeepLFMRegressor.save` or `deeplfm fit` wrote, ready to predict.

    Args:
        folder: the folder that was written.
        device: where it predicts: "auto", "cpu", "cuda", "cuda:1" …

    Example:
        >>> import tempfile
        >>> recipe, training = dlfm.FourierDLFM(num_features=4), dlfm.Training(steps=1)
        >>> model = dlfm.DeepLFMRegressor(recipe, training, progress=False)
        >>> model = model.fit([0, 1, 2], [1, 3, 2])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model.save(folder)
        ...     again = dlfm.load(folder)
        >>> bool(np.allclose(again.predict([0.5]), model.predict([0.5])))
        True
    """
    fitted, settings = saving.load_with_estimator(folder, checked_device(device))
    if settings is None:  # saved without an estimator around it
        _, dtype = fitted.place
        settings = {"model": fitted.recipe, "training": fitted.training, "seed": fitted.seed}
        settings |= {"dtype": dtype}
    flat, names = settings.pop("flat", False), settings.pop("feature_names", ())
    with files.understood(Path(folder) / saving.SETTINGS):
        model = DeepLFMRegressor(**settings).with_fitted(fitted, flat)
    model.n_features_in_ = len(fitted.input_names)
    if names:
        model.feature_names_in_ = np.array(names, dtype=object)
    return model
