"""What starts share: principal components and linear regression, by their textbook definitions."""

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from deeplfm.models.starts.base import (
    evenly,
    posterior_of_weights,
    principal_components,
)
from deeplfm.variational.gaussians import DiagonalGaussian, FullGaussian

Values = NDArray[np.float64]


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_components_are_those_of_the_covariance(count: int) -> None:
    """Scores along the eigenvectors of the covariance, of variance 1; far from the origin too."""
    random = np.random.default_rng(0)
    mixing = np.array([[3.0, 1.0, 0.2], [0.0, 1.0, -0.4], [0.0, 0.0, 0.3]])
    x = random.normal(size=(200, 3)) @ mixing + np.array([50.0, -20.0, 7.0])
    found = principal_components(x, count)
    assert found.shape == (200, min(count, 3))
    np.testing.assert_allclose(found.mean(0), 0, atol=1e-9)
    np.testing.assert_allclose(found.T @ found / 200, np.eye(min(count, 3)), atol=1e-9)
    values, vectors = np.linalg.eigh(np.cov(x.T, bias=True))
    for k in range(min(count, 3)):  # eigh has the largest last; a sign is a convention
        scores = (x - x.mean(0)) @ vectors[:, -1 - k] / np.sqrt(values[-1 - k])
        sign = np.sign(scores @ found[:, k])
        np.testing.assert_allclose(found[:, k], sign * scores, atol=1e-9)


def test_directions_without_spread_are_no_components() -> None:
    line = np.linspace(5, 6, 30)
    assert principal_components(np.stack([line, 2 * line, 0 * line], axis=1), 3).shape == (30, 1)
    assert principal_components(np.full((4, 2), 3.0), 2).shape == (4, 0)


def regression() -> tuple[torch.Tensor, torch.Tensor]:
    """Features of two outputs that share their weights, and targets with gaps."""
    generator = torch.Generator().manual_seed(4)
    phi = torch.randn(40, 2, 5, generator=generator, dtype=torch.float64)
    noise = torch.tensor([0.2, 1.5]) * torch.randn(40, 2, generator=generator)
    y = phi @ torch.tensor([1.0, -2.0, 0.5, 0.0, 1.0], dtype=torch.float64) + noise
    y[3:9, 0] = torch.nan
    y[20:31, 1] = torch.nan
    return phi, y


def by_loops(phi: Values, y: Values, noise: list[float]) -> tuple[Values, Values, list[float]]:
    """Posterior mean and precision for given noise, and its next estimate, row by row."""
    precision, moment = np.eye(5), np.zeros(5)
    seen = [(n, d) for n in range(40) for d in range(2) if not np.isnan(y[n, d])]
    for n, d in seen:
        precision += np.outer(phi[n, d], phi[n, d]) / noise[d]
        moment += phi[n, d] * y[n, d] / noise[d]
    covariance = np.linalg.inv(precision)
    mean = covariance @ moment
    updated = []
    for d in range(2):
        rows = [n for n, output in seen if output == d]
        errors = [(y[n, d] - phi[n, d] @ mean) ** 2 for n in rows]
        spread = [phi[n, d] @ covariance @ phi[n, d] for n in rows]
        updated.append((sum(errors) + sum(spread)) / len(rows))
    return mean, precision, updated


def test_noise_is_estimated_by_expectation_maximisation() -> None:
    """Error and uncertainty of the weights, over what was observed: four rounds of it by loops."""
    phi, y = regression()
    noise = torch.full((2,), 0.1, dtype=torch.float64)
    found = posterior_of_weights(phi, y, noise, estimate=True, with_offset=False)
    current = [0.1, 0.1]
    for _ in range(4):
        _, _, current = by_loops(phi.numpy(), y.numpy(), current)
    mean, precision, _ = by_loops(phi.numpy(), y.numpy(), current)
    assert noise.tolist() == pytest.approx(current, rel=1e-9)
    assert current == pytest.approx([0.04, 2.25], rel=0.4)  # the truth, from 30 targets
    np.testing.assert_allclose(found.mean, mean, rtol=1e-9)
    np.testing.assert_allclose(found.precision, precision, rtol=1e-9)


def test_neighbours_that_are_alike_count_once_for_the_spread() -> None:
    phi, y = regression()
    noise = torch.tensor([0.3, 0.6], dtype=torch.float64)
    mean, precision, _ = by_loops(phi.numpy(), y.numpy(), noise.tolist())
    found = posterior_of_weights(phi, y, noise, estimate=False, with_offset=False, alike=4)
    np.testing.assert_allclose(found.mean, mean, rtol=1e-9)
    np.testing.assert_allclose(found.precision, np.eye(5) + (precision - np.eye(5)) / 4, rtol=1e-9)
    assert noise.tolist() == [0.3, 0.6]


def test_an_offset_is_one_more_weight_with_a_wide_prior() -> None:
    """Of standard deviation 10, for each output; against the same columns among the features."""
    phi, y = regression()
    y = y + torch.tensor([3.0, -5.0])
    noise = torch.tensor([0.3, 0.6], dtype=torch.float64)
    found = posterior_of_weights(phi, y, noise.clone(), estimate=False)
    columns = 10 * torch.eye(2, dtype=torch.float64).expand(40, 2, 2)
    wide = torch.cat([phi, columns], dim=-1)
    known = posterior_of_weights(wide, y, noise.clone(), estimate=False, with_offset=False)
    torch.testing.assert_close(found.mean, known.mean[:5])
    torch.testing.assert_close(found.offset, 10 * known.mean[5:])
    assert found.offset.tolist() == pytest.approx([3.0, -5.0], abs=1.0)


def test_independent_weights_have_the_precisions_of_the_posterior() -> None:
    """The q that is closest to N(m, Λ⁻¹) in KL(q ‖ p) has variances 1/Λ_ii, not (Λ⁻¹)_ii."""
    phi, y = (one.numpy() for one in regression())
    _, precision, _ = by_loops(phi, y, [0.3, 0.6])
    q = DiagonalGaussian((1, 5), like=torch.zeros(1, dtype=torch.float64))
    factor = q.closest_factor(torch.tensor(precision)[None])[0]
    np.testing.assert_allclose(factor, np.diag(1 / np.sqrt(np.diag(precision))), rtol=1e-9)
    full = FullGaussian((1, 5), like=torch.zeros(1, dtype=torch.float64))
    factor = full.closest_factor(torch.tensor(precision)[None])[0]
    np.testing.assert_allclose(factor @ factor.mT, np.linalg.inv(precision), rtol=1e-9, atol=1e-12)


def test_rows_that_are_thinned_keep_their_targets() -> None:
    x = np.random.default_rng(0).permutation(20_000)[:, None] / 20_000
    thin, y = evenly(x, np.sin(x))
    assert len(thin) == 5000
    assert (np.diff(thin[:, 0]) > 0).all()
    assert np.diff(thin[:, 0]).max() < 6 / 20_000
    np.testing.assert_array_equal(y, np.sin(thin))
    table = np.stack([x[:100, 0], x[100:200, 0]], axis=1)
    same, targets = evenly(table, x[:100])
    np.testing.assert_array_equal(same, table)  # several inputs have no order
    np.testing.assert_array_equal(targets, x[:100])
