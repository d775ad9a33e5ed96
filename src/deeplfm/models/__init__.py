"""MODELS: layers composed, X → layer → layer → f."""

from deeplfm.models.deep_lfm import DeepLFM
from deeplfm.models.fourier_dlfm import FourierDLFM
from deeplfm.models.inducing_dlfm import InducingDLFM
from deeplfm.models.markov_dlfm import MarkovDLFM
from deeplfm.models.recipe import ModelSettings, Recipe, layer_sizes
from deeplfm.models.skip import Concatenate, NoSkip, Skip

__all__ = [
    "Concatenate",
    "DeepLFM",
    "FourierDLFM",
    "InducingDLFM",
    "MarkovDLFM",
    "ModelSettings",
    "NoSkip",
    "Recipe",
    "Skip",
    "layer_sizes",
]
