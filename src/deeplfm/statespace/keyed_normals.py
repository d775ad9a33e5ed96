"""Random numbers without a generator: each is a function of a seed and of whole numbers, its keys.

    h ← mix(h + mix(key)),   n = sqrt(-2 log u) (cos θ, sin θ),   u and θ: 52 and 12 bits of h

mix is the finaliser of SplitMix64 (Steele, Lea and Flood 2014). Nothing depends on what else is
asked, nor in which order. 4096 angles suffice: an even grid of them averages every power of n below
the 4096th exactly.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, UInt64

GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # an odd number: keys 0, 1, … go far apart
_FACTORS = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
_SHIFTS, _LAST_SHIFT = (np.uint64(30), np.uint64(27)), np.uint64(31)
_PATHS = 2**40  # where other numbers have their count of keys
_ANGLE_BITS = np.uint64(12)
_LAST_ANGLE = np.uint64(2**12 - 1)
_ANGLES = (np.arange(2**12) + 0.5) * (2 * np.pi / 2**12)
_COSINES, _SINES = np.cos(_ANGLES), np.sin(_ANGLES)


def mix(numbers: UInt64[np.ndarray, "*shape"]) -> UInt64[np.ndarray, "*shape"]:
    """Every bit of the result depends on every bit of the number; one to one.

    In place, of arrays with dimensions: numpy warns where a single number overflows.
    """
    shifted = np.empty_like(numbers)
    for shift, factor in zip(_SHIFTS, _FACTORS, strict=True):
        np.right_shift(numbers, shift, out=shifted)
        np.bitwise_xor(numbers, shifted, out=numbers)
        np.multiply(numbers, factor, out=numbers)
    np.right_shift(numbers, _LAST_SHIFT, out=shifted)
    np.bitwise_xor(numbers, shifted, out=numbers)
    return numbers


def hashed(bits: UInt64[np.ndarray, "..."], key: Any) -> UInt64[np.ndarray, "..."]:
    """The bits that a key makes of `bits`; their shapes broadcast."""
    numbers = np.atleast_1d(np.asarray(key)).astype(np.int64).view(np.uint64)
    return mix(bits + mix(numbers * GOLDEN + GOLDEN))


def _start(seed: int, *keys: Any) -> UInt64[np.ndarray, "..."]:
    bits = mix(np.array([seed % 2**64], dtype=np.uint64))
    for key in keys:
        bits = hashed(bits, key)
    return bits


def path_bits(seed: int, samples: Any, states: Any) -> UInt64[np.ndarray, "..."]:
    """The bits of samples and states of a path, apart from all those of `standard_normals`."""
    return _start(seed, _PATHS, samples, states)


def _radius(bits: UInt64[np.ndarray, "*shape"]) -> Float[np.ndarray, "*shape"]:
    whole = np.right_shift(bits, _ANGLE_BITS)
    radius: np.ndarray = whole.view(np.int64).astype(np.float64)  # below 2^52: exact
    radius += 0.5
    radius *= 2.0**-52
    np.log(radius, out=radius)
    radius *= -2
    np.sqrt(radius, out=radius)
    return radius


def normal_pairs(
    bits: UInt64[np.ndarray, "*shape"],
) -> tuple[Float[np.ndarray, "*shape"], Float[np.ndarray, "*shape"]]:
    """Two independent standard normal numbers of each number of 64 bits."""
    radius = _radius(bits)
    angle = np.bitwise_and(bits, _LAST_ANGLE).view(np.int64)
    first, second = np.take(_COSINES, angle), np.take(_SINES, angle)
    first *= radius
    second *= radius
    return first, second


def standard_normals(seed: int, *keys: Sequence[int] | np.ndarray | int) -> np.ndarray:
    """Standard normal numbers of the keys, whose shapes broadcast; one number per tuple of keys.

    The noise of observations, say, has the keys sample, row and output; tuples of different
    lengths have nothing in common, and keys are told apart by their order.

    >>> noise = standard_normals(0, np.arange(4)[:, None, None], np.arange(10)[:, None], [0, 1])
    >>> noise.shape
    (4, 10, 2)
    >>> bool(noise[2, 7, 1] == standard_normals(0, 2, 7, 1))
    True
    """
    bits = _start(seed, len(keys), *keys)
    shape = np.broadcast_shapes(*(np.shape(key) for key in keys))
    return normal_pairs(np.ascontiguousarray(bits))[0].reshape(shape)
