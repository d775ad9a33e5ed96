"""Prior paths of oscillators: their exact covariance, and that they are functions of time."""

import time

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from deeplfm.errors import InputError
from deeplfm.statespace.bridges import PriorPaths
from deeplfm.statespace.oscillator_paths import sinh_ratio, two_product
from impulses import draw_impulses
from linear_blocks import integrated_walk, ornstein_uhlenbeck, side_by_side, walk


def paths(
    decay: list[float], frequency: list[float], samples: int, **arguments: float
) -> PriorPaths:
    given = {"origin": 0.0, "scale": 1.0} | arguments
    return PriorPaths(
        torch.tensor(decay, dtype=torch.float64),
        torch.tensor(frequency, dtype=torch.float64),
        None,
        num_samples=samples,
        seed=int(given.get("seed", 0)),
        origin=given["origin"],
        scale=given["scale"],
    )


def mixed(samples: int, seed: int = 0, origin: float = 0.0, scale: float = 1.0) -> PriorPaths:
    """Oscillators of many speeds, and a block of a level, a walk and an integrated walk."""
    decay = torch.tensor([1e-6, 0.3, 1.0, 1e3, 0.0], dtype=torch.float64)
    frequency = torch.tensor([3.0, 50.0, 0.0, 1e4, 7.0], dtype=torch.float64)
    block = side_by_side(ornstein_uhlenbeck(2.0), walk(), integrated_walk())
    return PriorPaths(
        decay, frequency, block, num_samples=samples, seed=seed, origin=origin, scale=scale
    )


def oscillator_covariance(decay: float, frequency: float, times: np.ndarray) -> np.ndarray:
    """cov of (x, y) at all times, [2, N, 2, N]: e^{-λ|τ|} Rot(ωτ)."""
    lag = times[:, None] - times
    decayed = np.exp(-decay * np.abs(lag))
    c, s = decayed * np.cos(frequency * lag), decayed * np.sin(frequency * lag)
    return np.array([[c, -s], [s, c]]).transpose(0, 2, 1, 3)


TIMES = st.lists(
    st.floats(-3, 5) | st.floats(0, 1e-6) | st.floats(-200, 200) | st.sampled_from([0.0, 1.0, 0.5]),
    min_size=1,
    max_size=6,
    unique=True,
)


@given(st.floats(-6, 3), st.floats(-50, 50), st.floats(-2, 2), st.floats(-10, 10), TIMES)
def test_the_covariance_is_exact(
    log_decay: float, frequency: float, log_scale: float, origin: float, times: list[float]
) -> None:
    decay, at = 10.0**log_decay, np.array(times)
    with pytest.MonkeyPatch.context() as patch:
        draw_impulses(patch, 1500)
        drawn = paths([decay], [frequency], 1500, origin=origin, scale=10.0**log_scale)(at)
    impulses = drawn.numpy()
    exact = oscillator_covariance(decay, frequency, at)
    # What is not drawn has a variance of 1e-12; phases are good to the rounding of a lag.
    bound = 3e-12 + 1e-15 * abs(frequency) * np.ptp(at)
    assert np.abs(np.einsum("sni,smj->injm", impulses, impulses) - exact).max() < bound


def test_moments_of_many_draws() -> None:
    at, samples = np.array([-1.7, -0.2, 0.0, 0.013, 0.6, 0.61, 1.5, 9.0]), 40_000
    decay, frequency = [0.2, 3.0, 500.0], [9.0, -2.0, 0.0]
    states = paths(decay, frequency, samples)(at).numpy()
    exact = np.zeros((6, len(at), 6, len(at)))
    for k in range(3):
        pair = np.ix_([k, 3 + k], range(len(at)), [k, 3 + k], range(len(at)))
        exact[pair] = oscillator_covariance(decay[k], frequency[k], at)
    drawn = np.einsum("sni,smj->injm", states, states) / samples
    # Of 1176 different entries the largest stays below 5 standard errors.
    assert (np.abs(drawn - exact) < 5 * np.sqrt((1 + exact**2) / samples)).all()
    assert (np.abs(states.mean(0)) < 5 / np.sqrt(samples)).all()
    for i in range(6):
        assert stats.kstest(states[:, 4, i], "norm").pvalue > 1e-6


