"""MODELS: layers composed, X → layer → layer → f."""

from deeplfm.models.deep_lfm import DeepLFM
from deeplfm.models.recipes import FourierDLFM
from deeplfm.models.skip import Concatenate, NoSkip, Skip

__all__ = ["Concatenate", "DeepLFM", "FourierDLFM", "NoSkip", "Skip"]
