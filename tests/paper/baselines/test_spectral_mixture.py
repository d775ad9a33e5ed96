"""The spectral mixture: a covariance by its definition, exact inference, lags between outputs."""

import math

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

import deeplfm as dlfm
from deeplfm.paper.baselines.spectral_kernel import Layout, start
from deeplfm.paper.baselines.spectral_mixture import SpectralMixtureGP
from reference.spectral_mixture import spectral_covariance as naive

Values = NDArray[np.float64]


def random_theta(layout: Layout) -> torch.Tensor:
    size = 2 * layout.components + 2 * layout.components * layout.outputs * layout.rank
    random = np.random.default_rng(0)
    return torch.tensor(np.append(random.normal(size=size), [math.log(0.2)] * layout.outputs))


@pytest.mark.parametrize("phases", [True, False])
def test_covariance_is_its_definition_and_positive(phases: bool) -> None:
    layout = Layout(components=3, outputs=2, rank=2, phases=phases)
    theta = random_theta(layout)
    t = np.linspace(-1, 1, 6)
    lags = torch.tensor((t[:, None] - t[None]).reshape(-1))
    table = layout.covariances(theta, lags).numpy()
    for u, lag in enumerate(lags.tolist()):
        for d, e in np.ndindex(2, 2):
            assert table[u, d, e] == pytest.approx(naive(layout, theta.numpy(), lag, d, e))
    K = table.reshape(6, 6, 2, 2).transpose(0, 2, 1, 3).reshape(12, 12)
    np.testing.assert_allclose(K, K.T, atol=1e-12)
    assert np.linalg.eigvalsh(K).min() > -1e-12 * np.trace(K)
    assert np.allclose(table, table.transpose(0, 2, 1)) is not phases  # lags between outputs


def test_prediction_is_the_textbook() -> None:
    t = np.linspace(2, 6, 30)
    y = np.stack([np.sin(9 * t), np.cos(9 * t - 1)], 1)
    y += 0.1 * np.random.default_rng(0).normal(size=y.shape)
    y[5:12, 0] = y[20:, 1] = np.nan
    model = SpectralMixtureGP(num_components=3, steps=4, few=25)
    model.fit(t, y)
    fitted, layout = model.fitted_, model._layout(2)
    theta = fitted.state["theta"]
    noise = theta[-2:].exp().numpy()
    x, scaled = fitted.scaling.inputs(t), fitted.scaling.targets(y)
    rows, outputs = np.nonzero(~np.isnan(y))
    pairs = list(zip(rows.tolist(), outputs.tolist(), strict=True))
    K = np.array(
        [[naive(layout, theta.numpy(), x[n] - x[m], d, e) for m, e in pairs] for n, d in pairs]
    )
    K += np.diag(noise[outputs])
    target = scaled[rows, outputs]
    new = np.array([2.5, 5.5])
    asked = fitted.scaling.inputs(new)
    found = model.predictive(new)
    for n, d in np.ndindex(2, 2):
        cross = np.array([naive(layout, theta.numpy(), asked[n] - x[m], d, e) for m, e in pairs])
        mean = cross @ np.linalg.solve(K, target)
        prior = naive(layout, theta.numpy(), 0.0, d, d)
        variance = prior - cross @ np.linalg.solve(K, cross) + noise[d]
        unit, middle = fitted.scaling.target_std[d], fitted.scaling.target_mean[d]
        assert found.mean[n, d] == pytest.approx(middle + unit * mean, rel=1e-6)
        assert found.std[n, d] == pytest.approx(unit * math.sqrt(variance), rel=1e-6)
    evidence = -target @ np.linalg.solve(K, target) / 2 - np.linalg.slogdet(K)[1] / 2
    evidence -= len(target) / 2 * math.log(2 * math.pi)
    assert model.history_["loss"][-1] == pytest.approx(-evidence, rel=1e-8)


def test_components_start_at_harmonics_with_their_phases() -> None:
    t = np.linspace(0, 1, 300)
    omega = 2 * math.pi * 12
    y = np.stack([np.cos(omega * t), np.cos(omega * t - 1.0) + 0.5 * np.cos(2 * omega * t)], 1)
    layout = Layout(components=4, outputs=2, rank=1, phases=True)
    theta, bounds = start(layout, t, y, seed=0)
    frequencies = theta[:4].exp().numpy()
    np.testing.assert_allclose(frequencies[1:], omega * np.arange(1, 4), rtol=0.01)
    real, imaginary = theta[8:16].view(4, 2), theta[16:24].view(4, 2)
    A = (real + 1j * imaginary).numpy()
    lag = np.angle(A[1, 1] / A[1, 0])
    # Random parts of 0.03 beside amplitudes of 0.7, in both outputs.
    assert abs(lag + 1.0) < 4 * math.sqrt(2) * 0.03 * math.sqrt(2)
    assert abs(A[2, 1]) == pytest.approx(0.5 / math.sqrt(2), abs=4 * 0.03 * math.sqrt(2))
    assert ((theta >= bounds[:, 0]) & (theta <= bounds[:, 1])).all()


def test_an_output_that_lags_fills_another() -> None:
    """Irregular beats: only the other output knows when they came."""
    random = np.random.default_rng(3)
    t = np.linspace(0, 1, 160)
    phase = 2 * math.pi * (10 * t + np.cumsum(random.normal(size=160)) * 0.03)
    y = np.stack([np.cos(phase), np.cos(phase - 1.3)], 1) + 0.05 * random.normal(size=(160, 2))
    truth = y[70:110, 0].copy()
    y[70:110, 0] = np.nan
    with_phases, without = (
        SpectralMixtureGP(3, phases=phases, steps=30, few=400).fit(t, y).predict(t[70:110])[:, 0]
        for phases in (True, False)
    )
    error, other = (((found - truth) ** 2).mean() / truth.var() for found in (with_phases, without))
    assert error < 0.2
    assert error < other / 2


def test_without_an_oscillation_it_still_starts() -> None:
    t = np.sort(np.random.default_rng(0).uniform(size=40))
    y = np.cumsum(np.random.default_rng(1).normal(size=40))
    model = SpectralMixtureGP(num_components=3, steps=5).fit(t, y)
    assert np.isfinite(model.predict(t)).all()


def test_errors_say_what_to_do() -> None:
    t = np.linspace(0, 1, 30)
    with pytest.raises(dlfm.InputError, match="X must have 1 input; got 2"):
        SpectralMixtureGP().fit(np.stack([t, t**2], 1), t)
    with pytest.raises(dlfm.InputError, match="rank must be an integer of at least 1"):
        SpectralMixtureGP(rank=0).fit(t, t)
    many = np.linspace(0, 1, 6000)
    with pytest.raises(dlfm.InputError, match="at most 10000 observed entries; got 12000"):
        SpectralMixtureGP().fit(many, np.stack([many, many], 1))
