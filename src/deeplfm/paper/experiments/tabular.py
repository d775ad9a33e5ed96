"""The models of table 3: settings for tables of rows, chosen on a part of the training rows.

The paper trains for 20 000 to 100 000 steps; here are as many as its learning curves need. Our own
settings differ in what tables ask for: plane waves in all inputs together, no rest to start from,
more features or inducing points, and an objective that may spend spread of functions on noise.
"""

import math
from dataclasses import replace

from deeplfm.greens_functions import NoDynamics
from deeplfm.models import FourierDLFM, InducingDLFM, Recipe
from deeplfm.paper.experiments.models import Estimator, make
from deeplfm.regressor.estimator import DeepLFMRegressor
from deeplfm.training import Stage, Training

TABULAR = (
    "dlfm-rff", "dlfm-vip", "dlfm-rff-paper", "dlfm-vip-paper", "dgp-dsvi", "dgp-rff", "svgp",
    "trees",
)  # fmt: skip

_INPUTS = {"power": 4, "protein": 9}
_SLOWER = frozenset({"hyperparameters"})
_PAPER = Training(num_samples=100, batch_size=200, rate="constant", warmup=0.0, gradient_norm=None)
_OURS = Training(objective="multi_sample")


def tabular_model(name: str, table: str) -> Estimator:
    """A new estimator of a model of table 3, for one of its data sets."""
    if name == "dgp-dsvi":
        return make(name, steps=10_000, batch_size=1000)
    if name == "svgp":
        return make(name, steps=10_000, batch_size=1000)
    if name == "trees":
        return make(name)
    settings = {
        "dlfm-rff": _fourier,
        "dlfm-vip": _inducing,
        "dlfm-rff-paper": _fourier_of_the_paper,
        "dlfm-vip-paper": _inducing_of_the_paper,
        "dgp-rff": _without_dynamics,
    }
    return DeepLFMRegressor(*settings[name](table))


def _fourier(table: str) -> tuple[Recipe, Training]:
    few = table == "power"
    recipe = FourierDLFM(
        hidden_dim=6 if few else 9,
        num_features=800 if few else 400,
        lengthscale=0.5 if few else 1.0,
        memory="infinite",
        inputs="product",
        frequencies="fixed_noise",
        weights="diagonal",
        units="scaled",
    )
    size, samples = (500, 10) if few else (1000, 6)
    return recipe, replace(_OURS, steps=7000, batch_size=size, num_samples=samples)


def _inducing(table: str) -> tuple[Recipe, Training]:
    inputs = _INPUTS[table]
    recipe = InducingDLFM(hidden_dim=inputs, num_forces=inputs, num_inducing=300)
    steps, samples = (5000, 10) if table == "power" else (10_000, 4)
    return recipe, replace(_OURS, steps=steps, batch_size=1000, num_samples=samples)


def _fourier_of_the_paper(table: str) -> tuple[Recipe, Training]:
    """A smaller start of q(W) than its 1: from there it takes tens of thousands of steps."""
    recipe = replace(FourierDLFM.paper(), num_forces=5, num_features=20, weight_scale=0.1)
    stages = (Stage(0.1, 1, _SLOWER), Stage(0.12, 100, _SLOWER))
    return recipe, replace(_PAPER, steps=30_000, stages=stages)


def _inducing_of_the_paper(table: str) -> tuple[Recipe, Training]:
    """Lengthscales from 1: at 0.1 inducing points of a table see nothing of each other."""
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
