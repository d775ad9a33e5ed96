"""What starts share: principal components by their textbook definition."""

import numpy as np
import pytest

from deeplfm.models.starts.base import principal_components


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
