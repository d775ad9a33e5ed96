"""Where frequencies start: at the spectrum, at rest, at harmonics of a phase; and their scale."""

import math

import numpy as np
import pytest
import torch

import deeplfm as dlfm
from deeplfm.data import dataset, fit_scaling
from deeplfm.layers import FourierLayer
from deeplfm.models.starts.base import Start, principal_components
from deeplfm.models.starts.frequencies import start_frequencies
from deeplfm.models.starts.harmonics import (
    BESIDE,
    EXACT,
    SLOW,
    about_harmonics,
    about_rest,
    harmonic_power,
)

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


def test_the_prior_is_as_wide_as_what_was_drawn() -> None:
    """ℓ = 1/√(mean ω²), which leaves each draw its place; unless the user gave a lengthscale."""
    y = np.stack([np.sin(60 * X), np.sin(60 * X + 1)], axis=1)
    layer = made()
    start_frequencies(layer, y, start(y))
    omega = layer.frequencies.draw(1)[0, 0, 0, :, 0].detach()
    assert ((omega.abs() - 60).abs() < 4 * math.pi).double().mean() > 0.9  # the rest are sidelobes
    expected = 1 / math.sqrt(float(omega.square().mean()))
    assert layer.frequencies.lengthscale().item() == pytest.approx(expected, rel=1e-9)
    kept = made()
    start_frequencies(kept, y, start(y, keep_lengthscale=True))
    assert kept.frequencies.lengthscale().item() == pytest.approx(0.3)
    torch.testing.assert_close(kept.frequencies.draw(1)[0, 0, 0, :, 0].detach(), omega)


def test_without_a_spectrum_they_are_a_draw_of_the_prior() -> None:
    layer = made()
    before = layer.frequencies.draw(1).detach()
    y = np.sin(60 * X)[:, None]
    start_frequencies(layer, y, start(y, from_spectrum=False))
    torch.testing.assert_close(layer.frequencies.draw(1).detach(), before)


def test_those_of_a_phase_are_next_to_rest_or_below_the_oscillation() -> None:
    """12 of 200 next to 0; of the others one in each of 188 parts, up to half of it."""
    layer = made()
    resolution = 2 * math.pi
    groups = about_rest(layer, OMEGA, resolution, start(np.zeros((500, 1))))
    omega = layer.frequencies.draw(1)[0, 0, 0, :, 0].detach()
    assert groups.tolist() == [0] * 12 + [1] * 188
    assert omega[:12].abs().max() < 5 * 0.25 * resolution
    part = OMEGA / 2 / 188
    drifting = omega[12:] - 0.25 * resolution - part * torch.arange(188)
    assert bool(((drifting >= 0) & (drifting <= part)).all())
    assert not layer.frequencies.carriers.any()


def test_waves_of_a_phase_lie_at_harmonics_and_where_an_output_has_slow_power() -> None:
    phase = 30 + OMEGA * X
    y = np.stack([np.cos(phase), np.cos(3 * phase) + np.sin(0.2 * phase)], axis=1)
    layer = made(2, per_output=True)
    sizes, groups = about_harmonics(layer, phase, start(y))
    omega = layer.frequencies.draw(1)[0, :, 0, :, 0].detach()
    carriers = layer.frequencies.carriers[:, 0, :, 0]
    assert sizes.shape == groups.shape == (2, 400)
    exact, slow = groups[:, :200] == EXACT, groups[:, :200] == SLOW
    # The tenth is the last below half a turn from row to row.
    assert torch.equal(omega[exact], torch.arange(1.0, 11).repeat(2).double())
    beside = (omega - carriers)[(groups[:, :200] == BESIDE)]
    assert beside.abs().max() < 4 * 2 * math.pi / OMEGA
    assert (omega[1][slow[1]] - 0.2).abs().median() < 2 * 2 * math.pi / OMEGA
    # An output of one harmonic expects a weight of √½ there, a wave with a mean square of 1.
    assert float(sizes[0, 0]) == pytest.approx(math.sqrt(0.5), rel=0.01)
    assert float(sizes[0, 1]) < 0.05
    ell = layer.frequencies.lengthscale()
    layer.frequencies.lengthscale.set(2 * ell.detach())  # a scale is that of the way from carriers
    halved = layer.frequencies.draw(1)[0, :, 0, :, 0].detach()
    torch.testing.assert_close(halved - carriers, (omega - carriers) / 2)


def test_the_power_of_harmonics_is_half_their_square() -> None:
    phase = np.linspace(0, 40 * math.pi, 900)
    y = (2 * np.cos(phase) + 0.5 * np.sin(3 * phase - 1) + 7)[:, None]
    y[100:150] = np.nan
    power = harmonic_power(phase, y, 4)
    np.testing.assert_allclose(power, [0, 2, 0, 0.125, 0], atol=1e-3)


@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_few_frequencies_are_as_many_as_asked_for(count: int) -> None:
    layer = FourierLayer(
        1, 1, greens_function=dlfm.FirstOrder(2.5), num_features=count, frequencies="prior_draws"
    )
    y = np.cos(OMEGA * X)[:, None]
    assert len(about_rest(layer, OMEGA, 2 * math.pi, start(y))) == count
    assert about_harmonics(layer, 30 + OMEGA * X, start(y)).sizes.shape == (1, 2 * count)
    assert layer.frequencies.draw(1).isfinite().all()


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
