"""The references against quadrature, other exact forms and other precisions."""

import itertools
from collections.abc import Callable
from functools import partial
from typing import Any

import mpmath as mp
import pytest

from .bumps import bump, bump_gradients, bump_moments, bump_scale, bump_terms, scaled_erfc
from .precision import settle_all
from .waves import wave, wave_gradients, wave_scale

MEMORIES = ("zero", "infinite")
POLES = (0.7, 3.0, 0.4 + 2.5j, 12.0 - 5.0j)


def close(value: Any, truth: Any, tolerance: float = 1e-28) -> None:
    with mp.workdps(60):
        assert abs(value - truth) <= tolerance * abs(truth), (value, truth)


def integral(f: Callable[[Any], Any], upper: Any, pieces: int = 12) -> Any:
    """Integral from 0 to `upper` by Gauss-Legendre on equal pieces at 40 digits.

    The integrand is scaled to a peak near 1, since mp.quad stops at an absolute error.
    """
    with mp.workdps(40):
        points = mp.linspace(0, mp.mpf(upper), pieces + 1)
        peak = max(abs(f((a + b) / 2)) for a, b in itertools.pairwise(points))
        return peak * mp.quad(lambda v: f(v) / peak, points, method="gauss-legendre")


def reach(s: complex) -> Any:
    """Where e^{-s v} is below 1e-38."""
    return mp.mpf(90) / mp.re(s)


def wave_integrand(x: float, omega: float, s: complex, power: int, v: Any) -> Any:
    return v**power * mp.exp(-mp.mpmathify(s) * v + 1j * omega * (mp.mpf(x) - v))


@pytest.mark.parametrize("memory", MEMORIES)
@pytest.mark.parametrize("s", POLES)
@pytest.mark.parametrize("power", [0, 3])
def test_wave_is_its_integral(s: complex, power: int, memory: str) -> None:
    for x, omega in ((1.5, 2.0), (-0.8, -3.0), (0.01, 0.3)):
        upper = x if memory == "zero" else reach(s)
        truth = integral(
            partial(wave_integrand, x, omega, s, power),
            upper,
            2 if memory == "zero" else 30,
        )
        close(wave(x, omega, s, memory, power), truth)


def test_wave_where_the_pole_meets_the_frequency() -> None:
    with mp.workdps(60):
        close(wave(2.0, 3.0, -3.0j, "zero"), 2 * mp.expj(6), 1e-50)
    for power, gap in itertools.product(range(4), (1e-3, 1e-9, 1e-15)):
        with mp.workdps(80):
            y = mp.mpf(gap) * 2
            truth = mp.expj(6) * mp.hyp1f1(power + 1, power + 2, -y) * mp.mpf(2) ** (power + 1)
            close(wave(2, 3, mp.mpf(gap) - 3j, "zero", power), truth / (power + 1), 1e-50)


@pytest.mark.parametrize("memory", MEMORIES)
def test_wave_gradients_are_differences(memory: str) -> None:
    for x, omega, s in ((1.5, 2.0, 0.7 + 0j), (-0.8, 0.5, 3 + 1j), (40.0, -500.0, 0.01 - 900j)):
        gradients = wave_gradients(x, omega, s, memory)
        points = {"x": x, "omega": omega, "s": s}
        assert_differences(partial(wave, memory=memory), points, gradients)


def assert_differences(
    f: Callable[..., Any], point: dict[str, Any], gradients: dict[str, Any]
) -> None:
    """Fourth-order central differences; the step leaves errors below 1e-25 in what follows."""
    with mp.workdps(60):
        step = mp.mpf(10) ** -12
        for name, value in point.items():
            shifted = [f(**(point | {name: value + k * step})) for k in (-2, -1, 1, 2)]
            slope = (shifted[0] - 8 * shifted[1] + 8 * shifted[2] - shifted[3]) / (12 * step)
            assert abs(slope - gradients[name]) <= mp.mpf(10) ** -25 * abs(gradients[name]), name


def test_wave_scale_bounds_the_value() -> None:
    for x, omega, s in itertools.product((-2.0, 1e-6, 3.0), (0.0, 40.0), (0.1, 30.0, 2 + 9j)):
        assert abs(wave(x, omega, s, "zero")) <= 2.0001 * wave_scale(x, omega, s, "zero")
    with mp.workdps(60):
        truth = 1 / mp.sqrt(mp.mpf(13))
    close(wave_scale(1.0, 2.0, 3.0, "infinite"), truth, 1e-50)


@pytest.mark.parametrize("a", [0.3, 6.0, 1e4, 1 + 3j, 0.5 + 12j, 2 - 40j, 3e4 + 5e4j, 14 - 0.5j])
def test_scaled_erfc_is_its_integral(a: complex) -> None:
    with mp.workdps(40):
        square = mp.mpmathify(a) ** 2
        # trapezoid of e^{-t^2} / (a^2 + t^2): its error is e^{-2 pi Re a / h} and e^{-(pi / h)^2}
        h = min(mp.mpf(1) / 4, mp.re(a) / 16)
        steps = range(1, int(10.5 / h) + 1)
        total = 1 / square + 2 * mp.fsum(
            mp.exp(-((k * h) ** 2)) / (square + (k * h) ** 2) for k in steps
        )
        close(scaled_erfc(a), a * h * total / mp.pi, 1e-30)
        if abs(a) < 100:
            with mp.workdps(60 + int(abs(a) ** 2)):
                direct = mp.exp(square) * mp.erfc(mp.mpmathify(a))
            close(scaled_erfc(a), direct, 1e-36)
            close(scaled_erfc(-a), 2 * mp.exp(square) - direct, 1e-36)


