"""What the kernels compute with: waves from turns, 1 - e^{-u}, the moments of half a Gaussian.

Polynomials are minimax fits over the whole range of a reduced argument (float32) or interpolate at
Chebyshev nodes to rounding (float64). All of it runs through Triton's interpreter too.
"""

from typing import no_type_check

import triton
import triton.language as tl

# sin(πu)/u and cos(πu) in u² for |u| ≤ ½: relative error 6e-9, absolute error 3e-10.
_SINE_32 = tl.constexpr((3.141592637, -5.167709685, 2.550069726, -0.5982421261, 0.07756038639))
_COSINE_32 = tl.constexpr(
    (1.0, -4.934802137, 4.058709164, -1.335212057, 0.234937559, -0.02439671661)
)
_SINE_64 = tl.constexpr(
    (
        3.141592653589793238,
        -5.167712780049970029,
        2.550164039877345444,
        -0.5992645293207920656,
        0.08214588661112786706,
        -0.0073704309457075959,
        0.0004663028056889683513,
        -0.00002191535285969445806,
        7.952025736213849112e-7,
        -2.293998713586946103e-8,
        5.249879114060463401e-10,
    )
)
_COSINE_64 = tl.constexpr(
    (
        1.0,
        -4.934802200544679309,
        4.058712126416768217,
        -1.335262768854589413,
        0.2353306303588905613,
        -0.02580689138996470021,
        0.00192957430882922063,
        -0.0001046381006266731362,
        4.303048928191088401e-6,
        -1.387278124454844469e-7,
        3.500312073703762201e-9,
    )
)
# (1 - e^{-u})/u in u for |u| ≤ ½.
_RISE_32 = tl.constexpr(
    (
        1.0,
        -0.5,
        0.16666666666666666,
        -0.041666666666666664,
        0.008333333333333333,
        -0.001388888888888889,
        0.0001984126984126984,
        -2.48015873015873e-05,
    )
)
_RISE_64 = tl.constexpr(
    (
        1.0,
        -0.5,
        0.16666666666666666,
        -0.041666666666666664,
        0.008333333333333333,
        -0.001388888888888889,
        0.0001984126984126984,
        -2.48015873015873e-05,
        2.7557319223985893e-06,
        -2.755731922398589e-07,
        2.505210838544172e-08,
        -2.08767569878681e-09,
        1.6059043836821613e-10,
        -1.1470745597729725e-11,
    )
)
# M_0(a)·(a + 4) and M_1(a)·(a + 4)² in (a - 4)/(a + 4): relative errors 4e-8 and 1e-8.
_MOMENT_0_32 = tl.constexpr(
    (
        1.893219034,
        -1.523770257,
        0.9704108256,
        -0.467554597,
        0.1513833561,
        -0.01882270185,
        -0.00870392216,
        0.003906739222,
        0.0003188790209,
        -0.0003873900637,
    )
)
_MOMENT_1_32 = tl.constexpr(
    (
        3.416989946,
        -4.988360903,
        4.313854027,
        -2.475733851,
        0.8514276436,
        -0.06102958833,
        -0.08950831233,
        0.02984337665,
        0.007858604446,
        -0.005348925353,
        -0.0006219794449,
        0.0006299545193,
    )
)
_MOMENT_0_64 = tl.constexpr(
    (
        1.893219063308485365,
        -1.523770910819983475,
        0.9704095548675874375,
        -0.4675409629983292395,
        0.1513917623124890912,
        -0.01890045086179461005,
        -0.008722295275113486082,
        0.004087855682194039879,
        0.0003342446244758292422,
        -0.0005792693112383797585,
        -4.783311218411097676e-6,
        0.00008809575792458321694,
        1.796566654076627345e-6,
        -0.00001484334725319214522,
        -1.579169362250829852e-6,
        2.568874136537752481e-6,
        6.836016680202922244e-7,
        -4.006262909600914905e-7,
        -2.184099066336063212e-7,
        4.482320698500524005e-8,
        5.415426718115992212e-8,
        -1.509241818614183145e-9,
        -9.520279114401457197e-9,
        -2.943309876163453524e-10,
        8.812534041624494974e-10,
    )
)
_MOMENT_1_64 = tl.constexpr(
    (
        3.416989974128468317,
        -4.988360931375140553,
        4.313851553597913278,
        -2.475730901243527896,
        0.8514610658630308343,
        -0.06106893350853098805,
        -0.08967105653324532538,
        0.03002888824416057169,
        0.008221623692838017729,
        -0.005744857843136642024,
        -0.001021659303275729139,
        0.001035577583060896593,
        0.0002162789205892409918,
        -0.000185650854068088055,
        -0.00006212045598956433137,
        0.00003004673322185180483,
        0.00001826476142311052385,
        -3.086139584095545613e-6,
        -4.81780817933383154e-6,
        -3.973147033401493813e-7,
        1.041285020826346139e-6,
        3.214224862866202888e-7,
        -1.613283336118898144e-7,
        -8.562822275063158042e-8,
        1.317973996242607779e-8,
        9.92398481731904189e-9,
    )
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
