"""Inducing points: what they reach is what the layer says, and k-means is that of others."""

import numpy as np
import pytest
import torch
from scipy.cluster.vq import kmeans2

import deeplfm as dlfm
from deeplfm.greens_functions import GreensFunction
from deeplfm.layers import InducingLayer
from deeplfm.models.starts.inducing_points import features_of, k_means, reached


@pytest.mark.parametrize(
    "physics", [dlfm.FirstOrder(30.0), dlfm.SecondOrder(damping=3.0, frequency=40.0)]
)
@pytest.mark.parametrize("shared", [True, False])
def test_features_are_those_of_the_layer(physics: GreensFunction, shared: bool) -> None:
    """From tables, six points of a polynomial 1/48 of a scale apart: 1e-11 of the largest bump.

    Whitening multiplies that by 1/√jitter = 1000 at most.
    """
    generator = torch.Generator().manual_seed(0)
    z = torch.linspace(0, 1, 20, dtype=torch.float64)[:, None]
    made = InducingLayer(
        1, 2, greens_function=physics, inducing_inputs=z if shared else torch.stack([z, 1 - z / 2]),
        num_forces=2, lengthscale=0.06, shared_lengthscale=shared, generator=generator,
    )  # fmt: skip
    x = torch.rand(700, 1, generator=generator, dtype=torch.float64)
    with torch.no_grad():
        expected = made.features(x)
        found = features_of(made, x)
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-8 * float(expected.max()))
        share = expected.square().sum((-2, -1)) / made.prior_variance(x)
        torch.testing.assert_close(reached(made, x), share, rtol=0, atol=1e-7)


@pytest.mark.parametrize("inputs", [1, 3])
def test_k_means_is_that_of_scipy(inputs: int) -> None:
    rows = np.random.default_rng(0).standard_normal((400, inputs))
    expected = kmeans2(rows, 25, minit="++", seed=7)[0]
    np.testing.assert_allclose(k_means(rows, 25, 7), expected, rtol=1e-9, atol=1e-9)


def test_k_means_of_rows_that_lie_in_few_places() -> None:
    """A center whose rows all went to others stays where it was."""
    rows = np.repeat(np.arange(3.0), 5)[:, None] + 1e-13 * np.arange(15)[:, None]
    centers = k_means(rows, 6, 0)
    assert np.isfinite(centers).all()
    np.testing.assert_allclose(np.unique(centers.round(6)), [0, 1, 2])
