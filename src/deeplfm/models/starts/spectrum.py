"""The spectrum of observed targets, and frequencies drawn from it.

    P(ω) = Σ_d Lomb–Scargle power of output d, over what was observed

Works with gaps and uneven sampling. The grid of ω is regular, so that its waves are products of a
few: e^{j(a+b)t} = e^{jat} e^{jbt}, and every sum over the data is one matrix product.
"""

import math

import numpy as np
import torch
from numpy.typing import NDArray

from deeplfm.errors import InputError

Values = NDArray[np.float64]

_OVERSAMPLING = 4  # grid points per resolvable frequency, 2π / span apart


def periodogram(x: Values, y: Values) -> tuple[Values, Values]:
    """Angular frequencies ω > 0 and the power of all outputs there, normalised to sum to 1.

    `x` is [N], `y` [N, D] with NaN where nothing was observed. The grid ends where the typical
    spacing of an output's observations allows no more: at π over its median.
    """
    span = float(x.max() - x.min())
    if not span > 0:
        raise InputError(
            f"x must span some time for a periodogram; got a span of {span:g}. Use more inputs."
        )
    columns = [(x[rows], column[rows]) for column in y.T for rows in [~np.isnan(column)]]
    spacings = [np.median(np.diff(np.unique(times))) for times, _ in columns if len(times) > 2]
    if not spacings:
        raise InputError("y must have an output with 3 observations or more; got fewer. Add data.")
    step = 2 * math.pi / (span * _OVERSAMPLING)
    # The first few lie below one cycle: they would stand for the mean and trend.
    first = float(_OVERSAMPLING)
    multiples = np.arange(first, max(first + 1, math.pi / min(spacings) / step))
    omega = multiples * step
    total = np.zeros_like(omega)
    for times, values in columns:
        centred = values - values.mean()
        if len(times) > 2 and centred.any():
            total += _above_noise(_lomb_scargle(step * (times - x.min()), centred, multiples))
    if not total.any():
        total = np.ones_like(omega)
    return omega, total / total.sum()


def _lomb_scargle(turns: Values, y: Values, multiples: Values) -> Values:
    """The power of `y` at consecutive `multiples` of one frequency; `turns` is that times time.

    What y explains of a cosine and a sine, shifted by the angle that makes the two orthogonal.
    """
    by_y = fourier_sums(turns, y / len(y), multiples)
    twice = fourier_sums(2 * turns, np.full(len(y), 1 / len(y)), multiples)
    by_y = by_y * np.exp(-0.5j * np.angle(twice))
    cosines = (1 + np.abs(twice)) / 2  # mean squares: the two add up to 1
    sines = np.maximum((1 - np.abs(twice)) / 2, np.finfo(np.float64).epsneg)
    return np.asarray(len(y) / 2 * (by_y.real**2 / cosines + by_y.imag**2 / sines))


def fourier_sums(turns: Values, weights: Values, multiples: Values) -> NDArray[np.complex128]:
    """Σ_n weights_n e^{jk turns_n} for consecutive k, from about 2√K waves instead of K."""
    block = math.isqrt(len(multiples)) + 1
    coarse = np.exp(1j * np.outer(multiples[::block], turns)) * weights
    fine = np.exp(1j * np.outer(turns, np.arange(block)))
    return np.asarray((coarse @ fine).reshape(-1)[: len(multiples)])


def enough(y: Values) -> bool:
    """Whether some output [N, D] was observed often enough for a periodogram."""
    return bool(((~np.isnan(y)).sum(0) > 2).any())


def _above_noise(power: Values) -> Values:
    """What exceeds the largest power that noise alone would show, normalised to sum to 1.

    Powers of noise are exponential: their mean is median / ln 2, the largest of n about ln n means.
    A spectrum without such peaks is kept as it is.
    """
    floor = np.median(power) / math.log(2) * math.log(max(2, len(power)))
    peaks = np.maximum(power - floor, 0)
    chosen = peaks if peaks.any() else power
    return np.asarray(chosen / max(float(chosen.sum()), 1e-300))  # none at all stays none


def spectral_frequencies(
    x: Values, y: Values, shape: tuple[int, ...], generator: torch.Generator | None = None
) -> torch.Tensor:
    """Frequencies of `shape`, drawn from the periodogram with random signs."""
    omega, power = periodogram(x, y)
    count = math.prod(shape)
    chosen = draw_from(omega, power, count, generator)
    within = torch.rand(count, generator=generator, dtype=torch.float64) - 0.5
    signs = torch.randint(0, 2, (count,), generator=generator) * 2 - 1
    resolution = float(omega[1] - omega[0]) if len(omega) > 1 else float(omega[0])
    return (signs * (chosen + resolution * within)).reshape(shape)


def draw_from(
    values: Values, power: Values, count: int, generator: torch.Generator | None = None
) -> torch.Tensor:
    """`count` of `values` in random order, each about in proportion to its power.

    Systematic sampling: the number of times a value is drawn is within one of its share.
    """
    offset = torch.rand((), generator=generator, dtype=torch.float64).item()
    levels = (np.arange(count) + offset) / count * power.sum()
    chosen = values[np.searchsorted(power.cumsum(), levels).clip(max=len(values) - 1)]
    return torch.tensor(chosen)[torch.randperm(count, generator=generator)]
