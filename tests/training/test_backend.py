"""The backend of a training governs what follows: steps, bounds, blocks, predictions."""

from typing import Any

import numpy as np
import pytest

import deeplfm as dlfm
from deeplfm.sums import SUMS, bumps_at


class NotAllowedError(Exception):
    """A fast form was used where the plain one was asked for."""


def refuse(*_: Any, **__: Any) -> Any:
    raise NotAllowedError


@pytest.mark.parametrize(
    "recipe",
    [
        dlfm.FourierDLFM(num_features=6),
        dlfm.InducingDLFM(num_inducing=8, num_basis=8, weight_init="prior"),
    ],
    ids=["fourier", "inducing"],
)
def test_plain_is_plain_everywhere(recipe: Any) -> None:
    t = np.linspace(0, 1, 50)
    y = np.stack([np.sin(9 * t), np.cos(9 * t)], axis=1)
    training = dlfm.Training(steps=4, num_samples=2, restarts=2, held_out=0.2, backend="plain")
    # A start is closed-form and no part of the training: it takes the fastest there is.
    trapped = [each for each in SUMS if each is not bumps_at]
    traps = [each.add("torch", refuse, first=True, anywhere=True) for each in trapped]
    try:
        model = dlfm.DeepLFMRegressor(recipe, training, progress=False)
        model.fit(t, y)
        model.predictive(t, num_samples=3)
        model.latent_forces(t, num_samples=3)
        assert set(model.history_["backend"]) == {"plain"}
        with pytest.raises(NotAllowedError):
            model.set_params(training__backend="auto").fit(t, y)
    finally:
        for each, trap in zip(trapped, traps, strict=True):
            each.remove(trap)
