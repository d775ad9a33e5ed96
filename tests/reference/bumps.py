"""Response of one pole to a Gaussian bump, and its moments, from the integral.

`bump` is the integral of v^power e^{-s v} exp(-(x - v - z)^2 / (2 ell^2)) over v in (0, x)
or (0, inf). Completing the square gives scaled complementary error functions; the sign of
the real part of their argument says which of two equal forms has no large terms.
"""

from typing import Any

import mpmath as mp

from .precision import is_zero_memory, number, settle, settle_all


def scaled_erfc(a: Any) -> Any:
    """e^{a^2} erfc(a) at the current working precision, for any complex a.

    The asymptotic series where its smallest term is below the precision, otherwise the power
    series with as many extra digits as its terms are large.
    """
    a = number(a)
    if mp.im(a) == 0:
        a = mp.re(a)
    if mp.re(a) < 0:
        return 2 * mp.exp(a * a) - scaled_erfc(-a)
    size = float(min(abs(a) ** 2, mp.mpf(10) ** 12))
    precision = mp.mp.prec
    if size > 0.6932 * precision + 20:
        with mp.workprec(precision + 20):
            factor = -1 / (2 * a * a)
            total, term, k = mp.mpf(0), mp.mpf(1), 1
            while abs(term) > mp.eps:
                total += term
                term *= factor * (2 * k - 1)
                k += 1
            value = total / (a * mp.sqrt(mp.pi))
    else:
        with mp.workprec(precision + int(2.9 * size) + 40):
            square = a * a
            total, term, k = mp.mpf(0), a, 0
            small = mp.eps * abs(a)
            while abs(term) > small:
                total += term
                k += 1
                term *= 2 * square / (2 * k + 1)
            value = mp.exp(square) - 2 / mp.sqrt(mp.pi) * total
    return +value


def bump_terms(x: Any, z: Any, ell: Any, s: Any, memory: str) -> list[Any]:
    """The terms of the exact sum whose total is the response; none is needlessly large.

    Each end of the integral gives +g erfcx(a) for Re a >= 0, else 2 g e^{a^2} - g erfcx(-a).
    The middle part is the same at both ends, so with zero memory it cancels by hand.
    """
    x, z, ell, s = number(x), number(z), number(ell), number(s)
    front = ell * mp.sqrt(mp.pi / 2)

    def end(at: Any) -> tuple[Any, bool]:
        a = (s * ell**2 + z - at) / (ell * mp.sqrt(2))
        height = front * mp.exp(-((at - z) ** 2) / (2 * ell**2))
        behind = bool(mp.re(a) < 0)
        return (-height * scaled_erfc(-a) if behind else height * scaled_erfc(a)), behind

    terms = []
    near, near_behind = end(x)
    terms.append(near)
    far_behind = False
    if is_zero_memory(memory):
        far, far_behind = end(mp.mpf(0))
        terms.append(-mp.exp(-s * x) * far)
    if near_behind != far_behind:
        sign = 1 if near_behind else -1
        terms.append(sign * 2 * front * mp.exp(s**2 * ell**2 / 2 + s * (z - x)))
    return terms


def bump_moments(x: Any, z: Any, ell: Any, s: Any, memory: str, count: int) -> list[Any]:
    """Moments 0 .. count - 1 at the current working precision, not settled.

    With E the integrand, E' = ((x - z - v) / ell^2 - s) E. Integrating v^n E' by parts gives
    I_{n+1} = (x - z - s ell^2) I_n + n ell^2 I_{n-1} - ell^2 [v^n E].
    """
    x, z, ell, s = number(x), number(z), number(ell), number(s)
    zero = is_zero_memory(memory)
    if zero and x == 0:
        return [mp.mpf(0)] * count
    moments = [mp.fsum(bump_terms(x, z, ell, s, memory))]
    at_start = mp.exp(-((x - z) ** 2) / (2 * ell**2))
    at_end = mp.exp(-s * x - z**2 / (2 * ell**2)) if zero else mp.mpf(0)
    for n in range(count - 1):
        boundary = x**n * at_end - (at_start if n == 0 else 0)
        following = (x - z - s * ell**2) * moments[n] - ell**2 * boundary
        if n > 0:
            following += n * ell**2 * moments[n - 1]
        moments.append(following)
    return moments


def bump(x: Any, z: Any, ell: Any, s: Any, memory: str, power: int = 0) -> mp.mpc:
    """The response to the bump at x (power 0), or its moment in v.

    For zero memory and x < 0 it is the oriented integral from 0 to x.
    """
    return settle(lambda: bump_moments(x, z, ell, s, memory, power + 1)[power])


def bump_scale(x: Any, z: Any, ell: Any, s: Any, memory: str) -> mp.mpf:
    """The size against which rounding errors of `bump` are to be measured.

    The largest term of the exact sum; for zero memory the integral of the modulus of the
    integrand if that is smaller.
    """
    with mp.workdps(60):
        largest = max(abs(term) for term in bump_terms(x, z, ell, s, memory))
        if not is_zero_memory(memory):
            return largest
        return min(largest, abs(bump(x, z, ell, mp.re(number(s)), memory)))


def bump_gradients(x: Any, z: Any, ell: Any, s: Any, memory: str) -> dict[str, mp.mpc]:
    """Partial derivatives of `bump` (power 0) in x, z, ell and s (complex derivative)."""
    x, z, ell, s = number(x), number(z), number(ell), number(s)

    def evaluate() -> list[Any]:
        zeroth, first, second = bump_moments(x, z, ell, s, memory, 3)
        c = x - z
        slope = (c * zeroth - first) / ell**2  # integral of (c - v) / ell^2 times the integrand
        spread = (c**2 * zeroth - 2 * c * first + second) / ell**3
        start = mp.exp(-s * x - z**2 / (2 * ell**2)) if is_zero_memory(memory) else mp.mpf(0)
        return [start - slope, slope, spread, -first]

    names = ("x", "z", "ell", "s")
    return dict(zip(names, settle_all(evaluate), strict=True))
