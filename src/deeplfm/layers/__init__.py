"""LAYERS: distributions over functions, one ODE wide."""

from deeplfm.layers.base import Layer, Path, join
from deeplfm.layers.fourier import FourierLayer
from deeplfm.layers.inducing import InducingLayer

__all__ = ["FourierLayer", "InducingLayer", "Layer", "Path", "join"]
