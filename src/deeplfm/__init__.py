"""deeplfm: deep latent force models, deep Gaussian processes whose every layer is a linear ODE.

    model = DeepLFMRegressor().fit(t, y);   DeepLFMRegressor(FourierDLFM(), Training(steps=300))

The front door: the estimator, recipes of deep models, physics (`FirstOrder`, `SecondOrder`,
`LinearODE`, `NoDynamics`), and the exact kernel of a shallow model. Closed forms are in
`deeplfm.responses`, scores in `deeplfm.evaluation.metrics`, pictures in `deeplfm.plotting`.
"""

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from deeplfm.data import from_long
from deeplfm.errors import DeepLFMError, InputError, NumericalError
from deeplfm.evaluation.predictive import Predictive
from deeplfm.forces import Matern
from deeplfm.greens_functions import FirstOrder, LinearODE, NoDynamics, SecondOrder
from deeplfm.likelihoods import Gaussian, StudentT
from deeplfm.models import FourierDLFM, InducingDLFM, MarkovDLFM
from deeplfm.models.latent_force_kernel import LatentForceKernel
from deeplfm.registry import register
from deeplfm.training import Stage, Training

if TYPE_CHECKING:
    from deeplfm.regressor.estimator import DeepLFMRegressor
    from deeplfm.regressor.loading import load

# scikit-learn takes a second to import.
_LAZY = {"DeepLFMRegressor": "estimator", "load": "loading"}

# The version of the installed package, as a string.
try:
    __version__ = version("deeplfm")
except PackageNotFoundError:  # run from a source tree that is not installed
    __version__ = "0+unknown"

__all__ = [
    "DeepLFMError",
    "DeepLFMRegressor",
    "FirstOrder",
    "FourierDLFM",
    "Gaussian",
    "InducingDLFM",
    "InputError",
    "LatentForceKernel",
    "LinearODE",
    "MarkovDLFM",
    "Matern",
    "NoDynamics",
    "NumericalError",
    "Predictive",
    "SecondOrder",
    "Stage",
    "StudentT",
    "Training",
    "__version__",
    "from_long",
    "load",
    "register",
]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(import_module(f"deeplfm.regressor.{_LAZY[name]}"), name)
    raise AttributeError(f"module 'deeplfm' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
