"""LATENT FORCES: Gaussian processes that drive the ODEs. Know no physics."""

from deeplfm.forces.kernels import SMOOTH, ForceKernel, MarkovForce, SquaredExponential
from deeplfm.forces.matern import Matern
from deeplfm.forces.path import ForcePath
from deeplfm.forces.posterior import InducingPosterior
from deeplfm.forces.prior import ForcePrior

__all__ = [
    "SMOOTH",
    "ForceKernel",
    "ForcePath",
    "ForcePrior",
    "InducingPosterior",
    "MarkovForce",
    "Matern",
    "SquaredExponential",
]
