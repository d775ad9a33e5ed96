"""What was learnt of the physics: time constants, periods, damping, in the user's units.

    a pole s of an ODE is e^{-st}:  time constant 1/Re s,  period 2π/|Im s|,  damping Re s/|s|

Inputs of a model have the user's units; hidden functions have none, and say so.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from deeplfm.errors import InputError
from deeplfm.layers import Layer
from deeplfm.regressor.fitted import FittedModel, as_numpy
from deeplfm.regressor.markov import FittedMarkov

Values = NDArray[np.float64]


@dataclass(frozen=True)
class Response:
    """How one function of a layer answers along one of its inputs.

    `poles` have the real part first where the ODE is slowest; `in_units` says whether they are per
    unit of the user's input. An ODE of order 0 answers at once. `lengthscale` is that of the forces
    along the input, infinite where none varies along it.
    """

    layer: int
    function: str
    input: str
    in_units: bool
    poles: tuple[complex, ...]
    lengthscale: float

    @property
    def time_constant(self) -> float:
        """How long the slowest part takes to fall to 1/e; infinite where it does not."""
        slowest = min((pole.real for pole in self.poles), default=math.inf)
        return math.inf if slowest <= 0 else 1 / slowest

    @property
    def period(self) -> float:
        """The period of the slowest pole that oscillates; infinite where none does."""
        frequency = min((abs(pole.imag) for pole in self.poles if pole.imag), default=0.0)
        return math.inf if frequency == 0 else 2 * math.pi / frequency

    @property
    def damping_ratio(self) -> float:
        """Re s / |s| of the least damped part: 1 and more does not swing."""
        return min((pole.real / abs(pole) for pole in self.poles if pole), default=1.0)

    def in_words(self, amount: Callable[[float], str] = "{:.3g}".format) -> str:
        """One sentence; `amount` writes a distance along the input."""
        name = self.input + ("" if self.in_units else " (which has no units)")
        along = f"along {name}"
        if not self.poles and math.isinf(self.lengthscale):
            return f"{self.function} depends on {name} directly, without an ODE or a force."
        if not self.poles:
            return f"{self.function} follows its force at once {along}."
        if math.isinf(self.time_constant):
            return f"{self.function} sums its force up {along} and never forgets."
        forgets = f"with a time constant of {amount(self.time_constant)}"
        if math.isinf(self.period):
            return f"{self.function} forgets its force {along} {forgets}, without swinging."
        rings = self.time_constant / self.period
        return (
            f"{self.function} swings with a period of {amount(self.period)} {along} and forgets "
            f"{forgets}: it rings for about {rings:.2g} periods (damping ratio "
            f"{self.damping_ratio:.2g})."
        )


def responses(model: Any, member: int = 0) -> tuple[Response, ...]:
    """One for each layer, function and input of a member of a fitted model or estimator.

    Of a state-space model: one for each mode that carries something, and for each ODE.
    """
    model = getattr(model, "fitted_", model)
    if isinstance(model, FittedMarkov):
        return _of_modes(model)
    model = _fitted(model)
    stack = model.members[member].stack
    found = []
    for number, layer in enumerate(stack):
        units = _units(model, number)
        names = model.function_names(number)
        poles = _poles(layer, len(units))
        lengthscales = as_numpy(layer.lengthscales())
        for row, name in enumerate(names):
            for column, (label, unit) in enumerate(units):
                scale = 1.0 if unit is None else unit
                chosen = poles[min(row, len(poles) - 1)][column] / scale
                found.append(
                    Response(
                        number,
                        name,
                        label,
                        unit is not None,
                        tuple(sorted(map(complex, chosen), key=lambda pole: pole.real)),
                        float(lengthscales[column] * scale),
                    )
                )
    return tuple(found)


def _of_modes(model: FittedMarkov) -> tuple[Response, ...]:
    """The most probable physics of a state-space model."""
    own = model.physics(0)[0]
    name = model.input_names[0]
    found = []
    for mode in own.active:
        pole = complex(own.decay[mode], abs(own.frequency[mode]))
        poles = (pole, pole.conjugate())
        found.append(Response(0, f"the {own.mode_name(mode)}", name, True, poles, math.inf))
    driven = model.model.driven
    if driven is None:
        return tuple(found)
    dynamics = driven.dynamics()
    every = dynamics if isinstance(dynamics, list) else [dynamics]
    rows = [row for g in every for row in as_complex(g.poles())]
    lengthscale = float(driven.lengthscales().min())
    for output, poles_ in zip(model.output_names, rows, strict=True):
        slowest = tuple(sorted(map(complex, poles_), key=lambda pole: pole.real))
        found.append(Response(0, output, name, True, slowest, lengthscale))
    return tuple(found)


def as_complex(poles: torch.Tensor) -> NDArray[np.complex128]:
    """Poles [D, K] of an ODE over one input."""
    found = poles.detach().cpu().to(torch.complex128).numpy()
    return np.asarray(found.reshape(-1, found.shape[-1]))


def greens_curves(model: Any, layer: int = 0, member: int = 0) -> tuple[Values, Values]:
    """Lags along the first input and the layer's Green's functions there, [L] and [L, D].

    In the user's units where that input is one of theirs; as long as the slowest of them lasts.
    """
    model = getattr(model, "fitted_", model)
    if isinstance(model, FittedMarkov):
        return _curves_of_odes(model)
    model = _fitted(model)
    depth = len(model.members[member].stack)
    if not 0 <= layer < depth:
        raise InputError(f"layer must be 0 to {depth - 1}; got {layer}. Choose one of them.")
    g = model.members[member].stack[layer].greens_function
    unit = _units(model, layer)[0][1] or 1.0
    own = [one for one in responses(model, member) if one.layer == layer]
    own = own[:: len(_units(model, layer))]  # along the first input
    longest = max((one.time_constant for one in own if math.isfinite(one.time_constant)), default=1)
    lags = np.linspace(0, 4 * longest, 400)
    if g.order == 0:
        return lags, np.zeros((len(lags), len(own)))
    with torch.no_grad():
        like = g.factors[0][0]
        values = as_numpy(g(torch.tensor(lags / unit).to(like)[:, None, None]))[:, :, 0]
    # y^(n) + … = u in other units of time: G has n - 1 of them; with an integral of 1, minus one.
    power = -1 if g.normalised else g.order - 1
    return lags, np.broadcast_to(values, (len(lags), len(own))) * unit**power


def _curves_of_odes(model: FittedMarkov) -> tuple[Values, Values]:
    """The same of the ODEs of a state-space model, which are in the user's units already."""
    driven = model.model.driven
    if driven is None:
        raise InputError(
            "Green's functions are those of ODEs that forces drive; got a MarkovDLFM of modes "
            "alone. Fit it with a greens_function, or look at the periods of its modes."
        )
    own = [one for one in responses(model) if math.isfinite(one.lengthscale)]
    longest = max((one.time_constant for one in own if math.isfinite(one.time_constant)), default=1)
    lags = np.linspace(0, 4 * longest, 400)
    dynamics = driven.dynamics()
    with torch.no_grad():
        at = torch.tensor(lags)[:, None, None]
        every = dynamics if isinstance(dynamics, list) else [dynamics]
        values = [as_numpy(g(at)).reshape(len(lags), -1) if g.order else None for g in every]
    zeros = np.zeros((len(lags), 1))
    return lags, np.concatenate([zeros if one is None else one for one in values], axis=1)


def _fitted(model: Any) -> FittedModel:
    """What is inside an estimator, or the fitted model itself."""
    found = getattr(model, "fitted_", model)
    if not isinstance(found, FittedModel):
        raise InputError(f"model must be fitted; got {type(model).__name__}. Call fit first.")
    return found


def _units(model: FittedModel, layer: int) -> list[tuple[str, float | None]]:
    """The inputs of a layer: their names and what one unit of them is, None for hidden ones."""
    names = model.names_below(layer)
    hidden = 0 if layer == 0 else model.members[0].stack[layer - 1].num_outputs
    scales = [*[None] * hidden, *map(float, model.scaling.input_scale)][: len(names)]
    return list(zip(names, scales, strict=True))


def _poles(layer: Layer, inputs: int) -> NDArray[np.complex128]:
    """[D or 1, P, K]."""
    poles = layer.greens_function.poles().detach().cpu().to(torch.complex128).numpy()
    shared = poles.ndim < 3  # one ODE for all functions and inputs, or none
    return np.broadcast_to(poles, (1, inputs, poles.shape[-1])) if shared else poles
