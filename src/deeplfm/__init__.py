"""deeplfm: deep latent force models, deep Gaussian processes whose every layer is a linear ODE.

    model = DeepLFMRegressor().fit(t, y);   DeepLFMRegressor(FourierDLFM(), Training(steps=300))

The front door: the estimator, recipes of deep models, physics (`FirstOrder`, `SecondOrder`,
`LinearODE`, `NoDynamics`), and the exact kernel of a shallow model. Closed forms are in
`deeplfm.responses`, scores in `deeplfm.evaluation.metrics`, pictures in `deeplfm.plotting`.
"""

from importlib import import_module

TYPE_CHECKING = False  # as in `typing`, which takes a while to import
if TYPE_CHECKING:
    __version__: str
    from deeplfm.data import from_long
    from deeplfm.errors import DeepLFMError, InputError, NumericalError
    from deeplfm.evaluation.predictive import Predictive
    from deeplfm.forces import Matern
    from deeplfm.greens_functions import FirstOrder, LinearODE, NoDynamics, SecondOrder
    from deeplfm.likelihoods import Gaussian, StudentT
    from deeplfm.models import FourierDLFM, InducingDLFM, MarkovDLFM
    from deeplfm.models.latent_force_kernel import LatentForceKernel
    from deeplfm.registry import register
    from deeplfm.regressor.estimator import DeepLFMRegressor
    from deeplfm.regressor.loading import load
    from deeplfm.training import Stage, Training

# Where each name lives: it is imported when it is asked for, so that a program can begin at once.
_HOMES = {
    "data": ("from_long",),
    "errors": ("DeepLFMError", "InputError", "NumericalError"),
    "evaluation.predictive": ("Predictive",),
    "forces": ("Matern",),
    "greens_functions": ("FirstOrder", "LinearODE", "NoDynamics", "SecondOrder"),
    "likelihoods": ("Gaussian", "StudentT"),
    "models": ("FourierDLFM", "InducingDLFM", "MarkovDLFM"),
    "models.latent_force_kernel": ("LatentForceKernel",),
    "registry": ("register",),
    "regressor.estimator": ("DeepLFMRegressor",),
    "regressor.loading": ("load",),
    "training": ("Stage", "Training"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}
_ROOMS = {
    "data",
    "errors",
    "evaluation",
    "forces",
    "greens_functions",
    "layers",
    "likelihoods",
    "models",
    "objectives",
    "plotting",
    "randomness",
    "registry",
    "regressor",
    "report",
    "responses",
    "shapes",
    "statespace",
    "sums",
    "training",
    "variational",
}

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


def __getattr__(name: str) -> object:
    if name in _HOME_OF:
        found: object = getattr(import_module(f"deeplfm.{_HOME_OF[name]}"), name)
        globals()[name] = found
        return found
    if name in _ROOMS:
        return import_module(f"deeplfm.{name}")
    if name == "__version__":
        return _version()
    raise AttributeError(f"module 'deeplfm' has no attribute {name!r}")


def _version() -> str:
    """The version of the installed package."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("deeplfm")
    except PackageNotFoundError:  # run from a source tree that is not installed
        return "0+unknown"


def __dir__() -> list[str]:
    return __all__
