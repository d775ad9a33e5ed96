"""PHYSICS: linear ODEs as their Green's functions. Knows no probability and no forces."""

from deeplfm.greens_functions.base import GreensFunction
from deeplfm.greens_functions.dynamics import Dynamics, FixedDynamics
from deeplfm.greens_functions.factors import Linear, Quadratic
from deeplfm.greens_functions.first_order import FirstOrder
from deeplfm.greens_functions.linear import LinearODE, NoDynamics
from deeplfm.greens_functions.second_order import SecondOrder

__all__ = [
    "Dynamics",
    "FirstOrder",
    "FixedDynamics",
    "GreensFunction",
    "Linear",
    "LinearODE",
    "NoDynamics",
    "Quadratic",
    "SecondOrder",
]
