"""Green's functions with any poles, repeated or not, and their responses.

G is the divided difference of e^{lambda t} at lambda_k = -s_k, and a response is the divided
difference of the one-pole response. With lambda = -s the n-th derivative of a one-pole
response is its n-th moment in v, which is what equal points need.
"""

from collections.abc import Callable, Sequence
from typing import Any

import mpmath as mp

from .bumps import bump_moments
from .precision import number, settle, settle_all
from .waves import wave_moments

Moments = Callable[[Any, int], list[Any]]  # (pole, count) -> moments 0 .. count - 1


def divided_difference(moments: Moments, roots: Sequence[Any]) -> Any:
    """Divided difference at lambda = -root, at the current working precision, not settled."""
    nodes = sorted((mp.mpc(number(root)) for root in roots), key=lambda s: (s.real, s.imag))
    known = {node: moments(node, nodes.count(node)) for node in set(nodes)}
    column = [known[node][0] for node in nodes]
    for width in range(1, len(nodes)):
        following = []
        for i in range(len(nodes) - width):
            low, high = nodes[i], nodes[i + width]
            if low == high:
                following.append(known[low][width] / mp.factorial(width))
            else:
                following.append((column[i + 1] - column[i]) / (low - high))
        column = following
    return column[0]


def _green_moments(t: Any) -> Moments:
    t = number(t)
    return lambda s, count: [t**n * mp.exp(-s * t) for n in range(count)]


def _wave_moments(x: Any, omega: Any, memory: str) -> Moments:
    return lambda s, count: wave_moments(x, omega, s, memory, count)


def _bump_moments(x: Any, z: Any, ell: Any, memory: str) -> Moments:
    return lambda s, count: bump_moments(x, z, ell, s, memory, count)


def greens(t: Any, roots: Sequence[Any]) -> mp.mpc:
    """Green's function of prod_k (d/dt + s_k) at t >= 0."""
    return settle(lambda: divided_difference(_green_moments(t), roots))


def greens_wave(x: Any, omega: Any, roots: Sequence[Any], memory: str) -> mp.mpc:
    """Response of that Green's function to e^{j omega tau}."""
    return settle(lambda: divided_difference(_wave_moments(x, omega, memory), roots))


def greens_bump(x: Any, z: Any, ell: Any, roots: Sequence[Any], memory: str) -> mp.mpc:
    """Response of that Green's function to exp(-(tau - z)^2 / (2 ell^2))."""
    return settle(lambda: divided_difference(_bump_moments(x, z, ell, memory), roots))


def _second_order_roots(alpha: Any, omega0: Any) -> list[Any]:
    alpha, omega0 = number(alpha), number(omega0)
    root = mp.sqrt(mp.mpc((alpha - omega0) * (alpha + omega0)))
    return [alpha + root, alpha - root]


def second_order_roots(alpha: Any, omega0: Any) -> list[mp.mpc]:
    """Poles alpha +- sqrt(alpha^2 - omega0^2) of y'' + 2 alpha y' + omega0^2 y = u."""
    with mp.workdps(90):
        return _second_order_roots(alpha, omega0)


def second_order_gradients(
    kind: str, point: Sequence[Any], alpha: Any, omega0: Any, memory: str = "infinite"
) -> dict[str, mp.mpc]:
    """Value of a second-order response and its derivatives in alpha and omega0.

    `kind` and `point` are "green" (t,), "wave" (x, omega) or "bump" (x, z, ell).
    The transfer function is H = 1 / (p^2 + 2 alpha p + omega0^2), so dH/dalpha = -2 p H^2 and
    dH/domega0 = -2 omega0 H^2; H^2 has every pole twice, and p H^2 = (p + s1) H^2 - s1 H^2
    has one of them only once. Nothing is special at critical damping.
    """
    if kind == "green":
        (t,) = point
        moments = _green_moments(t)
    elif kind == "wave":
        x, omega = point
        moments = _wave_moments(x, omega, memory)
    elif kind == "bump":
        x, z, ell = point
        moments = _bump_moments(x, z, ell, memory)
    else:
        raise ValueError(f"kind must be 'green', 'wave' or 'bump', not {kind!r}")
    omega0 = number(omega0)

    def evaluate() -> list[Any]:
        s1, s2 = _second_order_roots(alpha, omega0)
        squared = divided_difference(moments, [s1, s1, s2, s2])
        rising = divided_difference(moments, [s1, s2, s2]) - s1 * squared
        return [divided_difference(moments, [s1, s2]), -2 * rising, -2 * omega0 * squared]

    names = ("value", "alpha", "omega0")
    return dict(zip(names, settle_all(evaluate), strict=True))
