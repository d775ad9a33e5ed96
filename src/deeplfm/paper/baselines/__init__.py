"""Models that deep latent force models are compared with, behind the same door.

    deeplfm.paper.baselines.PeriodicGP().fit(X, y).predictive(X_new)

Sparse and deep processes need GPyTorch (the extra `baselines`); the others need nothing more.
"""

from deeplfm.paper.baselines.autoregressive import AutoregressiveRidge
from deeplfm.paper.baselines.deep_gp import DeepGP
from deeplfm.paper.baselines.door import Baseline
from deeplfm.paper.baselines.exact_gp import ExactGP, PeriodicGP
from deeplfm.paper.baselines.lag_ridge import LagRidge
from deeplfm.paper.baselines.loading import load
from deeplfm.paper.baselines.sparse import SLMC, SVGP
from deeplfm.paper.baselines.spectral_mixture import SpectralMixtureGP
from deeplfm.paper.baselines.trees import BoostedTrees

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
