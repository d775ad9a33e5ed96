"""Response of one pole to a complex exponential, and its moments, from the integral.

`wave` is the integral of v^power e^{-s v} e^{j omega (x - v)} over v in (0, x) or (0, inf).
With p = s + j omega it is e^{j omega x} times an incomplete gamma integral.
"""

from typing import Any

import mpmath as mp

from .precision import is_zero_memory, number, settle, settle_all


def wave_moments(x: Any, omega: Any, s: Any, memory: str, count: int) -> list[Any]:
    """Moments 0 .. count - 1 at the current working precision, not settled."""
    x, omega, s = number(x), number(omega), number(s)
    p = s + 1j * omega
    phase = mp.exp(1j * omega * x)
    if is_zero_memory(memory):
        return [phase * _incomplete(p, x, power) for power in range(count)]
    if mp.re(s) <= 0:
        raise ValueError("infinite memory needs a stable pole")
    return [phase * mp.factorial(power) / p ** (power + 1) for power in range(count)]


def _incomplete(p: Any, x: Any, power: int) -> Any:
    """The integral of v^power e^{-p v} from 0 to x."""
    y = p * x
    if abs(y) < 1:
        total = mp.mpc(0)
        term = mp.mpc(1)  # (-y)^k / k!
        k = 0
        while abs(term) > mp.eps * mp.mpf(10) ** -5:
            total += term / (power + k + 1)
            k += 1
            term *= -y / k
        return total * x ** (power + 1)
    partial = sum((y**k / mp.factorial(k) for k in range(power + 1)), mp.mpc(0))
    return mp.factorial(power) / p ** (power + 1) * (1 - mp.exp(-y) * partial)


def wave(x: Any, omega: Any, s: Any, memory: str, power: int = 0) -> mp.mpc:
    """The response to e^{j omega tau} at x (power 0), or its moment in v.

    For zero memory and x < 0 it is the oriented integral from 0 to x.
    """
    return settle(lambda: wave_moments(x, omega, s, memory, power + 1)[power])


def wave_scale(x: Any, omega: Any, s: Any, memory: str) -> mp.mpf:
    """The size against which rounding errors of `wave` are to be measured.

    Infinite memory: the modulus. Zero memory: the larger term of the difference of two
    exponentials, or the integral of the modulus of the integrand if that is smaller.
    """
    with mp.workdps(60):
        if not is_zero_memory(memory):
            return abs(wave(x, omega, s, memory))
        x, omega, s = number(x), number(omega), number(s)
        absolute = abs(wave(x, 0, mp.re(s), memory))
        p = s + 1j * omega
        if p == 0:
            return absolute
        return min(max(mp.mpf(1), mp.exp(-mp.re(s) * x)) / abs(p), absolute)


def wave_gradients(x: Any, omega: Any, s: Any, memory: str) -> dict[str, mp.mpc]:
    """Partial derivatives of `wave` (power 0) in x, omega and s (complex derivative)."""
    x, omega, s = number(x), number(omega), number(s)

    def evaluate() -> list[Any]:
        value, first = wave_moments(x, omega, s, memory, 2)
        start = mp.exp(-s * x) if is_zero_memory(memory) else mp.mpf(0)
        return [start + 1j * omega * value, 1j * (x * value - first), -first]

    names = ("x", "omega", "s")
    return dict(zip(names, settle_all(evaluate), strict=True))
