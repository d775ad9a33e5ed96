"""The deep model is the composition of its layers, whatever re-enters between them."""

import pytest
import torch

import deeplfm as dlfm
from deeplfm.layers import FourierLayer
from deeplfm.likelihoods import Gaussian
from deeplfm.models import Concatenate, DeepLFM, NoSkip, Skip


def layer(inputs: int, outputs: int) -> FourierLayer:
    generator = torch.Generator().manual_seed(inputs)
    return FourierLayer(
        inputs, outputs, greens_function=dlfm.FirstOrder(), num_features=3, generator=generator
    )


@pytest.mark.parametrize(("skip", "width"), [(Concatenate(), 5), (NoSkip(), 3)])
def test_a_draw_is_the_composition_of_draws(skip: Skip, width: int) -> None:
    first, second = layer(2, 3), layer(width, 1)
    model = DeepLFM([first, second], skip, Gaussian().tiled(1))
    x = torch.randn(6, 2, dtype=torch.float64)
    got = model.draw(4, torch.Generator().manual_seed(0))(x)
    generator = torch.Generator().manual_seed(0)
    inner, outer = first.draw(4, generator), second.draw(4, generator)
    hidden = inner(x.expand(4, -1, -1))
    if width == 5:
        hidden = torch.cat([hidden, x.expand(4, -1, -1)], dim=-1)
    torch.testing.assert_close(got, outer(hidden))  # other sums, other rounding


def test_what_a_layer_sees_and_gives_is_that_of_the_draw() -> None:
    """Functions of the layer below first, then the inputs; every layer of three on its own."""
    layers = [layer(2, 3), layer(5, 2), layer(4, 1)]
    model = DeepLFM(layers, Concatenate(), Gaussian().tiled(1))
    x = torch.randn(6, 2, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    path = model.draw(4, torch.Generator().manual_seed(0))
    seen = x[None]
    for number in range(3):
        torch.testing.assert_close(path.inputs(x, number), seen)
        given = path.paths[number](seen)
        torch.testing.assert_close(path.values(x, number), given)
        seen = torch.cat([given, x.expand(4, -1, -1)], dim=-1)


@pytest.mark.parametrize("skip", [Concatenate(), NoSkip()])
def test_inputs_re_enter_after_the_functions(skip: Skip) -> None:
    f, x = torch.zeros(2, 3, 2), torch.arange(1.0, 7.0).reshape(3, 2)
    expected = torch.cat([f, torch.stack([x, x])], dim=-1) if isinstance(skip, Concatenate) else f
    assert torch.equal(skip(f, x), expected)
    assert skip.width(2, 2) == expected.shape[-1]


def test_the_divergence_is_that_of_every_layer() -> None:
    """Away from the prior, where each has its own."""
    layers = [layer(2, 3), layer(5, 2), layer(4, 1)]
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for one in layers:
            for parameter in one.parameters():
                parameter.add_(0.3 * torch.randn(parameter.shape, generator=generator))
    model = DeepLFM(layers, Concatenate(), Gaussian().tiled(1))
    own = [one.kl().item() for one in layers]
    assert min(own) > 0.1
    assert model.kl().item() == pytest.approx(sum(own), rel=1e-9)


def test_widths_must_agree() -> None:
    with pytest.raises(dlfm.InputError, match=r"layer 2 must have 5 inputs .* got 3. Make"):
        DeepLFM([layer(2, 3), layer(3, 1)], Concatenate(), Gaussian().tiled(1))
    with pytest.raises(dlfm.InputError, match="layers must hold one or more"):
        DeepLFM([], Concatenate(), Gaussian().tiled(1))
