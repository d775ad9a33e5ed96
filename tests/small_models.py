"""Small models and batches that several tests share."""

from typing import Any

import torch

import deeplfm as dlfm
from deeplfm.layers import FourierLayer
from deeplfm.likelihoods import AdditiveNoise, Gaussian
from deeplfm.models import Concatenate, DeepLFM
from deeplfm.objectives import Batch


def shallow(weights: Any, **options: Any) -> tuple[DeepLFM, FourierLayer, Batch]:
    generator = torch.Generator().manual_seed(4)
    layer = FourierLayer(
        1, 1, greens_function=dlfm.FirstOrder(2.0), num_features=6, lengthscale=0.2,
        weights=weights, generator=generator, **options,
    )  # fmt: skip
    model = DeepLFM([layer], Concatenate(), Gaussian(0.05).tiled(1))
    x = torch.rand(25, 1, dtype=torch.float64, generator=generator)
    y = torch.sin(9 * x) + 0.2 * torch.randn(25, 1, dtype=torch.float64, generator=generator)
    return model, layer, Batch(x, y, torch.ones_like(y, dtype=torch.bool), 25)


def noise_variance(model: DeepLFM) -> torch.Tensor:
    """σ² [D] of a model whose noise is added to its functions."""
    assert isinstance(model.likelihood, AdditiveNoise)
    return model.likelihood.noise_variance


def deep(**options: Any) -> DeepLFM:
    generator = torch.Generator().manual_seed(7)
    hidden = FourierLayer(
        2, 3, greens_function=dlfm.SecondOrder(), num_features=5, generator=generator, **options
    )
    last = FourierLayer(
        5, 2, greens_function=dlfm.FirstOrder(), num_features=4, num_forces=2, per_output=True,
        generator=generator, **options,
    )  # fmt: skip
    return DeepLFM([hidden, last], Concatenate(), Gaussian().tiled(2))


def deep_batch(rows: int = 12) -> Batch:
    generator = torch.Generator().manual_seed(8)
    x = torch.randn(rows, 2, dtype=torch.float64, generator=generator)
    y = torch.randn(rows, 2, dtype=torch.float64, generator=generator)
    return Batch(x, y, torch.rand(rows, 2, generator=generator) > 0.3, rows)