def test_increments_are_those_of_a_markov_state() -> None:
    decay, frequency, at = 0.7, 5.0, np.linspace(-0.5, 3.5, 4001)
    z = paths([decay], [frequency], 20)(at).numpy()
    z = z[..., 0] + 1j * z[..., 1]
    step = (-decay + 1j * frequency) * (at[1] - at[0])
    noise = (z[:, 1:] - np.exp(step) * z[:, :-1]) / np.sqrt(-np.expm1(2 * step.real))
    assert stats.kstest(noise.real.ravel(), "norm").pvalue > 1e-6
    assert stats.kstest(noise.imag.ravel(), "norm").pvalue > 1e-6
    count = noise[:, 1:].size
    for lag in (1, 2, 16):
        together = np.mean(noise[:, lag:] * noise[:, :-lag].conj())
        assert abs(together) < 5 * 2 / np.sqrt(count)
    assert abs(np.mean(noise * z[:, :-1].conj())) < 5 * 2 / np.sqrt(count)


@settings(max_examples=6)
@given(st.integers(0, 2**32), st.floats(-5, 5), st.floats(-1, 2))
def test_a_path_agrees_with_itself(seed: int, origin: float, log_scale: float) -> None:
    rng = np.random.default_rng(seed)
    near, far = rng.uniform(-2, 3, 40), rng.normal(size=4) * 10.0 ** rng.uniform(0, 4, 4)
    at = np.concatenate((near, far, near[:5], [origin, origin + 10.0**log_scale]))
    drawn = mixed(3, seed, origin, 10.0**log_scale)
    states = drawn(at)
    subset = rng.permutation(len(at))[: int(rng.integers(1, len(at)))]
    again = mixed(3, seed, origin, 10.0**log_scale)
    assert (again(at[subset])[..., :10] == states[:, subset, :10]).all()
    # Blocks ask for steps by the batch, whose rounding may depend on the others of a batch.
    torch.testing.assert_close(again(at[subset]), states[:, subset], rtol=1e-12, atol=1e-12)
    for i in subset[:3]:
        torch.testing.assert_close(drawn(at[[i]])[:, 0], states[:, i], rtol=1e-12, atol=1e-12)
    assert not (mixed(3, seed + 1, origin, 10.0**log_scale)(at)[..., :4] == states[..., :4]).any()


def test_functions_are_the_readout_of_states_in_chunks() -> None:
    rng = np.random.default_rng(0)
    at, drawn = rng.uniform(-3, 9, 1700), mixed(33)
    readout = torch.from_numpy(rng.normal(size=(4, drawn.num_states)))
    expected = drawn(at) @ readout.mT
    torch.testing.assert_close(drawn.functions(at, readout), expected, rtol=1e-12, atol=1e-11)
    some = drawn.functions(at[700:703], readout)
    torch.testing.assert_close(some, expected[:, 700:703], rtol=1e-12, atol=1e-11)
    assert drawn.functions(at[:0], readout).shape == (33, 0, 4)
    assert drawn(at[:0]).shape == (33, 0, drawn.num_states)


def test_samples_do_not_depend_on_how_many_there_are() -> None:
    at = np.array([0.2, 4.0, -1.0])
    assert (mixed(3)(at) == mixed(8)(at)[:3]).all()


