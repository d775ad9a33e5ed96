"""Where a deep Fourier model starts: each layer solved in closed form for what it should do first.

    hidden layers:  the phase φ(x) of a rhythm (`warped`), cos(φ(x) - θ_k) of one of few periods, x
    last layer:     the observed targets, given the hidden functions

For fixed frequencies the best Gaussian q(W) of a layer is a linear regression. From the prior alone
the optimisation of a deep model often fails before it begins.
"""

import math
from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from deeplfm.layers import FourierLayer
from deeplfm.likelihoods import Likelihood
from deeplfm.models.skip import Skip
from deeplfm.models.starts.base import (
    FIRST_NOISE,
    Start,
    Values,
    posterior_of_weights,
    principal_components,
)
from deeplfm.models.starts.evidence import start_by_evidence
from deeplfm.models.starts.features import features_at
from deeplfm.models.starts.frequencies import start_frequencies
from deeplfm.models.starts.oscillation import Oscillation, dominant_oscillation
from deeplfm.models.starts.warped import start_warped

_HIDDEN_NOISE = 5e-5  # variance about the hidden targets: more would damp the end of a series
_ALIKE = 600  # neighbouring errors of a phase are one: so few of the targets count for its spread
_SHARES = (0.5, 1.0, 1.5)  # of the input itself beside hidden functions, to choose from
_REPEATS = 10.0  # periods in the data, from which on a phase is a hidden function


def start_fitted(
    layers: Sequence[FourierLayer], skip: Skip, likelihood: Likelihood, start: Start
) -> None:
    """Start every layer at a closed-form fit, and the noise at what that fit leaves."""
    deep = start.series and len(layers) > 1
    if deep and (rhythm := rhythm_of(start)) is not None:
        start_warped(layers, skip, likelihood, start, rhythm)
        return
    oscillation = dominant_oscillation(start.x[:, 0], start.y) if deep else None
    x = torch.tensor(start.x)
    values = x
    for number, layer in enumerate(layers):
        last = number == len(layers) - 1
        if last and start.by_evidence:
            settings = (likelihood, start.generator)
            keep = start.keep_lengthscale
            start_by_evidence(
                layer, values, torch.tensor(start.y), *settings, keep_lengthscale=keep
            )
            return
        targets = start.y if last else _hidden_targets(layer, values, oscillation, start)
        expected = start_frequencies(layer, number == 0, targets, oscillation, start)
        phi = features_at(layer, values)
        if last and oscillation is not None and skip.passes_inputs:
            phi = _share_of_input(layer, phi, values, torch.tensor(targets))
        phi = unit_variance(layer, phi, expected)
        if last:
            fit_weights(layer, phi, torch.tensor(targets), likelihood)
            return
        hidden = fit_weights(layer, phi, torch.tensor(targets), expected=expected)
        values = skip(hidden[None], x)[0]


def rhythm_of(start: Start) -> Oscillation | None:
    """The oscillation of a series that repeats so often that its shape is known from its repeats.

    Of fewer periods a phase that is free to drift explains nearly anything.
    """
    if not (start.series and start.from_spectrum):
        return None
    found = dominant_oscillation(start.x[:, 0], start.y)
    turns = 0.0 if found is None else found.frequency * float(np.ptp(start.x)) / (2 * math.pi)
    return found if turns >= _REPEATS else None


def start_at_spectrum(layers: Sequence[FourierLayer], start: Start) -> None:
    """Only the frequencies in the input itself, from the spectrum of the targets."""
    for number, layer in enumerate(layers):
        start_frequencies(layer, number == 0, start.y, None, start)


def _share_of_input(
    layer: FourierLayer,
    phi: Float[Tensor, "N G F"],
    values: Float[Tensor, "N P"],
    targets: Float[Tensor, "N D"],
) -> Float[Tensor, "N G F"]:
    """Φ with less or more of the input itself, where the evidence of an output says so.

    What drifts beside the oscillation needs more of it, a sharp function of the phase less.
    """
    if layer.plane_wave or layer.output_sensitivities is not None:
        return phi
    with torch.no_grad():
        own = layer.sensitivities[..., -1].clone()
        layer.sensitivities[..., -1] = 0
        hidden = features_at(layer, values)
        chosen = []
        for output, part in enumerate(phi.sub(hidden).unbind(1)):
            rivals = []
            for share in _SHARES:
                both = hidden[:, output] + share * part
                unit = both / both.square().sum(-1).mean().clamp(min=1e-300).sqrt()
                noise = torch.full((1,), FIRST_NOISE, dtype=phi.dtype)
                y = targets[:, output : output + 1]
                found = posterior_of_weights(unit[:, None], y, noise, estimate=True)
                rivals.append((found.evidence, share, both))
            _, share, both = max(rivals, key=lambda rival: rival[0])
            layer.sensitivities[output, :, -1] = share * own[output]
            chosen.append(both)
        return torch.stack(chosen, dim=1)


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
            *problem, estimate=likelihood is not None, alike=alike, prior_std=expected
        )
        for problem in problems
    ]
    mean = torch.stack([one.mean for one in solved]).reshape(layer.weights.shift.shape)
    precision = torch.stack([one.precision for one in solved])
    own = None if expected is None else expected[: mean.shape[-1]]  # that of each force
    layer.weights.set(mean, layer.weights.closest_factor(precision), own)
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
