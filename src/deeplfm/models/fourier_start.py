"""Where a deep Fourier model starts: each layer solved in closed form for what it should do first.

    hidden layers:  cos(φ(x) - θ_k) of the dominant oscillation, or the inputs themselves
    last layer:     the observed targets, given the hidden functions

For fixed frequencies the best Gaussian q(W) of a layer is a linear regression: its mean and its
covariance are set to that. From the prior alone the optimisation of a deep model often fails
before it begins; from here it improves on a fit that is already good.
"""

import math
from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from deeplfm.layers import FourierLayer
from deeplfm.likelihoods import Likelihood
from deeplfm.models.oscillation import Oscillation, dominant_oscillation
from deeplfm.models.skip import Skip
from deeplfm.models.spectrum import draw_from, periodogram, spectral_frequencies
from deeplfm.models.start import (
    FIRST_NOISE,
    Start,
    Values,
    factors_of,
    posterior_of_weights,
    principal_components,
)
from deeplfm.responses.transients import transients

_HIDDEN_NOISE = 1e-5  # variance about the hidden targets: more would damp the end of a series
_ALIKE = 3000  # neighbouring errors of a phase are one: so few of the targets count for its spread
# A phase known so many times worse than most is doubted, the excess counting so many times over:
# at the ends of a series a beat is seen from one side only.
_DOUBTFUL, _DOUBT = 4.0, 5.0
# Shares of the features about an oscillation; lines of its spectrum are the rest.
_STILL, _SMOOTH, _FAR = 0.05, 0.25, 0.35
_REACH, _LITTLE = 0.5, 0.025  # of its frequency: how far is far; how little is expected there
_SLOW = 7  # how much slower than the oscillation the direct dependence on the input starts
_BELOW = 0.6  # of its frequency: where the spectrum is not the oscillation itself
_AT_ONCE = 2**17  # waves that exist at a time: a few MB


def start_fitted(
    layers: Sequence[FourierLayer], skip: Skip, likelihood: Likelihood, start: Start
) -> None:
    """Start every layer at a closed-form fit, and the noise at what that fit leaves."""
    deep = start.series and len(layers) > 1
    oscillation = dominant_oscillation(start.x[:, 0], start.y) if deep else None
    x = torch.tensor(start.x)
    values = x
    for number, layer in enumerate(layers):
        last = number == len(layers) - 1
        targets = start.y if last else _hidden_targets(layer, values, oscillation, start)
        expected = _start_frequencies(layer, number == 0, targets, oscillation, start)
        phi = unit_variance(layer, features_at(layer, values), expected)
        if last:
            fit_weights(layer, phi, torch.tensor(targets), likelihood)
            return
        trust = None if oscillation is None else _trust(oscillation)
        hidden = fit_weights(layer, phi, torch.tensor(targets), expected=expected, trust=trust)
        values = skip(hidden[None], x)[0]


def start_at_spectrum(layers: Sequence[FourierLayer], start: Start) -> None:
    """Only the frequencies in the input itself, from the spectrum of the targets."""
    for number, layer in enumerate(layers):
        _start_frequencies(layer, number == 0, start.y, None, start)


def features_at(layer: FourierLayer, values: Float[Tensor, "N P"]) -> Float[Tensor, "N G F"]:
    """Φ at the frequencies q starts from."""
    with torch.no_grad():
        omega = layer.frequencies.center()
        if layer.plane_wave or layer.memory == "infinite":
            return layer.features(values[None], omega[None])[0].flatten(-2)
        return _from_rest(layer, values, omega)


