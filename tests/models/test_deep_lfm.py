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
    torch.testing.assert_close(model.kl(), first.kl() + second.kl())


def test_widths_must_agree() -> None:
    with pytest.raises(dlfm.InputError, match=r"layer 2 must have 5 inputs .* got 3. Make"):
        DeepLFM([layer(2, 3), layer(3, 1)], Concatenate(), Gaussian().tiled(1))
    with pytest.raises(dlfm.InputError, match="layers must hold one or more"):
        DeepLFM([], Concatenate(), Gaussian().tiled(1))
