"""Numbers of keys: normal, independent of their neighbours, the same however they are asked."""

import numpy as np
import pytest
from scipy import stats

from deeplfm.statespace.keyed_normals import hashed, mix, normal_pairs, path_bits, standard_normals

N = 200_000


def test_mix_is_that_of_splitmix64() -> None:
    # The first three numbers of the published generator, seed 1234567.
    golden, published = (
        0x9E3779B97F4A7C15,
        (
            6457827717110365317,
            3203168211198807973,
            9817491932198370423,
        ),
    )
    states = np.array([(1234567 + golden * k) % 2**64 for k in (1, 2, 3)], dtype=np.uint64)
    assert tuple(mix(states).tolist()) == published


def test_a_flipped_bit_of_a_key_flips_half_of_the_bits() -> None:
    keys = np.arange(2000)
    bits = path_bits(0, 0, 0)
    for flipped in (0, 1, 20, 40, 59):
        changed = hashed(bits, keys) ^ hashed(bits, keys ^ (1 << flipped))
        flips = np.unpackbits(changed.view(np.uint8)).reshape(len(keys), 64).mean(0)
        assert np.abs(flips - 0.5).max() < 5.5 * 0.5 / np.sqrt(len(keys))  # the worst of 64


@pytest.mark.parametrize("varied", range(4))
def test_numbers_are_normal_along_every_key(varied: int) -> None:
    keys: list[np.ndarray | int] = [3, 1, 4, 1]
    keys[varied] = np.arange(N)
    numbers = standard_normals(7, *keys)
    moments = [np.mean(numbers**power) for power in range(1, 7)]
    expected = np.array([0, 1, 0, 3, 0, 15])
    variance = np.array([1, 3, 15, 105, 945, 10395]) - expected**2
    assert (np.abs(moments - expected) < 5 * np.sqrt(variance / N)).all()
    assert stats.kstest(numbers, "norm").pvalue > 1e-6
    assert 3.5 < np.abs(numbers).max() < 6.5


def test_pairs_are_independent_and_isotropic() -> None:
    x, y = normal_pairs(hashed(path_bits(1, 2, 3), np.arange(N)))
    for power in (1, 2, 3):
        size = np.sqrt(np.mean(x ** (2 * power)) * np.mean(y ** (2 * power)) / N)
        product = np.mean((x**power - np.mean(x**power)) * (y**power - np.mean(y**power)))
        assert abs(product) < 5 * size
    assert stats.kstest(np.arctan2(y, x) / (2 * np.pi) + 0.5, "uniform").pvalue > 1e-6


@pytest.mark.parametrize("lag", [1, 2, 64, 2**16, 2**40])
@pytest.mark.parametrize("varied", range(4))
def test_neighbouring_keys_have_nothing_in_common(varied: int, lag: int) -> None:
    keys: list[np.ndarray | int] = [0, 0, 0, 0]
    keys[varied] = np.arange(N)
    here = standard_normals(0, *keys)
    keys[varied] = np.arange(N) + lag
    there = standard_normals(0, *keys)
    for f in (lambda z: z, np.square, np.abs):
        a, b = f(here) - np.mean(f(here)), f(there) - np.mean(f(there))
        assert abs(np.mean(a * b)) < 5 * a.std() * b.std() / np.sqrt(N)


def test_seeds_orders_and_numbers_of_keys_tell_numbers_apart() -> None:
    k = np.arange(6, N + 6)  # without 5: (5, 5) is its own mirror image
    others = [
        standard_normals(1, 5, k),
        standard_normals(-1, 5, k),
        standard_normals(0, k, 5),
        standard_normals(0, 0, 5, k),
        standard_normals(0, 5, k, 0),
        standard_normals(0, k),
        normal_pairs(hashed(path_bits(0, 5, k), 0))[0],
    ]
    for other in others:
        assert abs(np.mean(standard_normals(0, 5, k) * other)) < 5 / np.sqrt(N)
        assert not (standard_normals(0, 5, k) == other).any()


def test_a_number_does_not_depend_on_what_else_is_asked() -> None:
    sample, row = np.arange(5)[:, None, None], np.arange(101)[:, None]
    all_of_them = standard_normals(2, sample, row, [0, 1, 2])
    assert all_of_them.shape == (5, 101, 3)
    assert (standard_normals(2, sample, row[::-7], [1]) == all_of_them[:, ::-7, 1:2]).all()
    assert standard_normals(2, 4, 100, 2) == all_of_them[4, 100, 2]
