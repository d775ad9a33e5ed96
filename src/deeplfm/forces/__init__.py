"""LATENT FORCES: Gaussian processes that drive the ODEs. Know no physics."""

from deeplfm.forces.path import ForcePath
from deeplfm.forces.posterior import InducingPosterior
from deeplfm.forces.prior import SquaredExponential

__all__ = ["ForcePath", "InducingPosterior", "SquaredExponential"]
