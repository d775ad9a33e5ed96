"""The references for whole systems: Green's functions of any poles, and covariances."""

from typing import Any

import mpmath as mp
import numpy as np
import pytest

from .bumps import bump, bump_terms
from .covariance import lfm_covariance, lfm_cross_covariance
from .greens import greens, greens_bump, greens_wave, second_order_gradients, second_order_roots
from .precision import settle
from .test_references import MEMORIES, assert_differences, close

ROOTS: tuple[list[complex], ...] = (
    [2.0],
    [1.0, 1.0 + 1e-12, 4.0],
    [1.5, 1.5, 1.5],
    [1 + 3j, 1 - 3j, 1 + 3j, 1 - 3j, 0.6],
)


@pytest.mark.parametrize("roots", ROOTS)
def test_greens_is_a_matrix_exponential(roots: list[complex]) -> None:
    order = len(roots)
    for t in (0.01, 1.3, 6.0):
        with mp.workdps(45):
            matrix = mp.zeros(order)
            for i, root in enumerate(roots):
                matrix[i, i] = -mp.mpmathify(root)
                if i + 1 < order:
                    matrix[i, i + 1] = 1
            truth = mp.expm(matrix * mp.mpf(t))[0, order - 1]
        close(greens(t, roots), truth, 1e-30)
    assert greens(0.0, roots) == (1 if order == 1 else 0)


@pytest.mark.parametrize("memory", MEMORIES)
@pytest.mark.parametrize("roots", ROOTS)
def test_responses_are_convolutions(roots: list[complex], memory: str) -> None:
    x, omega, z, ell = 1.7, -1.2, 0.4, 0.5
    zero = memory == "zero"
    with mp.workdps(30):
        bounds = mp.linspace(0, mp.mpf(x), 4) if zero else [0, 1, 3, 6, 10, 20, 40, 80, 160]
        short = bounds if zero else [0, 1, 2, 3, 5, 8]

        def to_wave(v: Any) -> Any:
            return greens(v, roots) * mp.expj(omega * (mp.mpf(x) - v))

        def to_bump(v: Any) -> Any:
            c = mp.mpf(x) - mp.mpf(z)
            return greens(v, roots) * mp.exp(-((c - v) ** 2) / (2 * mp.mpf(ell) ** 2))

        close(greens_wave(x, omega, roots, memory), mp.quad(to_wave, bounds), 1e-25)
        close(greens_bump(x, z, ell, roots, memory), mp.quad(to_bump, short), 1e-25)


def test_second_order_roots_resolve_near_critical_damping() -> None:
    for alpha, omega0 in ((1 + 1e-12, 1.0), (1.0, 1 + 1e-12), (0.3, 2.0), (5.0, 0.1)):
        s1, s2 = second_order_roots(alpha, omega0)
        with mp.workdps(60):
            close(s1 + s2, 2 * mp.mpf(alpha), 1e-55)
            close(s1 * s2, mp.mpf(omega0) ** 2, 1e-55)
            assert s1 != s2
    assert second_order_roots(1.5, 1.5) == [1.5, 1.5]


@pytest.mark.parametrize("alpha", [1.0, 1 + 1e-12, 0.4, 3.0])
@pytest.mark.parametrize(
    ("kind", "place"), [("green", (0.8,)), ("wave", (0.8, 2.0)), ("bump", (0.8, 0.3, 0.4))]
)
def test_second_order_gradients_are_differences(kind: str, place: Any, alpha: float) -> None:
    for memory in MEMORIES:

        def value(alpha: Any, omega0: Any, memory: str = memory) -> Any:
            roots = second_order_roots(alpha, omega0)
            if kind == "green":
                return greens(place[0], roots)
            if kind == "wave":
                return greens_wave(place[0], place[1], roots, memory)
            return greens_bump(place[0], place[1], place[2], roots, memory)

        gradients = second_order_gradients(kind, place, alpha, 1.0, memory)
        close(gradients["value"], value(alpha, 1.0), 1e-48)
        assert_differences(value, {"alpha": alpha, "omega0": 1.0}, gradients)


@pytest.mark.parametrize("memory", MEMORIES)
@pytest.mark.parametrize(
    ("s1", "s2", "ell"),
    [(0.3, 20.0, 3.0), (20.0, 5.0, 0.1), (2 + 6j, 0.5, 0.4), (1.0, 3 - 1j, 1.0)],
)
def test_covariances_are_integrals_of_the_bump(
    s1: complex, s2: complex, ell: float, memory: str
) -> None:
    horizon = 40 / min(s1.real, s2.real)
    for x, x2 in ((2.0, 0.7), (4.0, -2.0), (-1.0, -1.5)):
        value = lfm_covariance(
            x, x2, lambda t: np.exp(-s1 * t), lambda t: np.exp(-s2 * t), ell, memory, horizon
        )
        close(value, covariance(x, x2, s1, s2, ell, memory), 1e-11)
        cross = lfm_cross_covariance(x, x2, lambda t: np.exp(-s1 * t), ell, memory, horizon)
        close(cross, bump(x, x2, ell, s1, memory), 1e-11)


def covariance(x: float, x2: float, s1: complex, s2: complex, ell: float, memory: str) -> Any:
    """The covariance from single integrals.

    With infinite memory K is stationary, so (d/dx + s1) K + (d/dx2 + s2) K = (s1 + s2) K is the
    sum of the two cross-covariances; with zero memory y(x) is y(x) - e^{-s x} y(0) of those.
    """

    def stationary(at: float, at2: float) -> Any:
        first = mp.fsum(bump_terms(at, at2, ell, s1, "infinite"))
        second = mp.fsum(bump_terms(at2, at, ell, s2, "infinite"))
        return (first + second) / (mp.mpmathify(s1) + mp.mpmathify(s2))

    def evaluate() -> Any:
        if memory == "infinite":
            return stationary(x, x2)
        free, free2 = mp.exp(-mp.mpmathify(s1) * x), mp.exp(-mp.mpmathify(s2) * x2)
        ends = free * stationary(0, x2) + free2 * stationary(x, 0)
        return stationary(x, x2) - ends + free * free2 * stationary(0, 0)

    return settle(evaluate)
