"""The spread of a prediction times a factor: everything that comes out of it follows."""

import numpy as np
import pytest

from deeplfm.evaluation import NormalComponents, Predictive, StudentTComponents
from deeplfm.evaluation.components import Components
from deeplfm.evaluation.spread import Spread

RANDOM = np.random.default_rng(0)
CENTRES = RANDOM.standard_normal((50, 3, 2))
SCALES = np.array([0.5, 2.0])
FACTOR = np.array([1.0, 2.0, 0.5])


@pytest.mark.parametrize(
    "components",
    [NormalComponents(CENTRES, SCALES), StudentTComponents(CENTRES, SCALES, 5.0)],
    ids=["normal", "student"],
)
def test_all_of_a_mixture_is_so_many_times_as_wide(components: Components) -> None:
    plain = Predictive(CENTRES, components)
    wide = plain.widened(FACTOR)
    times = FACTOR[:, None]
    np.testing.assert_allclose(wide.mean, plain.mean)
    np.testing.assert_allclose(wide.std, times * plain.std)
    for level in (0.05, 0.5, 0.95):
        away = plain.quantile(level) - plain.mean
        np.testing.assert_allclose(wide.quantile(level) - wide.mean, times * away, atol=1e-8)
    np.testing.assert_allclose(wide.samples.std(0), times * plain.samples.std(0))
    y = plain.mean + 0.3
    scaled = plain.mean + 0.3 / times
    np.testing.assert_allclose(
        wide.log_density(y), plain.log_density(scaled) - np.log(times), atol=1e-10
    )


def test_functions_and_noise_widen_where_they_are_told_apart() -> None:
    functions = 3 + RANDOM.standard_normal((4000, 3, 2))
    closed = NormalComponents(np.full((1, 3, 2), 3.0), np.sqrt(1 + SCALES**2))
    plain = Predictive(
        lambda: functions,
        closed,
        seed=1,
        observed=lambda values: NormalComponents(values, SCALES),
    )
    wide = plain.widened(FACTOR)
    np.testing.assert_allclose(wide.samples - 3, FACTOR[:, None] * (functions - 3))
    np.testing.assert_allclose(wide.sample_y().std(0), wide.std, rtol=0.05)
    np.testing.assert_allclose(wide[1:].samples, wide.samples[:, 1:])


def test_forces_without_noise_widen_about_their_mean() -> None:
    plain = Predictive.without_noise(CENTRES)
    np.testing.assert_allclose(plain.widened(FACTOR).std, FACTOR[:, None] * plain.std)


def test_one_factor_goes_over_into_the_other() -> None:
    spread = Spread(inside=0.5, beyond=2.0, reach=4.0)
    at = spread.at(np.array([-9.0, -2.0, 0.0, 5.0, 10.0, 12.0, 14.0, 99.0]), 0.0, 10.0)
    np.testing.assert_allclose(at, [2, 1, 0.5, 0.5, 0.5, 1, 2, 2])
    np.testing.assert_allclose(Spread(1.0, 3.0).at(np.array([10.0, 10.1]), 0.0, 10.0), [1, 3])
    assert Spread().is_plain
    assert not Spread(beyond=1.2).is_plain
