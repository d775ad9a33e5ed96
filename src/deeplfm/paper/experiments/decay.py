"""The paper's figure 6: what the decay of a layer does to its latent force.

The left panel shows e^{-γx}; the right one shows a drawn force, and the same force through a
one-layer DLFM-VIP, each scaled to [-1, 1]. A fast decay passes the force on; a slow one integrates.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from deeplfm.data import files
from deeplfm.greens_functions import FirstOrder
from deeplfm.layers import InducingLayer
from deeplfm.plotting import Curve, plot_filters, save_figure, to_unit_range

SLOW, FAST = 0.01, 200.0
_LENGTHSCALE, _END, _POINTS, _SEED = 1.0, 10.0, 400, 0


def reproduce_decay(out: Path) -> dict[str, Any]:
    """Draw the figure as PDF and PNG, and record how far the fast layer is from its force."""
    x = torch.linspace(0, _END, _POINTS, dtype=torch.float64)[:, None]
    slow, fast = (_layer(decay) for decay in (SLOW, FAST))
    with torch.no_grad():
        path = slow.draw(1, torch.Generator().manual_seed(_SEED))
        force = path.force(x)[0, :, 0].numpy()
        responses = [
            replace(path, dynamics=layer.greens_function.fixed())(x[None])[0, :, 0].numpy()
            for layer in (slow, fast)
        ]
        lags = x[:, 0] / _END
        filters = [layer.greens_function(lags)[0].numpy() for layer in (slow, fast)]
    labels = [f"γ = {decay:g}" for decay in (SLOW, FAST)]
    figure = plot_filters(
        lags.numpy(),
        [Curve(label, values) for label, values in zip(labels, filters, strict=True)],
        x[:, 0].numpy(),
        Curve("latent force", force),
        [Curve(f"layer, {label}", v) for label, v in zip(labels, responses, strict=True)],
    )
    for kind in ("pdf", "png"):
        save_figure(figure, out / "figures" / f"decay.{kind}")
    distances = [
        float(np.abs(to_unit_range(response) - to_unit_range(force)).max())
        for response in responses
    ]
    result = {
        "experiment": "decay",
        "decays": [SLOW, FAST],
        "largest_distance_to_force": distances,
        "figure": str(out / "figures" / "decay.pdf"),
    }
    files.save_json(out / "decay" / "decay.json", result | {"figure": "figures/decay.pdf"})
    return result


def _layer(decay: float) -> InducingLayer:
    return InducingLayer(
        1,
        1,
        greens_function=FirstOrder(decay),
        inducing_inputs=torch.linspace(0, _END, 30, dtype=torch.float64)[:, None],
        lengthscale=_LENGTHSCALE,
        num_basis=200,
    )
