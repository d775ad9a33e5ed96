"""Pictures of predictions and of what was learnt, with matplotlib.

    plot_predictions(model.predictive(x), x, observed=y);   plot_greens_functions(model)

It is imported only when something is drawn. Functions draw on the axes they are given, or make a
figure of their own, and return the axes; no setting of matplotlib is changed.
"""

from deeplfm.plotting.calibration import plot_calibration
from deeplfm.plotting.filters import Curve, plot_filters, save_figure, to_unit_range
from deeplfm.plotting.loss import plot_loss
from deeplfm.plotting.physics import plot_greens_functions, plot_time_constants
from deeplfm.plotting.predictions import (
    plot_hidden_functions,
    plot_latent_forces,
    plot_predictions,
)

__all__ = [
    "Curve",
    "plot_calibration",
    "plot_filters",
    "plot_greens_functions",
    "plot_hidden_functions",
    "plot_latent_forces",
    "plot_loss",
    "plot_predictions",
    "plot_time_constants",
    "save_figure",
    "to_unit_range",
]
