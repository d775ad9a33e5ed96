"""LAYERS: distributions over functions, one ODE wide."""

from deeplfm.layers.base import Layer, Path
from deeplfm.layers.fourier import FourierLayer

__all__ = ["FourierLayer", "Layer", "Path"]
