"""Where a deep model of inducing layers starts.

    first layer of a series:  resonators, driven so that hidden functions follow the phase
    other hidden layers:      their mean function, and next to nothing beside it
    last layer:               the observed targets, given the hidden functions, in closed form

Every layer begins with prior variance 1, and with inducing points and lengthscales such that q can
reach nearly all of it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from deeplfm.layers import InducingLayer
from deeplfm.likelihoods import Likelihood
from deeplfm.models.deep_lfm import DeepLFM
from deeplfm.models.skip import Skip
from deeplfm.models.starts.base import (
    FIRST_NOISE,
    Start,
    posterior_of_weights,
    principal_components,
)
from deeplfm.models.starts.grid import phases, start_on_grid
from deeplfm.models.starts.inducing_points import (
    ROWS,
    features_of,
    place,
    reaches_all,
    typical_distance,
)
from deeplfm.models.starts.oscillation import Oscillation, dominant_oscillation

_INSTANT = 10.0  # decay times lengthscale, where the data say nothing of a decay
_REACHED, _GROWTH, _ROUNDS = 0.95, 1.1, 15
_HIDDEN_NOISE = 0.001  # variance about the phase that q of the first layer starts with
_LEAST = 1e-12  # variance; a layer from state zero has none at inputs 0
_QUIET = 0.03  # spread of q in hidden layers that only pass their mean on
_DRAWS = 10
_ROWS_FROM_ZERO_STATE = 10  # there a row costs more


@final
@dataclass(frozen=True)
class InducingStart:
    """What of the start the settings decide: `InducingDLFM` says what they mean."""

    own_physics: bool
    keep_lengthscale: bool
    past: float
    fitted: bool


def start_inducing(
    layers: Sequence[InducingLayer],
    skip: Skip,
    likelihood: Likelihood,
    start: Start,
    settings: InducingStart,
) -> None:
    """Inducing inputs, lengthscales, amplitudes, and unless told otherwise q and the noise."""
    oscillation = dominant_oscillation(start.x[:, 0], start.y) if start.series else None
    x = torch.tensor(start.x)
    values, direct = x, torch.ones(x.shape[1], dtype=torch.bool)  # which columns carry inputs
    with torch.no_grad():
        for number, layer in enumerate(layers):
            if layer.mean_weights is not None:
                layer.mean_weights.copy_(linear_mean(values, layer.num_outputs))
            if number == 0 and start.series:
                start_on_grid(
                    layer,
                    oscillation,
                    start,
                    past=settings.past,
                    own_physics=settings.own_physics,
                    keep_lengthscale=settings.keep_lengthscale,
                )
            else:
                _start_on_values(layer, values, direct, start, settings)
            _unit_variance(layer, values)
            if number == len(layers) - 1:
                if settings.fitted:
                    _fit(layer, values, torch.tensor(start.y) - layer.mean(values), likelihood)
                return
            hidden = layer.mean(values) + torch.zeros(len(x), layer.num_outputs, dtype=x.dtype)
            if settings.fitted:
                hidden = hidden + _start_hidden(layer, values, oscillation, number, start)
            weights = layer.mean_weights
            carries = torch.zeros(layer.num_outputs, dtype=torch.bool)
            if weights is not None:
                carries = (weights[direct] != 0).any(0)
            direct = torch.cat([carries, torch.ones(x.shape[1], dtype=torch.bool)])
            values = skip(hidden[None], x)[0]
            direct = direct[: values.shape[1]]


def match_noise(model: DeepLFM, start: Start) -> None:
    """The noise at what draws of the whole model leave: hidden functions are uncertain too."""
    rows = slice(None, None, math.ceil(len(start.x) / (2 * ROWS)))
    x, y = torch.tensor(start.x[rows]), torch.tensor(start.y[rows])
    with torch.no_grad():
        errors = (y - model.draw_for_training(_DRAWS, start.generator)(x)).square()
        model.likelihood.start_noise(errors.nanmean((0, 1)).clamp(min=1e-4))


def linear_mean(values: Float[Tensor, "N P"], outputs: int) -> Float[Tensor, "P D"]:
    """The identity, with zeros for more outputs than inputs, principal components for fewer."""
    inputs = values.shape[1]
    if outputs >= inputs:
        return torch.eye(inputs, outputs, dtype=values.dtype)
    _, _, directions = torch.linalg.svd(values - values.mean(0), full_matrices=False)
    found: Tensor = directions[:outputs].mT
    if found.shape[1] < outputs:  # fewer rows than outputs
        found = torch.cat([found, found.new_zeros(inputs, outputs - found.shape[1])], dim=1)
    return found


def _start_on_values(
    layer: InducingLayer,
    values: Float[Tensor, "N P"],
    direct: Tensor,
    start: Start,
    settings: InducingStart,
) -> None:
    """Inducing inputs among what the layer sees; lengthscales that let them reach all of it."""
    prior = layer.posterior.prior
    ell = prior.lengthscale[0].clone()
    if not settings.keep_lengthscale:
        typical = typical_distance(values) * math.sqrt(values.shape[1])
        ell[direct] = torch.where(typical > 0, typical, torch.ones_like(typical))[direct]
    rows = ROWS if layer.memory == "infinite" else _ROWS_FROM_ZERO_STATE
    some = values[:: math.ceil(len(values) / rows)]
    distinct = torch.tensor(np.unique(values.numpy(), axis=0))
    for _ in range(_ROUNDS):
        prior.set_lengthscale(ell)
        if settings.own_physics:
            layer.greens_function.match_decay((_INSTANT / ell).expand(layer.num_outputs, -1))
        place(layer, distinct, ell, start.generator)
        if settings.keep_lengthscale or reaches_all(layer, some, _REACHED):
            return
        ell = torch.where(direct | (not direct.any()), ell * _GROWTH, ell)


def _unit_variance(layer: InducingLayer, values: Float[Tensor, "N P"]) -> None:
    """Scale the sensitivities so that every output has prior variance 1, on average."""
    some = values[:: math.ceil(len(values) / _ROWS_FROM_ZERO_STATE)]
    variance = layer.prior_variance(some).mean(0)
    layer.sensitivities.div_(variance.clamp(min=_LEAST).sqrt()[:, None])


def _start_hidden(
    layer: InducingLayer,
    values: Float[Tensor, "N P"],
    oscillation: Oscillation | None,
    number: int,
    start: Start,
) -> Float[Tensor, "N D"]:
    """q of a hidden layer, and its mean beside the mean function."""
    if number == 0 and oscillation is not None:
        return _fit(layer, values, phases(layer, oscillation))
    if layer.mean_weights is None:
        known = principal_components(start.x, layer.num_outputs)
        targets = np.zeros((len(known), layer.num_outputs))
        targets[:, : known.shape[1]] = known
        return _fit(layer, values, torch.tensor(targets))
    whitened = layer.posterior.whitened
    identity = torch.eye(whitened.shift.shape[-1], dtype=values.dtype)
    quiet = _QUIET * identity.expand(*whitened.shift.shape, -1)
    whitened.set(torch.zeros_like(whitened.shift), quiet)
    return torch.zeros(len(values), layer.num_outputs, dtype=values.dtype)


def _fit(
    layer: InducingLayer,
    values: Float[Tensor, "N P"],
    targets: Float[Tensor, "N D"],
    likelihood: Likelihood | None = None,
) -> Float[Tensor, "N D"]:
    """Set q to the posterior given `targets` (NaN = gap); with a likelihood estimate its noise."""
    features = features_of(layer, values).flatten(2)
    first = _HIDDEN_NOISE if likelihood is None else FIRST_NOISE
    noise = torch.full((layer.num_outputs,), first, dtype=features.dtype)
    solved = posterior_of_weights(
        features, targets, noise, estimate=likelihood is not None, with_offset=False
    )
    whitened = layer.posterior.whitened
    whitened.set(
        solved.mean.reshape(whitened.shift.shape), whitened.closest_factor(solved.precision[None])
    )
    if likelihood is not None:
        likelihood.start_noise(noise)
    return features @ solved.mean
