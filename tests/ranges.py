"""The parameter ranges over which the closed forms are promised, as hypothesis strategies."""

from typing import NamedTuple

import torch
from hypothesis import assume
from hypothesis import strategies as st


class Precision(NamedTuple):
    """What is promised in one floating type."""

    real: torch.dtype
    complex: torch.dtype
    value: float  # error of a value, relative to the largest term of the exact expression
    gradient: float  # error of a gradient, relative to |gradient| + |value| / |argument|
    cycles: float  # largest |ωx| and |Im s · x|
    smallest: float  # below this the type has no normal numbers to be accurate with


FLOAT64 = Precision(torch.float64, torch.complex128, 1e-9, 1e-9, 1e5, 1e-290)
FLOAT32 = Precision(torch.float32, torch.complex64, 1e-3, 1e-3, 1e3, 1e-36)


def log_uniform(low: float, high: float) -> st.SearchStrategy[float]:
    """From `low` to `high` powers of ten."""
    return st.floats(low, high).map(lambda exponent: 10.0**exponent)


signs = st.sampled_from([-1.0, 1.0])


def rounded(value: float, precision: Precision) -> float:
    """The number that the floating type holds: both sides compute with the same one."""
    return torch.tensor(value, dtype=precision.real).item()


@st.composite
def poles(draw: st.DrawFn, precision: Precision) -> float | complex:
    """Re s in 1e-3 … 1e3, |Im s| ≤ 1e3; one in three real."""
    real = rounded(draw(log_uniform(-3, 3)), precision)
    if draw(st.integers(0, 2)) == 0:
        return real
    return complex(real, rounded(draw(signs) * draw(log_uniform(-3, 3)), precision))


@st.composite
def bump_cases(
    draw: st.DrawFn, precision: Precision, memory: str
) -> tuple[float, float, float, float | complex]:
    """x, z, ℓ, s: near, far, inside and outside the interval, and intervals much shorter than ℓ."""
    s = draw(poles(precision))
    ell = rounded(draw(log_uniform(-3, 2)), precision)
    distance = draw(signs) * ell * draw(st.one_of(log_uniform(-6, 2.99), st.floats(0, 10)))
    x = draw(
        st.one_of(
            log_uniform(-6, 2).map(lambda ratio: ratio * ell),
            log_uniform(-4, 3),
            st.floats(0, 2).map(lambda ratio: ratio * abs(distance)),
            log_uniform(-2, 2).map(lambda ratio: ratio / abs(s)),
        )
    )
    x = rounded(x if memory == "zero" else x * draw(signs), precision)
    z = rounded(x - distance, precision)
    assume(abs(x) >= 1e-9 and z != 0)
    assume(abs(x - z) <= 1e3 * ell and abs(complex(s).imag * x) <= precision.cycles)
    return x, z, ell, s


@st.composite
def wave_cases(
    draw: st.DrawFn, precision: Precision, memory: str
) -> tuple[float, float, float | complex]:
    """x, ω, s; some with s + jω near 0."""
    s = draw(poles(precision))
    x = rounded(draw(log_uniform(-6, 4)) * (1.0 if memory == "zero" else draw(signs)), precision)
    if isinstance(s, complex) and draw(st.integers(0, 3)) == 0:
        omega = -s.imag * (1 + draw(st.sampled_from([0.0, 1e-7, 1e-3])))
    else:
        omega = draw(signs) * draw(log_uniform(-3, 5))
    omega = rounded(omega, precision)
    assume(abs(omega * x) <= precision.cycles)
    assume(abs(complex(s).imag * x) <= precision.cycles)
    return x, omega, s
