"""What the kernels compute with: waves from turns, 1 - e^{-u}, the moments of half a Gaussian.

Polynomials are the fits of `sums.constants`. All of it runs through Triton's interpreter too.
"""

from typing import no_type_check

import triton
import triton.language as tl

from deeplfm.sums import constants

_SINE_32, _SINE_64 = tl.constexpr(constants.SINE_32), tl.constexpr(constants.SINE_64)
_COSINE_32, _COSINE_64 = tl.constexpr(constants.COSINE_32), tl.constexpr(constants.COSINE_64)
_RISE_32, _RISE_64 = tl.constexpr(constants.RISE_32), tl.constexpr(constants.RISE_64)
_MOMENT_0_32, _MOMENT_0_64 = (
    tl.constexpr(constants.MOMENT_0_32),
    tl.constexpr(constants.MOMENT_0_64),
)
_MOMENT_1_32, _MOMENT_1_64 = (
    tl.constexpr(constants.MOMENT_1_32),
    tl.constexpr(constants.MOMENT_1_64),
)


@triton.jit
@no_type_check
def _polynomial(x, coefficients: tl.constexpr, count: tl.constexpr):
    total = x * coefficients[count - 1] + coefficients[count - 2]
    for k in tl.static_range(count - 2):
        total = tl.fma(total, x, tl.full(x.shape, coefficients[count - 3 - k], x.dtype))
    return total


@triton.jit
@no_type_check
def turns(omega):
    """ω/2π as a sum of two numbers, so that a phase has no error but that of ω."""
    if omega.dtype == tl.float64:
        turn = tl.full(omega.shape, 0.15915494309189535, omega.dtype)
        rest = omega * -9.83933833759e-18
    else:
        turn = tl.full(omega.shape, 0.15915493667125702, omega.dtype)
        rest = omega * 6.42063831673e-9
    high = omega * turn
    low = tl.fma(omega, turn, -high) + rest
    return high, low


@triton.jit
@no_type_check
def turned(f):
    """sin²(φ/2) and sin(φ/2)·cos(φ/2) of a phase of `f` turns, |f| ≤ ½.

    Both repeat after one turn: half an angle needs no quadrants.
    """
    square = f * f
    if f.dtype == tl.float64:
        sine = f * _polynomial(square, _SINE_64, 11)
        cosine = _polynomial(square, _COSINE_64, 11)
    else:
        sine = f * _polynomial(square, _SINE_32, 5)
        cosine = _polynomial(square, _COSINE_32, 6)
    return sine * sine, sine * cosine


@triton.jit
@no_type_check
def half_waves(x, high, low):
    """sin²(ωx/2) and sin(ωx/2)·cos(ωx/2), from ω in turns."""
    whole = tl.floor(x * high + 0.5)
    return turned(tl.fma(x, low, tl.fma(x, high, -whole)))


@triton.jit
@no_type_check
def rise_and_fade(u):
    """1 - e^{-u} and e^{-u}, the first to rounding near 0 too."""
    fade = tl.exp(-u)
    near = tl.where(tl.abs(u) < 0.5, u, 0.0)
    if u.dtype == tl.float64:
        rise = near * _polynomial(near, _RISE_64, 14)
    else:
        rise = near * _polynomial(near, _RISE_32, 8)
    return tl.where(tl.abs(u) < 0.5, rise, 1 - fade), fade


@triton.jit
@no_type_check
def half_gaussian_moments(a, with_first: tl.constexpr):
    """M_0(a) and M_1(a) for a ≥ 0, each by a fit of its own: 1 - a·M_0 would cancel."""
    inverse = 1.0 / (a + 4.0)
    y = 1.0 - 8.0 * inverse
    if a.dtype == tl.float64:
        zeroth = inverse * _polynomial(y, _MOMENT_0_64, 25)
        first = inverse * inverse * _polynomial(y, _MOMENT_1_64, 26) if with_first else zeroth
    else:
        zeroth = inverse * _polynomial(y, _MOMENT_0_32, 10)
        first = inverse * inverse * _polynomial(y, _MOMENT_1_32, 12) if with_first else zeroth
    return zeroth, first


@triton.jit
@no_type_check
def columns_of(x_ptr, n, points, x_n, x_p, P: tl.constexpr):
    """The P columns of a table at rows n, 0 beyond its `points` rows."""
    columns = ()
    for p in tl.static_range(P):
        column = tl.load(x_ptr + n * x_n + p * x_p, mask=n < points, other=0.0)
        columns = columns + (column,)  # noqa: RUF005 - kernels know no unpacking of tuples
    return columns
