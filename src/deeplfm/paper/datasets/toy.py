"""The toy system of the paper's figure 3: a force through two ODEs, one inside the other.

    u(t) = cos(t/2) + 6 sin(3t)
    equations:  f1(t) = ∫_0^t e^{-0.01(t-τ)} u(τ) dτ,   f2 = ∫_0^{f1} e^{-0.02(f1-τ)} u(τ) dτ
    figure:     φ(t; γ) = (e^{jt} - e^{-γt})/(γ + j) as filter, over fixed intervals, real part

The printed equations do not give the plotted data; `figure` does. Noise is added to both.
"""

from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from deeplfm.data.series import Series
from deeplfm.errors import InputError
from deeplfm.paper.datasets.registry import Folder, data_set

Generator: TypeAlias = Literal["figure", "equations"]

_POINTS, _END, _LAST_TRAINING = 750, 15.0, 599
_GAP = slice(125, 225)
_NOISE_STD = {"figure": 0.15, "equations": 0.2}


def toy(generator: Generator = "figure", *, seed: int = 0) -> Series:
    """750 points of the toy system, whose training times lie in [0, 1].

    Its tests are "imputation", a gap, and "extrapolation", the end. Values and truth are
    standardised by the mean and spread of the noisy training values.
    """
    if generator not in _NOISE_STD:
        raise InputError(
            f"generator must be 'figure' or 'equations'; got {generator!r}. Choose one of the two."
        )
    t = np.linspace(0, _END, _POINTS)
    truth = _figure(t) if generator == "figure" else _equations(t)
    noise = np.random.default_rng(seed).normal(scale=_NOISE_STD[generator], size=_POINTS)
    values = truth + noise
    gap, end = np.zeros((2, _POINTS, 1), dtype=bool)
    gap[_GAP] = True
    end[_LAST_TRAINING + 1 :] = True
    training = values[~(gap | end)[:, 0]]
    mean, std = training.mean(), training.std()
    return Series(
        times=t / t[_LAST_TRAINING],
        values=((values - mean) / std)[:, None],
        names=("f2",),
        tests={"imputation": gap, "extrapolation": end},
        truth=((truth - mean) / std)[:, None],
    )


@data_set("toy", records=get_args(Generator), seeds=5)
def toy_record(record: str, seed: int, path: Folder) -> Series:
    """The toy system by one of its generators; no file is read."""
    return toy(record, seed=seed)  # type: ignore[arg-type]


def _force(t: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(np.cos(t / 2) + 6 * np.sin(3 * t))


def _figure(t: NDArray[np.float64]) -> NDArray[np.float64]:
    """f2 [N] with both integrals over fixed intervals, by Gauss–Legendre; f1 is complex."""
    first = _filtered(t.astype(complex), _END, 0.01)
    return np.asarray(_filtered(first, float(first.real.max()), 0.02).real)


def _filtered(x: NDArray[np.complex128], end: float, decay: float) -> NDArray[np.complex128]:
    """∫_0^end φ(x - τ; γ) u(τ) dτ."""
    nodes, weights = np.polynomial.legendre.leggauss(400)  # integrands have a few dozen turns
    tau, weights = end * (nodes + 1) / 2, end * weights / 2
    lag = x[:, None] - tau
    response = (np.exp(1j * lag) - np.exp(-decay * lag)) / (decay + 1j)
    return np.asarray(response @ (weights * _force(tau)))


def _equations(t: NDArray[np.float64]) -> NDArray[np.float64]:
    return _driven(_driven(t, 0.01), 0.02)


def _driven(x: NDArray[np.float64], decay: float) -> NDArray[np.float64]:
    """∫_0^x e^{-γ(x-τ)} u(τ) dτ in closed form, x of any sign."""

    def wave(omega: float) -> NDArray[np.complex128]:
        return np.asarray((np.exp(1j * omega * x) - np.exp(-decay * x)) / (decay + 1j * omega))

    return np.asarray(wave(0.5).real + 6 * wave(3.0).imag)
