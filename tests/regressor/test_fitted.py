"""A fitted model as a mixture: every member has its share of the draws, with its own noise."""

import copy
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch

import deeplfm as dlfm
from deeplfm.data import dataset
from deeplfm.evaluation.families import NormalComponents
from deeplfm.likelihoods import AdditiveNoise
from deeplfm.regressor.fitted import FittedModel
from deeplfm.regressor.fitting import fit

X = np.linspace(0, 8, 40)
Y = np.stack([np.sin(2 * X), 100 + 50 * np.cos(2 * X)], axis=1)
NEW = np.linspace(0, 9, 5)
NOISES = ([0.04, 0.09], [0.25, 1.0], [4.0, 0.01])  # variances of the members, in scaled units


@pytest.fixture(scope="module")
def mixture() -> FittedModel:
    """Three members that differ in their weights and their noise."""
    recipe = dlfm.FourierDLFM(num_layers=1, num_features=6)
    one = fit(dataset(X, Y), recipe, dlfm.Training(steps=1, num_samples=1), dtype=torch.float64)
    members = []
    for k, noise in enumerate(NOISES):
        member = copy.deepcopy(one.members[0])
        assert isinstance(member.likelihood, AdditiveNoise)
        member.likelihood.noise.set(torch.tensor(noise, dtype=torch.float64))
        with torch.no_grad():
            member.layers[0].offset.add_(float(k))  # type: ignore[operator]
        members.append(member)
    return replace(one, members=tuple(members), histories=one.histories * 3)


def shares(model: FittedModel, samples: np.ndarray) -> list[Any]:
    """The draws of each member: the last has one more where they cannot be shared out evenly."""
    count = len(samples)
    ends = np.cumsum([0, *((count + k) // len(model.members) for k in range(len(model.members)))])
    return [samples[a:b] for a, b in pairwise(ends.tolist())]


@pytest.mark.parametrize("count", [30, 32])
def test_each_member_has_its_own_noise(mixture: FittedModel, count: int) -> None:
    p = mixture.predictive(NEW, num_samples=count)
    assert p.samples.shape == (count, 5, 2)
    spread = Y.std(0)  # targets are scaled by it
    assert isinstance(p.components, NormalComponents)
    scales = np.broadcast_to(p.components.scale, p.samples.shape)[:, 0]
    for noise, part in zip(NOISES, shares(mixture, scales), strict=True):
        np.testing.assert_allclose(part, np.tile(np.sqrt(noise) * spread, (len(part), 1)))
    # The law of total variance: that of the functions, and the mean of the noise.
    sizes = [len(part) for part in shares(mixture, p.samples)]
    assert sum(sizes) == count
    inner = sum(n * np.array(noise) for n, noise in zip(sizes, NOISES, strict=True)) / count
    np.testing.assert_allclose(p.std**2, p.samples.var(0) + inner * spread**2)
    summary = mixture.summary(NEW, (0.1, 0.9), num_samples=count)
    np.testing.assert_allclose(summary.std, p.std)
    np.testing.assert_allclose(summary.mean, p.mean)
    for level in (0.1, 0.9):
        np.testing.assert_allclose(summary.quantiles[level], p.quantile(level))


def test_draws_are_those_of_each_member(mixture: FittedModel) -> None:
    """A mixture of members is as each of them alone, with seeds of their own."""
    found = shares(mixture, mixture.draw(9, seed=5)(NEW))
    for k, (member, part) in enumerate(zip(mixture.members, found, strict=True)):
        alone = replace(mixture, members=(member,), histories=mixture.histories[:1])
        np.testing.assert_allclose(part, alone.draw(3, seed=5 + 1_000_003 * k)(NEW))


def test_the_noise_that_is_told_is_the_mean_over_members(mixture: FittedModel) -> None:
    expected = np.mean([np.sqrt(noise) for noise in NOISES], axis=0) * Y.std(0)
    (told,) = mixture.noise().values()
    np.testing.assert_allclose(told, expected)
