"""A small prediction to draw, and what is on axes."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from deeplfm.evaluation.predictive import Predictive
from mixtures import mixture

RANDOM = np.random.default_rng(0)
X = RANDOM.permutation(np.linspace(0, 2, 30))
ORDER = np.argsort(X)
Y = np.stack([np.sin(X), 10 + np.cos(X)], axis=1)
Y[::3, 0] = np.nan


def prediction(names: tuple[str, ...] = ("abp", "ecg"), noise: float = 0.3) -> Predictive:
    samples = np.nan_to_num(Y, nan=0.5) + 0.2 * np.random.default_rng(1).standard_normal(
        (20, 30, 2)
    )
    if noise == 0:
        return Predictive.without_noise(samples, names)
    return mixture(samples, np.full(2, noise), None, names)


def line(axes: Axes, label: str) -> Any:
    (found,) = [one for one in axes.lines if one.get_label() == label]
    return found


def texts(axes: Axes) -> list[str]:
    legend = axes.get_legend()
    assert legend is not None
    return [text.get_text() for text in legend.get_texts()]


def render(axes: Any) -> None:
    """Layout and text are only made here: this is where hostile names would break."""
    np.atleast_1d(axes)[0].figure.canvas.draw()