def test_scaled_erfc_forms_meet() -> None:
    for angle in (0, 0.7, 1.3, 1.5707):
        for radius in (11.0, 13.0, 13.6, 14.0, 18.0):
            a = mp.mpf(radius) * mp.expj(angle)
            with mp.workdps(60):
                low = scaled_erfc(a)
            with mp.workdps(150):
                close(low, scaled_erfc(a), 1e-57)


BUMPS = (
    (1.2, 0.5, 0.4),
    (0.9, -0.6, 0.3),
    (0.05, 0.2, 2.0),
    (2.0, 3.5, 0.5),
    (-0.7, 0.1, 0.6),
    (-0.7, -0.5, 0.3),
)


@pytest.mark.parametrize("memory", MEMORIES)
@pytest.mark.parametrize("s", POLES)
@pytest.mark.parametrize("power", [0, 1, 3])
def test_bump_is_its_integral(s: complex, power: int, memory: str) -> None:
    for x, z, ell in BUMPS:
        truth = bump_integral(x, z, ell, s, memory, power)
        close(bump(x, z, ell, s, memory, power), truth)


def bump_integral(
    x: float, z: float, ell: float, s: complex, memory: str, power: int = 0, pieces: int = 12
) -> Any:
    with mp.workdps(40):
        c = mp.mpf(x) - mp.mpf(z)
    upper = x if memory == "zero" else min(reach(s), abs(c) + 15 * mp.mpf(ell))
    return integral(
        lambda v: v**power * mp.exp(-mp.mpmathify(s) * v - (c - v) ** 2 / (2 * mp.mpf(ell) ** 2)),
        upper,
        pieces,
    )


@pytest.mark.parametrize(
    ("x", "z", "ell", "s"),
    [
        (1e-9, 0.3, 1.0, 1e3 + 1e3j),
        (1e-6, -900.0, 1.0, 0.5 + 2j),
        (1e-3, 90.0, 0.1, 1e-3 - 1e3j),
        (0.05, 0.02, 100.0, 1e3 + 1e3j),
        (1.0, -5e4, 100.0, 3.0 + 0j),
        (0.3, -179.9, 30.0, 0.2 + 20j),
        (0.02, 0.01, 1e-3, 1e-3 + 1e3j),
    ],
)
def test_zero_memory_corners_are_their_integrals(
    x: float, z: float, ell: float, s: complex
) -> None:
    for power in (0, 2):
        truth = bump_integral(x, z, ell, s, "zero", power, 40)
        close(bump(x, z, ell, s, "zero", power), truth)


def test_zero_memory_is_the_difference_of_two_infinite_ones() -> None:
    for x, z, ell, s in ((0.5, -0.3, 0.2, 180.0), (0.4, 0.1, 0.2, 90 + 150j), (2.0, 1.0, 1.0, 0.1)):
        with mp.workdps(400):
            near, start = (mp.fsum(bump_terms(at, z, ell, s, "infinite")) for at in (x, 0))
            truth = near - mp.exp(-mp.mpmathify(s) * x) * start
        close(bump(x, z, ell, s, "zero"), truth, 1e-50)


def corners() -> list[tuple[Any, ...]]:
    poles = (1e-3, 1e3, 1e-3 + 1e3j, 1e3 + 1e3j, 1 - 30j)
    offsets = (-1e3, -3.0, 0.0, 5.0, 1e3)
    grid = itertools.product((1e-6, 0.7, 90.0), offsets, (1e-3, 0.2, 100.0), poles, MEMORIES)
    return [(x, x + offset * ell, ell, s, memory) for x, offset, ell, s, memory in grid]


def test_bump_corners_agree_between_precisions_and_units() -> None:
    for x, z, ell, s, memory in corners()[::7]:
        value = bump(x, z, ell, s, memory)
        again = settle_all(partial(bump_moments, x, z, ell, s, memory, 1), 211)[0]
        close(value, again, 1e-49)
        with mp.workdps(60):
            close(bump(4 * x, 4 * z, 4 * ell, s / 4, memory), 4 * value, 1e-49)
        assert abs(value) <= 3 * bump_scale(x, z, ell, s, memory)


def test_bump_corners_obey_the_ode() -> None:
    for x, z, ell, s, memory in corners()[::7]:
        with mp.workdps(60):
            force = mp.exp(-((mp.mpf(x) - z) ** 2) / (2 * mp.mpf(ell) ** 2))
            decay = mp.mpmathify(s) * bump(x, z, ell, s, memory)
            slope = bump_gradients(x, z, ell, s, memory)["x"]
            assert abs(slope + decay - force) <= 1e-45 * max(abs(slope), abs(decay), force)


@pytest.mark.parametrize("memory", MEMORIES)
def test_bump_gradients_are_differences(memory: str) -> None:
    points = [(x, z, ell, s) for (x, z, ell), s in zip(BUMPS, (*POLES, 0.5, 1 + 2j), strict=True)]
    for x, z, ell, s in [*points, (1.0, -40.0, 0.5, 300 - 200j), (0.3, 20.0, 9.0, 1e-3 + 10j)]:
        point = {"x": x, "z": z, "ell": ell, "s": s}
        gradients = bump_gradients(**point, memory=memory)
        assert_differences(partial(bump, memory=memory), point, gradients)


def test_nothing_has_happened_at_zero() -> None:
    assert bump(0.0, 0.3, 1.0, 2.0, "zero") == 0
    assert wave(0.0, 0.3, 2.0, "zero") == 0
    gradients = bump_gradients(0.0, 0.3, 1.0, 2.0, "zero")
    close(gradients.pop("x"), mp.exp(-(mp.mpf(0.3) ** 2) / 2), 1e-15)
    assert all(value == 0 for value in gradients.values())