def _from_rest(
    layer: FourierLayer, values: Float[Tensor, "N P"], omega: Float[Tensor, "G2 Q R P"]
) -> Float[Tensor, "N G F"]:
    """Sums over inputs of waves less their transients (`responses`), a few rows at a time.

    The layer's own features hold for every ODE and lag to full relative precision, at a price; a
    regression has no use for that.
    """
    forces, count = omega.shape[1:3]
    omega = omega.permute(0, 3, 1, 2).flatten(-2)  # G P K
    scale = layer.amplitudes()[..., None].expand(-1, -1, -1, count) / math.sqrt(count)
    turn = torch.zeros_like(scale) if layer.phases is None else layer.phases.permute(0, 3, 1, 2)
    weights = torch.polar(*torch.broadcast_tensors(scale, turn)).flatten(-2)
    g = layer.greens_function
    response = g.transfer(torch.complex(torch.zeros_like(omega), omega))
    sign = -1.0 if g.order % 2 else 1.0  # before the origin the ODE runs backwards from rest
    after, before = weights * response, sign * weights * response.conj()
    parts = []
    for x in values.split(max(1, _AT_ONCE // after.numel())):
        rise, others = transients(g, x.abs()[None, :, None])
        half = x[:, None, :, None] * (omega / 2)  # n G P K
        sine = half.sin()
        # e^{jωx} - 1 in a form that does not cancel next to 0, and 1 - b_0.
        waves = torch.complex(-2 * sine.square(), 2 * sine * half.cos_())
        waves = waves + rise[0, ..., None]
        for k, motion in enumerate(others, start=1):
            signed = torch.sign(x)[:, None] ** k * motion[0]
            waves = waves - signed[..., None] * (1j * omega) ** k
        waves = waves * torch.where(x[:, None, :, None] < 0, before, after)
        combined = waves.sum(2).unflatten(-1, (forces, count))
        parts.append(torch.cat([combined.real, combined.imag], -1).flatten(-2))
    return torch.cat(parts)


def unit_variance(
    layer: FourierLayer, phi: Float[Tensor, "N G F"], expected: Float[Tensor, " F"] | None = None
) -> Float[Tensor, "N G F"]:
    """Scale the sensitivities so that outputs have prior variance 1 on average; Φ then.

    expected: prior standard deviations of the weights, where they are not 1.
    """
    with torch.no_grad():
        known = phi if expected is None else phi * expected
        variance = known.square().sum(-1).mean(0).clamp(min=1e-300)  # G
        variance = variance[: len(layer.sensitivities)]
        power = layer.num_inputs if layer.plane_wave else 1
        layer.sensitivities.mul_(variance[:, None, None] ** (-1 / (2 * power)))
        return phi * variance.rsqrt()[:, None]


def fit_weights(
    layer: FourierLayer,
    phi: Float[Tensor, "N G F"],
    targets: Float[Tensor, "N D"],
    likelihood: Likelihood | None = None,
    expected: Float[Tensor, " F"] | None = None,
    trust: Float[Tensor, " N"] | None = None,
) -> Float[Tensor, "N D"]:
    """Set q(W) and the offset to their posterior given `targets` (NaN = gap) where Φ is.

    Returns the mean function there. With a likelihood its noise is estimated on the way, by
    expectation maximisation.
    """
    features = phi.expand(-1, layer.num_outputs, -1)
    noise = torch.full((layer.num_outputs,), _HIDDEN_NOISE, dtype=features.dtype)
    if likelihood is not None:
        noise.fill_(FIRST_NOISE)
    if layer.output_sensitivities is not None:  # one W for all outputs
        mixing = layer.output_sensitivities.detach()[..., None]
        mixed = features.unflatten(-1, (mixing.shape[1], -1)) * mixing
        problems = [(mixed.flatten(-2), targets, noise)]
    else:
        columns = (features.split(1, dim=1), targets.split(1, dim=1), noise.split(1))
        problems = list(zip(*columns, strict=True))
    alike = _ALIKE if likelihood is None else 1
    solved = [
        posterior_of_weights(
            *problem, estimate=likelihood is not None, alike=alike, prior_std=expected, trust=trust
        )
        for problem in problems
    ]
    mean = torch.stack([one.mean for one in solved]).reshape(layer.weights.shift.shape)
    precision = torch.stack([one.precision for one in solved])
    own = None if expected is None else expected[: mean.shape[-1]]  # that of each force
    layer.weights.set(mean, factors_of(precision, layer.weights), own)
    with torch.no_grad():
        layer.offset.copy_(torch.cat([one.offset for one in solved]))
    if likelihood is not None:
        likelihood.start_noise(noise)
    functions = [phi @ one.mean for (phi, _, _), one in zip(problems, solved, strict=True)]
    return torch.cat(functions, dim=1) + layer.offset.detach()


def _hidden_targets(
    layer: FourierLayer, values: Tensor, oscillation: Oscillation | None, start: Start
) -> Values:
    """[N, H]: projections of the oscillation; else the inputs' principal components, and draws."""
    count = layer.num_outputs
    if oscillation is not None:
        return oscillation.projections(count)
    known = principal_components(start.x, count)
    if known.shape[1] == count:
        return known
    features = features_at(layer, values)[:, 0]
    shape = (features.shape[1], count - known.shape[1])
    weights = torch.randn(shape, generator=start.generator, dtype=torch.float64)
    return np.concatenate([known, (features @ weights).numpy()], axis=1)


def _trust(oscillation: Oscillation) -> Float[Tensor, " N"]:
    """What each target counts, of 1."""
    variance = torch.tensor(oscillation.variance)
    excess = (variance - _DOUBTFUL * variance.median()).clamp(min=0)
    return _HIDDEN_NOISE / (_HIDDEN_NOISE + _DOUBT * excess)


def _near(
    oscillation: Oscillation, count: int, resolution: float, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Frequencies about the oscillation, and the part of it that is expected at each [count].

    Lines of its spectrum, and a smooth drift as fast, go on beyond the data. What is left are beats
    that come early or late: frequencies far off, of which little is expected. A few next to 0 let
    the layer leave rest: with the offset they cancel the transient of the others.
    """
    bandwidth, steady = oscillation.bandwidth, oscillation.bandwidth == 0
    still = max(1, round(_STILL * count))
    smooth, far = (0 if steady else round(share * count) for share in (_SMOOTH, _FAR))
    lines = max(0, count - still - smooth - far)

    def spread(number: int) -> Tensor:  # over (0, 1), evenly
        steps = torch.arange(number, dtype=torch.float64)
        return (steps + torch.rand(number, generator=generator, dtype=torch.float64)) / number

    # Lines a resolution apart would repeat the first phase after the last: they are widened.
    width = (0.05 if steady else 1.0) * resolution
    offsets = torch.cat(
        [
            0.05 * resolution * torch.randn(still, generator=generator, dtype=torch.float64)
            - oscillation.frequency,
            draw_from(oscillation.offsets, oscillation.amplitude, lines, generator)
            + width * (torch.rand(lines, generator=generator, dtype=torch.float64) - 0.5),
            bandwidth * torch.special.ndtri(spread(smooth)),
            _REACH * oscillation.frequency * (2 * spread(far) - 1),
        ]
    )[:count]
    expected = torch.ones_like(offsets)
    expected[count - far :] = _LITTLE
    return oscillation.frequency + offsets, expected


def _slower(oscillation: Oscillation, shape: Sequence[int], start: Start) -> Tensor:
    """Frequencies of what is beside the oscillation: slow ones, and some of an output's spectrum.

    As many of the latter as the output has power there, up to a half.
    """
    drawn = torch.randn(*shape, generator=start.generator, dtype=torch.float64)
    drawn = drawn * oscillation.frequency / _SLOW
    for group, values in enumerate(drawn.flatten(1)):
        own = start.y if len(drawn) == 1 else start.y[:, group : group + 1]
        omega, power = periodogram(start.x[:, 0], own)
        below = omega < _BELOW * oscillation.frequency
        count = round(min(0.5, power[below].sum()) * len(values))
        if count:
            values[:count] = draw_from(omega[below], power[below], count, start.generator)
            values.copy_(values[torch.randperm(len(values), generator=start.generator)])
    return drawn


def _start_frequencies(
    layer: FourierLayer, first: bool, targets: Values, oscillation: Oscillation | None, start: Start
) -> Float[Tensor, " F"] | None:
    """Those of the input from a spectrum, those of hidden inputs from one draw of the prior.

    At the mean of the prior, 0, all features would be the same. Returns prior standard deviations
    of the weights, where they are not 1.
    """
    frequencies, expected = layer.frequencies, None
    lengthscale = frequencies.lengthscale().detach().clone()
    std = 0.1 / lengthscale[:, :, None, :].expand(frequencies.noise.shape)
    omega = frequencies.noise / lengthscale[:, :, None, :]
    if start.series and start.from_spectrum:
        shape, std = omega.shape[:-1], std.clone()
        resolution = 2 * math.pi / float(np.ptp(start.x))
        if oscillation is None:
            drawn = spectral_frequencies(start.x[:, 0], targets, shape, start.generator)
        elif first:
            forces = [
                _near(oscillation, shape[-1], resolution, start.generator) for _ in range(shape[1])
            ]
            drawn = torch.stack([force for force, _ in forces])[None]
            expected = torch.cat([part for _, part in forces for _ in range(2)])
        else:
            drawn = _slower(oscillation, shape, start)
        omega[..., -1], std[..., -1] = drawn, 0.1 * resolution
        if not start.keep_lengthscale:
            lengthscale[..., -1] = drawn.square().mean(-1).rsqrt()
    frequencies.start(omega, std, lengthscale)
    return expected
