"""What every layer says of itself: its physics, its lengthscales, its parameters by role."""

import pytest
import torch

import deeplfm as dlfm
from deeplfm.layers import FourierLayer, InducingLayer, Layer
from deeplfm.models import Concatenate, NoSkip, Skip


def fourier() -> FourierLayer:
    """Two outputs and two forces over two inputs, each with a lengthscale of its own."""
    lengthscale = torch.tensor([[[3.0, 4.0], [2.0, 5.0]], [[6.0, 0.5], [7.0, 8.0]]])
    return FourierLayer(
        2, 2, greens_function=dlfm.FirstOrder(), num_forces=2, num_features=3,
        lengthscale=lengthscale.double(), per_output=True,
    )  # fmt: skip


def inducing() -> InducingLayer:
    return InducingLayer(
        2, 2, greens_function=dlfm.FirstOrder(), num_forces=2, num_basis=3,
        inducing_inputs=torch.zeros(4, 2, dtype=torch.float64), shared_lengthscale=False,
        lengthscale=torch.tensor([[3.0, 0.5], [2.0, 5.0]], dtype=torch.float64),
    )  # fmt: skip


@pytest.mark.parametrize("layer", [fourier(), inducing()], ids=lambda one: type(one).__name__)
def test_the_shortest_lengthscale_along_each_input(layer: Layer) -> None:
    found = layer.lengthscales()
    assert found.tolist() == pytest.approx([2.0, 0.5])
    assert not found.requires_grad


@pytest.mark.parametrize("layer", [fourier(), inducing()], ids=lambda one: type(one).__name__)
def test_every_parameter_has_one_role(layer: Layer) -> None:
    roles = layer.parameter_groups()
    listed = [id(one) for role in roles.values() for one in role]
    assert sorted(listed) == sorted(id(one) for one in layer.parameters())
    names = {id(one): name for name, one in layer.named_parameters()}
    weights = {names[id(one)] for one in roles["weights"]}
    gaussian = "weights." if isinstance(layer, FourierLayer) else "posterior.whitened."
    assert {name for name in names.values() if name.startswith(gaussian)} == weights - {"offset"}


@pytest.mark.parametrize("skip", [Concatenate(), NoSkip()])
def test_a_skip_says_whether_inputs_re_enter(skip: Skip) -> None:
    x = torch.zeros(3, 2)
    assert skip.passes_inputs == (skip.shared(x) is not None)
    assert skip.width(4, 2) == 4 + 2 * skip.passes_inputs
