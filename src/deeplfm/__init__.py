"""deeplfm: deep latent force models, deep Gaussian processes whose every layer is a linear ODE.

The front door: physics (`FirstOrder`, `SecondOrder`, `LinearODE`, `NoDynamics`), recipes
(`FourierDLFM`, `InducingDLFM`) with their `Training`, and the exact kernel of a shallow model.
`deeplfm.fitting` fits a recipe; closed forms are in `deeplfm.responses`.
"""

from importlib.metadata import PackageNotFoundError, version

from deeplfm.data import from_long
from deeplfm.errors import DeepLFMError, InputError, NumericalError
from deeplfm.greens_functions import FirstOrder, LinearODE, NoDynamics, SecondOrder
from deeplfm.kernels import LatentForceKernel
from deeplfm.likelihoods import Gaussian, StudentT
from deeplfm.models import FourierDLFM, InducingDLFM
from deeplfm.predictive import Predictive
from deeplfm.training import Stage, Training

try:
    __version__ = version("deeplfm")
except PackageNotFoundError:  # run from a source tree that is not installed
    __version__ = "0+unknown"

__all__ = [
    "DeepLFMError",
    "FirstOrder",
    "FourierDLFM",
    "Gaussian",
    "InducingDLFM",
    "InputError",
    "LatentForceKernel",
    "LinearODE",
    "NoDynamics",
    "NumericalError",
    "Predictive",
    "SecondOrder",
    "Stage",
    "StudentT",
    "Training",
    "__version__",
    "from_long",
]
