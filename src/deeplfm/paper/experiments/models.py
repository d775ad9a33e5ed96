"""The models of the tables by name: ours, with the paper's settings, and what they are held to.

A name gives a new estimator, unfitted; all stand behind the same door (fit, predictive, history_).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias, final

from sklearn.base import clone

from deeplfm.errors import InputError
from deeplfm.greens_functions import NoDynamics
from deeplfm.models import FourierDLFM, InducingDLFM, Recipe
from deeplfm.paper.baselines import (
    SLMC,
    SVGP,
    AutoregressiveRidge,
    Baseline,
    BoostedTrees,
    DeepGP,
    ExactGP,
    LagRidge,
    PeriodicGP,
    SpectralMixtureGP,
)
from deeplfm.regressor.estimator import DeepLFMRegressor
from deeplfm.training import Training

Estimator: TypeAlias = DeepLFMRegressor | Baseline


@final
@dataclass(frozen=True)
class Model:
    """How a table calls it, and how it is made."""

    label: str
    make: Callable[[], Estimator]


def _ours(recipe: Recipe, training: Training | None = None) -> Callable[[], Estimator]:
    return lambda: DeepLFMRegressor(recipe, training or Training())


MIXTURE = Training(restarts=6, combine="mixture")
LARGE_MIXTURE = Training(restarts=12, combine="mixture")
VIP_PAPER = Training(steps=2000, num_samples=50, rate="constant", warmup=0.0, gradient_norm=None)

MODELS = {
    "dlfm-rff-mixture-12": Model("DLFM-RFF (ours, 12 starts)", _ours(FourierDLFM(), LARGE_MIXTURE)),
    "dlfm-rff-mixture": Model("DLFM-RFF (ours, 6 starts)", _ours(FourierDLFM(), MIXTURE)),
    "dlfm-rff": Model("DLFM-RFF (ours)", _ours(FourierDLFM())),
    "dlfm-vip": Model("DLFM-VIP (ours)", _ours(InducingDLFM())),
    "dlfm-rff-paper": Model("DLFM-RFF (paper)", _ours(FourierDLFM.paper(), Training.paper())),
    "dlfm-vip-paper": Model("DLFM-VIP (paper)", _ours(InducingDLFM.paper(), VIP_PAPER)),
    "dgp-rff": Model("DGP-RFF", _ours(FourierDLFM(greens_function=NoDynamics()))),
    "dgp-vip": Model("DGP, pathwise", _ours(InducingDLFM(greens_function=NoDynamics()))),
    "dgp-dsvi": Model("DGP-DSVI", DeepGP),
    "lfm-rff": Model("LFM-RFF", _ours(FourierDLFM(num_layers=1, num_forces=2, num_features=20))),
    "slmc": Model("SLMC", SLMC),
    "svgp": Model("SVGP", SVGP),
    "gp": Model("GP", ExactGP),
    "periodic-gp": Model("GP, locally periodic", PeriodicGP),
    "mixture-gp": Model("GP, spectral mixture", SpectralMixtureGP),
    "lag-ridge": Model("ridge on lags", LagRidge),
    "ar-ridge": Model("autoregressive ridge", AutoregressiveRidge),
    "trees": Model("boosted trees", BoostedTrees),
}
OURS = ("dlfm-rff-mixture", "dlfm-rff", "dlfm-vip")
PAPER = ("dlfm-rff-paper", "dlfm-vip-paper")


def make(name: str, **settings: object) -> Estimator:
    """A new estimator; `settings` by their names, nested ones as `model__num_inducing`."""
    if name not in MODELS:
        raise InputError(f"models must be among {sorted(MODELS)}; got {name!r}. Correct the name.")
    return MODELS[name].make().set_params(**settings)


# Where a run of seconds needs no more; a name counts for the estimators that have it.
_FEW = {
    "steps": 3,
    "num_inducing": 10,
    "batch_size": 100,
    "num_components": 2,
    "few": 200,
    "model__num_features": 10,
    "model__num_inducing": 10,
    "model__num_basis": 10,
    "model__grid_points": 20,
    "training__steps": 4,
    "training__num_samples": 2,
}


def smaller(estimator: Estimator) -> Estimator:
    """The same path in seconds: few features or inducing points, few steps."""
    known = estimator.get_params()
    few: dict[str, object] = {name: size for name, size in _FEW.items() if name in known}
    if "training" in known:
        training: Training = known["training"]
        few["training__stages"] = tuple(replace(one, num_samples=1) for one in training.stages)
        few["training__restarts"] = min(2, training.restarts)
    small: Estimator = clone(estimator).set_params(**few)
    return small
