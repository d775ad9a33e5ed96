"""Where a model starts: frequencies drawn from the spectrum of the observed targets.

    P(ω) = Σ_d Lomb–Scargle power of output d, over what was observed

Works with gaps and uneven sampling. From the prior alone the optimisation of a deep model often
fails before it begins: with frequencies that the data have, it does not.
"""

import math

import numpy as np
import torch
from numpy.typing import NDArray

from deeplfm.errors import InputError
from deeplfm.layers.frequencies import Frequencies

Values = NDArray[np.float64]

_OVERSAMPLING = 4  # grid points per resolvable frequency, 2π / span apart


def periodogram(x: Values, y: Values) -> tuple[Values, Values]:
    """Angular frequencies ω > 0 and the power of all outputs there, normalised to sum to 1.

    `x` is [N], `y` [N, D] with NaN where nothing was observed. The grid ends where the typical
    spacing of an output's observations allows no more: at π over its median.
    """
    from scipy.signal import lombscargle

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
    omega = np.arange(_OVERSAMPLING, max(_OVERSAMPLING + 1, math.pi / min(spacings) / step)) * step
    total = np.zeros_like(omega)
    for times, values in columns:
        centred = values - values.mean()
        if len(times) > 2 and centred.any():
            total += _above_noise(lombscargle(times, centred, omega))
    if not total.any():
        total = np.ones_like(omega)
    return omega, total / total.sum()


def _above_noise(power: Values) -> Values:
    """What exceeds the largest power that noise alone would show, normalised to sum to 1.

    Powers of noise are exponential: their mean is median / ln 2, the largest of n about ln n means.
    A spectrum without such peaks is kept as it is.
    """
    floor = np.median(power) / math.log(2) * math.log(max(2, len(power)))
    peaks = np.maximum(power - floor, 0)
    chosen = peaks if peaks.any() else power
    return np.asarray(chosen / chosen.sum())


def spectral_frequencies(
    x: Values, y: Values, shape: tuple[int, ...], generator: torch.Generator | None = None
) -> tuple[torch.Tensor, float]:
    """Frequencies of `shape`, drawn from the periodogram with random signs, and its resolution.

    Systematic sampling: R frequencies hold each peak about in proportion to its power.
    """
    omega, power = periodogram(x, y)
    count = math.prod(shape)
    offset = torch.rand((), generator=generator, dtype=torch.float64).item()
    levels = (np.arange(count) + offset) / count
    chosen = omega[np.searchsorted(power.cumsum(), levels * power.sum()).clip(max=len(omega) - 1)]
    order = torch.randperm(count, generator=generator)
    within = torch.rand(count, generator=generator, dtype=torch.float64) - 0.5
    signs = torch.randint(0, 2, (count,), generator=generator) * 2 - 1
    resolution = float(omega[1] - omega[0]) if len(omega) > 1 else float(omega[0])
    drawn = signs * (torch.tensor(chosen)[order] + resolution * within)
    return drawn.reshape(shape), resolution


def start_frequencies(
    frequencies: Frequencies, mean: torch.Tensor, std: float, column: int
) -> None:
    """Start q(ω) of one input at N(mean, std²), and its prior 1/ℓ² at the size of those."""
    if frequencies.mean is None or frequencies.log_std is None:
        raise InputError(
            "frequencies must be inferred to be started; got prior_draws. "
            "Use fixed_noise or resampled."
        )
    with torch.no_grad():
        frequencies.mean[..., column] = mean.to(frequencies.mean)
        frequencies.log_std[..., column] = math.log(std)
        typical = mean.square().mean(-1).sqrt().to(frequencies.mean)  # [G, Q]
        frequencies.lengthscale.set(
            torch.cat(
                [
                    frequencies.lengthscale()[..., :column],
                    1 / typical[..., None],
                    frequencies.lengthscale()[..., column + 1 :],
                ],
                dim=-1,
            )
        )
