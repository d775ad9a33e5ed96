"""BASELINES: models that deep latent force models are compared with, fitted in the same way.

    from deeplfm.paper.baselines.exact_gp import PeriodicGP
    PeriodicGP().fit(X, y).predictive(X_new)

One file, one baseline, which the decorator `baseline` registers. Sparse and deep processes need
GPyTorch (the extra `baselines`); the others need nothing more.
"""

from deeplfm.paper.baselines.base import Baseline, Mixture, State, Task
from deeplfm.paper.baselines.history import History
from deeplfm.paper.baselines.loading import load
from deeplfm.paper.baselines.registry import baseline, registered_baselines

__all__ = [
    "Baseline",
    "History",
    "Mixture",
    "State",
    "Task",
    "baseline",
    "load",
    "registered_baselines",
]
