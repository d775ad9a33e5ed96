"""A draw holds numbers: it stays what it is when the layer that drew it moves."""

from typing import Any

import pytest
import torch

import deeplfm as dlfm
from deeplfm.layers import FourierLayer, InducingLayer, Layer


def fourier(g: Any, **options: Any) -> FourierLayer:
    return FourierLayer(
        2, 3, greens_function=g, num_features=4, generator=torch.Generator().manual_seed(0),
        **options,
    )  # fmt: skip


def inducing(g: Any, **options: Any) -> InducingLayer:
    z = torch.rand(5, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return InducingLayer(
        2, 3, greens_function=g, inducing_inputs=z, num_forces=2, num_basis=6,
        generator=torch.Generator().manual_seed(0), **options,
    )  # fmt: skip


LAYERS = {
    "fourier": fourier(dlfm.FirstOrder(2.0), frequencies="fixed_noise"),
    "resampled": fourier(dlfm.SecondOrder(0.5, 3.0), frequencies="resampled", input_weights=True),
    "fixed physics": fourier(dlfm.FirstOrder(2.0, learn=False), random_phases=True),
    "shared forces": fourier(dlfm.FirstOrder(2.0), shared_forces=True, num_forces=2),
    "plane waves": fourier(dlfm.FirstOrder(2.0), inputs="product", memory="infinite"),
    "inducing": inducing(dlfm.FirstOrder(2.0)),
    "resonators": inducing(dlfm.SecondOrder(0.5, 3.0), mean_weights=torch.ones(2, 3)),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
@pytest.mark.parametrize("with_gradients", [True, False])
@pytest.mark.parametrize("layer", LAYERS.values(), ids=LAYERS)
def test_a_draw_never_changes(layer: Layer, with_gradients: bool, dtype: torch.dtype) -> None:
    layer = layer.to(dtype)
    x = torch.rand(1, 9, 2, generator=torch.Generator().manual_seed(1)).to(dtype)
    with torch.set_grad_enabled(with_gradients):
        path = layer.draw(3, torch.Generator().manual_seed(2))
    before = {name: value.clone() for name, value in layer.state_dict().items()}
    with torch.no_grad():
        values, forces = path(x).clone(), layer.forces(x, path).clone()
        for value in (*layer.parameters(), *layer.buffers()):
            if value.is_floating_point():
                value.mul_(1.5).add_(0.1)
        try:
            assert torch.equal(path(x), values)
            assert torch.equal(layer.forces(x, path), forces)
            moved = layer.draw(3, torch.Generator().manual_seed(2))
            assert not torch.equal(moved(x), values)  # the layer did move
        finally:
            layer.load_state_dict(before)