@pytest.mark.parametrize("decay", [1e-6, 0.1, 1.0, 1e3])
@pytest.mark.parametrize("distance", [1e-9, 1e-6, 1e-3, 0.1, 1.0])
def test_paths_are_as_rough_as_they_should_be(decay: float, distance: float) -> None:
    """Mean squared change over a distance is 2(1 - e^{-λd} cos ωd), continuous down to 1e-9."""
    rng, samples, frequency = np.random.default_rng(1), 2000, 4.0
    at = rng.uniform(0, 4, 50)
    change = paths([decay], [frequency], samples)(at + distance) - paths(
        [decay], [frequency], samples
    )(at)
    mean = float(change.square().mean())
    lag = (at + distance) - at
    expected = 2 * np.mean(-np.expm1(-decay * lag) * np.cos(frequency * lag))
    expected += 2 * np.mean(2 * np.sin(frequency * lag / 2) ** 2)
    # Differences at one time are 2 samples of a normal number; those at others come on top.
    assert abs(mean / expected - 1) < 5 * np.sqrt(2 / (2 * samples)) + 1e-12 / expected


def test_phases_do_not_drift_far_from_the_origin() -> None:
    """Without decay a state only turns: after 1e9 radians it is where the exact phase says."""
    import mpmath

    drawn = paths([0.0], [1e5 / 3], 5, origin=0.1)
    at = np.array([0.1, 30_000.7])
    first, last = drawn(at).unbind(1)
    with mpmath.workdps(40):
        angle = (mpmath.mpf(float(at[1])) - mpmath.mpf(0.1)) * mpmath.mpf(1e5 / 3)
        c, s = float(mpmath.cos(angle)), float(mpmath.sin(angle))
    turned = torch.stack((c * first[:, 0] - s * first[:, 1], s * first[:, 0] + c * first[:, 1]), 1)
    torch.testing.assert_close(last, turned, rtol=1e-13, atol=1e-14)


@given(st.floats(0, 1), st.floats(-300, 6))
def test_ratio_of_hyperbolic_sines(q: float, log_x: float) -> None:
    import mpmath

    x = 10.0**log_x
    with mpmath.workdps(40):
        exact = float(mpmath.sinh(mpmath.mpf(q) * x) / mpmath.sinh(mpmath.mpf(x)))
    ours = float(sinh_ratio(np.array([q]), np.array([x]))[0])
    # The exponent x(1 - q) is rounded: its error is relative to the exponent.
    assert abs(ours - exact) <= 1e-15 * (4 + x * (1 - q)) * exact + 1e-300


@given(st.floats(-1e9, 1e9), st.floats(-1e9, 1e9))
def test_a_product_and_its_rounding(a: float, b: float) -> None:
    from fractions import Fraction

    a, b = float(np.float32(a)) + 2.0**-30, b + 2.0**-30
    product, rounding = two_product(np.array([a]), np.array([b]))
    exact = Fraction(a) * Fraction(b)
    assert Fraction(float(product[0])) + Fraction(float(rounding[0])) == exact


def test_quick_and_short_of_memory() -> None:
    rng = np.random.default_rng(0)
    drawn = paths(rng.gamma(1, 1, 30).tolist(), rng.uniform(0, 50, 30).tolist(), 20)
    at, readout = rng.uniform(0, 1, 1000), torch.ones(3, 60).double()
    begin = time.process_time()
    drawn.functions(at, readout)
    # A third of a second on one core; the limit is for machines that are busy.
    assert time.process_time() - begin < 3


def test_bad_arguments_are_refused(without_shape_checks: None) -> None:
    one, two = torch.ones(1).double(), torch.ones(2).double()
    good = {"num_samples": 2, "seed": 0, "origin": 0.0, "scale": 1.0}
    for decay, changed, match in (
        (two, {}, "one number each per oscillator"),
        (-one, {}, "decays not negative"),
        (one, {"scale": 0.0}, "must be positive"),
        (one, {"num_samples": 0}, "must be positive"),
        (one, {"origin": float("nan")}, "origin a number"),
    ):
        with pytest.raises(InputError, match=match):
            PriorPaths(decay, one, None, **(good | changed))
    drawn = mixed(2)
    with pytest.raises(InputError, match="finite numbers"):
        drawn(np.array([0.0, np.nan]))
    with pytest.raises(InputError, match=r"readout must be \[E, 14\]"):
        drawn.functions(np.zeros(2), torch.ones(1, 3).double())
    with pytest.raises(InputError, match="earlier origin"):
        drawn(np.array([-1e7]))
