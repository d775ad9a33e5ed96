"""Models that deep latent force models are compared with, behind the same door.

    deeplfm.baselines.PeriodicGP().fit(X, y).predictive(X_new)

Sparse and deep processes need GPyTorch (the extra `baselines`); the others need nothing more.
"""

from deeplfm.baselines.autoregressive import AutoregressiveRidge
from deeplfm.baselines.deep_gp import DeepGP
from deeplfm.baselines.door import Baseline
from deeplfm.baselines.exact_gp import ExactGP, PeriodicGP
from deeplfm.baselines.lag_ridge import LagRidge
from deeplfm.baselines.loading import load
from deeplfm.baselines.sparse import SLMC, SVGP
from deeplfm.baselines.spectral_mixture import SpectralMixtureGP
from deeplfm.baselines.trees import BoostedTrees

__all__ = [
    "SLMC",
    "SVGP",
    "AutoregressiveRidge",
    "Baseline",
    "BoostedTrees",
    "DeepGP",
    "ExactGP",
    "LagRidge",
    "PeriodicGP",
    "SpectralMixtureGP",
    "load",
]
