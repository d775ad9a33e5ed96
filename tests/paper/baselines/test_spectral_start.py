"""Starts of the spectral mixture without their random numbers, and few entries before all."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from deeplfm.models.starts.oscillation import Oscillation
from deeplfm.paper.baselines import spectral_kernel
from deeplfm.paper.baselines.spectral_kernel import Layout, start
from deeplfm.paper.baselines.spectral_mixture import SpectralMixtureGP
from reference.spectral_mixture import spectral_covariance as naive

Values = NDArray[np.float64]
T = np.linspace(0, 1, 60)
OMEGA = 2 * math.pi * 12  # of at most about 30 cycles that 60 samples can show: two harmonics


def unpacked(layout: Layout, theta: torch.Tensor) -> tuple[Values, Values, Any, Values]:
    """ω [Q], σ [Q], A [Q, D, R] complex, noise variances [D], as the class documents them."""
    q, shape = layout.components, (layout.components, layout.outputs, layout.rank)
    numbers, size = theta.numpy(), math.prod(shape)
    real = numbers[2 * q : 2 * q + size].reshape(shape)
    imaginary = numbers[2 * q + size : 2 * q + 2 * size].reshape(shape)
    noise = np.exp(numbers[2 * q + 2 * size :])
    return np.exp(numbers[:q]), np.exp(numbers[q : 2 * q]), real + 1j * imaginary, noise


def test_components_start_at_harmonics_and_again_but_wider(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A wave a cos φ has the variance a²/2, which is |A|²; phases are those of the waves."""
    monkeypatch.setattr(spectral_kernel, "_LEAST", 1e-9)
    phase = np.exp(1j * OMEGA * T)
    steady = Oscillation(OMEGA, phase, np.array([-3.0, 3.0]), np.ones(2))  # a bandwidth of 3
    monkeypatch.setattr(spectral_kernel, "dominant_oscillation", lambda x, y: steady)
    y = np.stack([2 * np.cos(OMEGA * T - 0.7), 0.6 * np.cos(2 * OMEGA * T + 0.4)], 1)
    y[10:15, 0] = np.nan
    layout = Layout(components=6, outputs=2, rank=2, phases=True)
    theta, bounds = start(layout, T, y, seed=0)
    omega, width, A, noise = unpacked(layout, theta)
    np.testing.assert_allclose(omega[1:], OMEGA * np.array([1, 2, 1, 2, 1]))
    np.testing.assert_allclose(width[1:], [3, 6, 4 * 3, 4 * 6, 16 * 3])
    assert width[0] == pytest.approx(OMEGA / 2)
    # A ridge of 1 beside sums of cos² over 55 and 60 rows, about half of them.
    assert A[1, 0, 0] == pytest.approx(2 * np.exp(-0.7j) / math.sqrt(2), rel=0.06)
    assert A[2, 1, 0] == pytest.approx(0.6 * np.exp(0.4j) / math.sqrt(2), rel=0.06)
    assert abs(A[1, 1, 0]) < 0.05
    assert abs(A[3:]).max() < 1e-7
    assert abs(A[1:, :, 1]).max() < 1e-7
    np.testing.assert_allclose(noise, 0.1)
    limits = bounds.exp().numpy()
    np.testing.assert_allclose(limits[1:6], np.outer(omega[1:], [1 / 1.5, 1.5]))
    np.testing.assert_allclose(limits[6:12], np.tile([0.25, 100 * OMEGA], (6, 1)))


def test_trends_start_with_an_amplitude_of_a_fifth() -> None:
    layout = Layout(components=2, outputs=1, rank=400, phases=True)
    theta, _ = start(layout, T, np.cos(OMEGA * T)[:, None], seed=0)
    _, _, A, _ = unpacked(layout, theta)
    # The root mean square of 800 normal numbers, within 5 of its standard errors.
    spread = np.sqrt((np.abs(A[0]) ** 2).mean() / 2)
    assert spread == pytest.approx(0.2, rel=5 / math.sqrt(2 * 800))
    others = np.sqrt((np.abs(A[1, :, 1:]) ** 2).mean() / 2)
    assert others == pytest.approx(0.03, rel=5 / math.sqrt(2 * 798))


def test_without_an_oscillation_components_share_the_power(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two waves of equal power: a quarter and three quarters of it lie inside their peaks."""
    monkeypatch.setattr(spectral_kernel, "dominant_oscillation", lambda x, y: None)
    y = np.sin(2 * math.pi * 5 * T) + np.sin(2 * math.pi * 17 * T)
    layout = Layout(components=3, outputs=1, rank=1, phases=True)
    omega, width, _, _ = unpacked(layout, start(layout, T, y[:, None], seed=0)[0])
    # Half of a peak's width, which is one cycle over the series.
    np.testing.assert_allclose(omega[1:] / (2 * math.pi), [5, 17], atol=0.5)
    np.testing.assert_allclose(width[1:], 2.0)


def test_few_entries_come_first_and_count_for_all() -> None:
    """The first loss is that of `few` entries, times how many more there are; the last of all."""
    y = np.stack([np.cos(OMEGA * T), np.sin(OMEGA * T)], 1)
    y += 0.2 * np.random.default_rng(0).normal(size=y.shape)
    y[20:30, 1] = np.nan
    few = 7
    model = SpectralMixtureGP(num_components=3, steps=2, few=few)
    model.fit(T, y)
    scaling, layout = model.fitted_.scaling, model._layout(2)
    x, targets = scaling.inputs(T[:, None])[:, 0], scaling.targets(y)
    theta, bounds = start(layout, x, targets, seed=0)
    theta = theta.clamp(bounds[:, 0], bounds[:, 1])
    entries = [(n, d) for n in range(60) for d in range(2) if not np.isnan(y[n, d])]
    order = torch.randperm(len(entries), generator=torch.Generator().manual_seed(0)).tolist()
    chosen = [entries[k] for k in order[:few]]
    noise = theta[-2:].exp().numpy()
    K = np.array(
        [[naive(layout, theta.numpy(), x[n] - x[m], d, e) for m, e in chosen] for n, d in chosen]
    )
    K += np.diag([noise[d] for _, d in chosen])
    z = np.array([targets[n, d] for n, d in chosen])
    loss = z @ np.linalg.solve(K, z) / 2 + np.linalg.slogdet(K)[1] / 2
    loss += few / 2 * math.log(2 * math.pi)
    first = model.history_["loss"][0]
    assert first == pytest.approx(len(entries) / few * loss, rel=1e-8)
    all_at_once = SpectralMixtureGP(num_components=3, steps=2, few=len(entries)).fit(T, y)
    assert len(all_at_once.history_["loss"]) < len(model.history_["loss"])


def test_new_points_are_predicted_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    y = np.stack([np.cos(OMEGA * T), np.sin(OMEGA * T)], 1)
    model = SpectralMixtureGP(num_components=2, steps=2).fit(T, y)
    new = np.linspace(0, 1.1, 23)
    whole = model.predictive(new)
    monkeypatch.setattr("deeplfm.paper.baselines.spectral_mixture._CHUNK", 120 * 2 * 5)
    chunked = model.predictive(new)
    np.testing.assert_allclose(chunked.mean, whole.mean, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(chunked.std, whole.std, rtol=1e-9)
