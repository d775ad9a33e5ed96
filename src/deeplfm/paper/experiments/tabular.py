"""Settings of the models for table 3, chosen on a share of the training rows.

The paper trains for 20 000 to 100 000 steps; here are as many as its learning curves need. Our own
settings are those that tables need: plane waves in all inputs together, infinite memory, more
features or inducing points, and an objective that may use the spread of functions as noise.
"""

import math
from dataclasses import replace

from deeplfm.greens_functions import NoDynamics
from deeplfm.models import FourierDLFM, InducingDLFM, Recipe
from deeplfm.paper.experiments.models import Estimator, make
from deeplfm.regressor.estimator import DeepLFMRegressor
from deeplfm.training import Stage, Training

_INPUTS = {"power": 4, "protein": 9}
_SLOWER = frozenset({"hyperparameters"})
_PAPER = Training(num_samples=100, batch_size=200, rate="constant", warmup=0.0, gradient_norm=None)
_OURS = Training(objective="multi_sample")
_BASELINES = {
    "dgp-dsvi": {"steps": 10_000, "batch_size": 1000},
    "svgp": {"steps": 10_000, "batch_size": 1000},
}


def tabular_model(name: str, table: str) -> Estimator:
    """A new estimator of a model of table 3, for one of its two tables."""
    recipes = {
        "dlfm-rff": _fourier,
        "dlfm-vip": _inducing,
        "dlfm-rff-paper": _fourier_of_the_paper,
        "dlfm-vip-paper": _inducing_of_the_paper,
        "dgp-rff": _without_dynamics,
    }
    if name in recipes:
        return DeepLFMRegressor(*recipes[name](table), check=False)
    return make(name, **_BASELINES.get(name, {}))


def _fourier(table: str) -> tuple[Recipe, Training]:
    small = table == "power"
    recipe = FourierDLFM(
        hidden_dim=6 if small else 9,
        num_features=800 if small else 400,
        lengthscale=0.5 if small else 1.0,
        memory="infinite",
        inputs="product",
        frequencies="fixed_noise",
        weights="diagonal",
        units="scaled",
    )
    size, samples = (500, 10) if small else (1000, 6)
    return recipe, replace(_OURS, steps=7000, batch_size=size, num_samples=samples)


def _inducing(table: str) -> tuple[Recipe, Training]:
    inputs = _INPUTS[table]
    recipe = InducingDLFM(hidden_dim=inputs, num_forces=inputs, num_inducing=300)
    steps, samples = (5000, 10) if table == "power" else (10_000, 4)
    return recipe, replace(_OURS, steps=steps, batch_size=1000, num_samples=samples)


def _fourier_of_the_paper(table: str) -> tuple[Recipe, Training]:
    """q(W) starts smaller than the paper's 1, from where it takes tens of thousands of steps."""
    recipe = replace(FourierDLFM.paper(), num_forces=5, num_features=20, weight_scale=0.1)
    stages = (Stage(0.1, 1, _SLOWER), Stage(0.12, 100, _SLOWER))
    return recipe, replace(_PAPER, steps=30_000, stages=stages)


def _inducing_of_the_paper(table: str) -> tuple[Recipe, Training]:
    """Lengthscales start at 1: at 0.1 the inducing points of a table are all independent."""
    recipe = replace(InducingDLFM.paper(), lengthscale=1.0, hidden_lengthscale=1.0)
    steps, size = (60_000, None) if table == "power" else (50_000, 5000)
    return recipe, replace(_PAPER, steps=steps, num_samples=50, batch_size=size)


def _without_dynamics(table: str) -> tuple[Recipe, Training]:
    recipe = replace(
        FourierDLFM.paper(),
        greens_function=NoDynamics(),
        random_sensitivities=False,
        lengthscale=math.log(_INPUTS[table]),
        hidden_lengthscale=math.log(3),
    )
    stages = (Stage(0.5, 1, _SLOWER), Stage(0.6, 100, _SLOWER))
    return recipe, replace(_PAPER, steps=20_000, stages=stages)
