"""Where frequencies start: about an oscillation, below it, at the spectrum; and their scale."""

import math

import numpy as np
import pytest
import torch

import deeplfm as dlfm
from deeplfm.data import dataset, fit_scaling
from deeplfm.layers import FourierLayer
from deeplfm.models.starts.base import Start, principal_components
from deeplfm.models.starts.features import features_at
from deeplfm.models.starts.fourier import unit_variance
from deeplfm.models.starts.frequencies import start_frequencies
from deeplfm.models.starts.oscillation import Oscillation

OMEGA = 150.0
X = np.linspace(0, 1, 500)


def made(inputs: int = 1, outputs: int = 2, *, per_output: bool = False) -> FourierLayer:
    return FourierLayer(
        inputs, outputs, greens_function=dlfm.FirstOrder(2.5), num_features=200, lengthscale=0.3,
        per_output=per_output, frequencies="prior_draws",
        generator=torch.Generator().manual_seed(0),
    )  # fmt: skip


def start(y: np.ndarray, **settings: bool) -> Start:
    return Start(X[:, None], y, torch.Generator().manual_seed(1), **settings)


def oscillation() -> Oscillation:
    return Oscillation(OMEGA, np.exp(1j * OMEGA * X), np.zeros(1), np.ones(1))


def test_the_prior_is_as_wide_as_what_was_drawn() -> None:
    """ℓ = 1/√(mean ω²), which leaves each draw its place; unless the user gave a lengthscale."""
    y = np.stack([np.sin(60 * X), np.sin(60 * X + 1)], axis=1)
    layer = made()
    assert start_frequencies(layer, True, y, None, start(y)) is None
    omega = layer.frequencies.draw(1)[0, 0, 0, :, 0].detach()
    assert ((omega.abs() - 60).abs() < 4 * math.pi).double().mean() > 0.9  # the rest are sidelobes
    expected = 1 / math.sqrt(float(omega.square().mean()))
    assert layer.frequencies.lengthscale().item() == pytest.approx(expected, rel=1e-9)
    kept = made()
    start_frequencies(kept, True, y, None, start(y, keep_lengthscale=True))
    assert kept.frequencies.lengthscale().item() == pytest.approx(0.3)
    torch.testing.assert_close(kept.frequencies.draw(1)[0, 0, 0, :, 0].detach(), omega)


def test_without_a_spectrum_they_are_a_draw_of_the_prior() -> None:
    layer = made()
    before = layer.frequencies.draw(1).detach()
    y = np.sin(60 * X)[:, None]
    start_frequencies(layer, True, y, None, start(y, from_spectrum=False))
    torch.testing.assert_close(layer.frequencies.draw(1).detach(), before)


def test_beside_an_oscillation_they_are_slow_or_where_an_output_has_power() -> None:
    """A seventh of its frequency; and up to a half of them at a slow tone that an output has."""
    beats = np.cos(OMEGA * X)
    slow = 0.1 * beats + np.sin(60 * X)
    y = np.stack([beats, slow], axis=1)
    layer = made(3, per_output=True)
    start_frequencies(layer, False, y, oscillation(), start(y))
    omega = layer.frequencies.draw(1)[0, :, 0, :, -1].detach()
    pure, drifting = omega
    # 200 draws of N(0, (ω0/7)²): their mean square within five standard errors.
    ratio = float(pure.square().mean()) / (OMEGA / 7) ** 2
    assert abs(ratio - 1) < 5 * math.sqrt(2 / 200)
    near = ((drifting.abs() - 60).abs() < 4 * math.pi).double().mean()
    assert 0.4 < float(near) < 0.65
    hidden = layer.frequencies.draw(1)[0, ..., :-1].detach()
    torch.testing.assert_close(hidden * 0.3, layer.frequencies.noise[..., :-1])


def test_outputs_have_unit_variance_under_what_is_expected() -> None:
    layer, x = made(2, per_output=True), torch.rand(300, 2, dtype=torch.float64)
    generator = torch.Generator().manual_seed(3)
    expected = 0.1 + torch.rand(400, generator=generator, dtype=torch.float64)
    unit_variance(layer, features_at(layer, x), expected)
    with torch.no_grad():
        phi = layer.features(x[None], layer.frequencies.draw(1))[0].flatten(-2)
    variance = (phi * expected).square().sum(-1).mean(0)
    torch.testing.assert_close(variance, torch.ones_like(variance))


def test_hidden_functions_of_a_table_start_as_its_principal_components() -> None:
    """As many as there are inputs: each hidden function is one of them, at the data."""
    x = np.random.default_rng(0).normal(size=(120, 2)) @ np.array([[2.0, 1.0], [0.0, 0.3]]) + 40
    data = dataset(x, x[:, 0])
    scaling = fit_scaling(data)
    recipe = dlfm.FourierDLFM(num_features=60, hidden_dim=2)
    model = recipe.build(data, scaling, torch.Generator().manual_seed(0))
    inputs = scaling.inputs(data.x)
    with torch.no_grad():
        path = model.draw(400, torch.Generator().manual_seed(0))
        found = path.values(torch.tensor(inputs), 0).mean(0).numpy()
    expected = principal_components(inputs, 2)
    assert np.sqrt(((found - expected) ** 2).mean(0)).max() < 0.15
